//! Commit: sends the staged values to the server.

use phalanx_spec::Scope;
use phalanx_wire::Kval;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::commit::Commit;

use super::link::Cx;
use super::pending::Awaited;
use crate::machine::CallId;

pub(super) fn on_commit(cx: &mut Cx<'_>, id: CallId, buckets: Vec<(Scope, Vec<Kval>)>) {
    if cx.is_alone() {
        return cx.done_alone(id);
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
    let request = Request::Commit(Commit { buckets: vec![(Scope::LOCAL, local), (Scope::REMOTE, remote)] });
    cx.ask(Some(id), &request, Awaited::Status { operation: "commit", subject }, &[]);
}
