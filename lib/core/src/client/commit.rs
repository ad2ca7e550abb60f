//! Commit: hands what was put to the server.

use phalanx_spec::Scope;
use phalanx_wire::Kval;
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::{DecodeError, Dialect};

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_commit(
        &mut self,
        now: Time,
        id: CallId,
        buckets: Vec<(Scope, Vec<Kval>)>,
        out: &mut Out,
    ) {
        if self.is_alone() {
            return self.done_alone(id, out);
        }
        let (mut local, mut remote) = (Vec::new(), Vec::new());
        for (scope, values) in buckets {
            match scope {
                Scope::LOCAL => local.extend(values),
                Scope::REMOTE => remote.extend(values),
                Scope::GLOBAL => {
                    local.extend(values.iter().cloned());
                    remote.extend(values);
                }
                _ => {}
            }
        }
        let subject = format!("{} values for this node, {} for others", local.len(), remote.len());
        let request =
            Request::Commit(Commit { buckets: vec![(Scope::LOCAL, local), (Scope::REMOTE, remote)] });
        self.ask(now, Some(id), &request, Awaited::Status { operation: "commit", subject }, &[], out);
    }
}

/// A reply that holds a status alone.
pub(super) fn status(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let StatusReply(status) = StatusReply::decode(payload, dialect)?;
    Ok(ClientReturn::Done(status))
}
