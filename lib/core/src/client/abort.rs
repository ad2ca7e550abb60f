//! Abort: ends processes. Usually the caller is among them and never hears the answer.

use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::abort::Abort;
use phalanx_wire::{ProcId, Text};

use super::pending::{Awaited, list};
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_abort(
        &mut self,
        now: Time,
        id: CallId,
        status: Status,
        message: Option<Text>,
        procs: Vec<ProcId>,
        out: &mut Out,
    ) {
        let whole_job = [ProcId::all(&self.config.proc.nspace)];
        let subject = list(if procs.is_empty() { &whole_job } else { &procs });
        let request = Request::Abort(Abort { status, message, procs });
        let deadline = Some(now.after(PATIENCE));
        self.ask_until(
            now,
            Some(id),
            &request,
            Awaited::Status { operation: "abort", subject },
            deadline,
            out,
        );
    }
}

/// Who aborts wants to end, also when the server is beyond answering.
const PATIENCE: Duration = Duration::from_secs(30);
