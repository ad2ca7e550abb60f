//! Job control: directives for running processes (RFC0015).

use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::{Info, ProcId};

use super::link::Cx;
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_job_control(cx: &mut Cx<'_>, id: CallId, targets: Vec<ProcId>, directives: Vec<Info>) {
    let wanted: Vec<_> = directives.iter().map(|info| &info.key).collect();
    let awaited = Awaited::Infos { operation: "job control", subject: list(&wanted) };
    let request = Request::JobControl(JobControl { targets, directives: directives.clone() });
    cx.ask(Some(id), &request, awaited, &directives);
}
