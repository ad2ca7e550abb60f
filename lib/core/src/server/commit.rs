//! Commit: a local process hands over the values it has put.

use phalanx_spec::{Scope, Status, keys};
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, Kval, ProcId, Value};
use tracing::warn;

use super::host::Then;
use super::limits::MAX_COMMITTED;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{CommitRefused, HostOp};

/// What a commit changed for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// An empty commit.
    Commit,
    Values,
}

pub(super) fn on_commit(cx: &mut Cx<'_>, from: Asker, commit: Commit) -> Change {
    let proc = from.proc.clone();
    let Some(client) = cx.peers.jobs.client_mut(&proc) else {
        // A tool without a job has no peers that could get its values.
        cx.answer(from, Status::ERR_NOT_SUPPORTED);
        return Change::None;
    };
    let change = if commit.buckets.is_empty() { Change::Commit } else { Change::Values };
    let mut status = Status::SUCCESS;
    let mut news = false;
    for (scope, values) in commit.buckets {
        if let Err(refused) = client.committed_mut().store(scope, values) {
            warn!(%proc, ?scope, status = %refused, limit = MAX_COMMITTED, "commit refused");
            status = refused;
            news |= client.committed_mut().note_refused(refused);
        }
    }
    client.committed_mut().note_commit();
    if news {
        let why = match status {
            Status::ERR_OUT_OF_RESOURCE => format!("its values exceed {MAX_COMMITTED} bytes"),
            other => other.to_string(),
        };
        report(cx, proc, why);
    }
    cx.answer(from, status);
    change
}

/// A commit that cannot be decoded: gets that wait for its values wait in vain.
pub(super) fn on_unreadable_commit(cx: &mut Cx<'_>, from: Asker, error: &DecodeError) -> Change {
    let change = match cx.peers.jobs.client_mut(&from.proc) {
        Some(client) => {
            if client.committed_mut().note_refused(Status::ERR_UNPACK_FAILURE) {
                report(cx, from.proc.clone(), format!("it cannot be read: {error}"));
            }
            Change::Values
        }
        None => Change::None,
    };
    cx.answer(from, Status::ERR_UNPACK_FAILURE);
    change
}

/// Clients of OpenPMIx ignore the answer, so the host is to report it.
fn report(cx: &mut Cx<'_>, proc: ProcId, why: String) {
    cx.ask(None, HostOp::CommitRefused(CommitRefused { proc, why }), Then::Nothing);
}

/// Values that came with a request other than a commit, as 6.1 clients send them: `pmix.pdata`, an array of their owner,
/// their scope, and the values.
pub(super) fn store_endpoints(cx: &mut Cx<'_>, from: &Asker, infos: &[Info]) -> Change {
    let mut change = Change::None;
    for info in infos.iter().filter(|info| info.key == keys::PROC_INFO_ARRAY) {
        let Some(array) = info.value.as_array() else { continue };
        let mut scope = Scope::GLOBAL;
        let mut owner = None;
        let mut values = Vec::new();
        for item in array.infos() {
            match &item.value {
                Value::Proc(proc) if item.key == keys::PROCID => owner = Some(proc.clone()),
                Value::Scope(s) if item.key == keys::DATA_SCOPE => scope = *s,
                value => values.push(Kval { key: item.key.clone(), value: value.clone() }),
            }
        }
        if owner.as_ref() != Some(&from.proc) {
            warn!(proc = %from.proc, ?owner, "values of another process: ignored");
            continue;
        }
        change = Change::Values;
        if let Some(client) = cx.peers.jobs.client_mut(&from.proc)
            && let Err(status) = client.committed_mut().store(scope, values)
        {
            warn!(proc = %from.proc, %status, "values refused");
        }
    }
    change
}
