//! Abort: ends processes. Usually the caller is among them and never gets the answer.

use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::abort::Abort;
use phalanx_wire::{ProcId, Text};

use super::link::Cx;
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_abort(
    cx: &mut Cx<'_>,
    id: CallId,
    status: Status,
    message: Option<Text>,
    procs: Vec<ProcId>,
) {
    let whole_job = [ProcId::all(&cx.link.config.proc.nspace)];
    let subject = list(if procs.is_empty() { &whole_job } else { &procs });
    let request = Request::Abort(Abort { status, message, procs });
    let deadline = Some(cx.now.after(PATIENCE));
    cx.ask_until(Some(id), &request, Awaited::Status { operation: "abort", subject }, deadline);
}

/// The caller wants to end, even if the server does not answer.
const PATIENCE: Duration = Duration::from_secs(30);
