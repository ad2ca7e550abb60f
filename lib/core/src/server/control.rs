//! Job and session control: pause, signal, end, clean up behind processes. The host carries it out.

use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::session::SessionControl;

use super::host::Then;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::HostOp;

pub(super) fn on_job_control(cx: &mut Cx<'_>, from: Asker, request: JobControl) {
    let mut directives = request.directives;
    directives.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::JobControl { from: proc.clone(), targets: request.targets, directives };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}

pub(super) fn on_session_control(cx: &mut Cx<'_>, from: Asker, request: SessionControl) {
    let mut directives = request.directives;
    directives.extend(from.identity());
    let proc = from.proc.clone();
    let op = HostOp::SessionControl { from: proc.clone(), session: request.session, directives };
    cx.ask(Some(&proc), op, Then::AnswerInfos(from));
}
