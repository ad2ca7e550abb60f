//! Job control: directives for running processes (RFC0015).

use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::{Info, ProcId};

use super::pending::{Awaited, list};
use super::{Client, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_job_control(
        &mut self,
        now: Time,
        id: CallId,
        targets: Vec<ProcId>,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        let wanted: Vec<_> = directives.iter().map(|info| &info.key).collect();
        let awaited = Awaited::Infos { operation: "job control", subject: list(&wanted) };
        let request = Request::JobControl(JobControl { targets, directives: directives.clone() });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }
}
