//! Connect and disconnect: bind processes of several jobs together (RFC0003). Each learns of the others' jobs.

use phalanx_wire::cmd::connect::{Connect, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, ProcId};

use super::pending::{Awaited, list};
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_connect(
        &mut self,
        now: Time,
        id: CallId,
        procs: Vec<ProcId>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let procs = self.with_groups_resolved(procs);
        let awaited = Awaited::Connected { procs: procs.clone() };
        let request = Request::Connect(Connect { procs, info: info.clone(), endpoints: Vec::new() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn on_disconnect(
        &mut self,
        now: Time,
        id: CallId,
        procs: Vec<ProcId>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let procs = self.with_groups_resolved(procs);
        let awaited = Awaited::Status { operation: "disconnect", subject: list(&procs) };
        let request = Request::Disconnect(Connect { procs, info: info.clone(), endpoints: Vec::new() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn connected(&mut self, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
        let Reply { status, jobs } = Reply::decode(payload, self.config.dialect)?;
        for job in jobs {
            self.store.load_job(job);
        }
        Ok(ClientReturn::Done(status))
    }
}
