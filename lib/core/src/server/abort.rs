//! Abort: a process wants others, or its whole job, to end. The host decides and does it.

use phalanx_wire::cmd::abort::Abort;

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{AbortRequest, HostOp};

pub(super) fn on_abort(cx: &mut Cx<'_>, from: Asker, abort: Abort) {
    let proc = from.proc.clone();
    let message = abort.message.map(|text| text.to_string_lossy()).unwrap_or_default();
    let op =
        HostOp::Abort(AbortRequest { from: proc.clone(), status: abort.status, message, procs: abort.procs });
    cx.ask(Some(&proc), op, Then::Answer(from));
}
