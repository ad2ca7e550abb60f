//! Fence: waits for other processes, and with `pmix.collect` lets the servers exchange what was committed.
//!
//! The data do not come with the reply. A get finds them in a file that a server of ours names, else at the server, which by
//! then has them.

use phalanx_wire::cmd::fence::{Fence, Reply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, ProcId};

use super::commit::status;
use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_fence(
        &mut self,
        now: Time,
        id: CallId,
        procs: Vec<ProcId>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let me = &self.config.proc;
        if self.is_alone() && procs.iter().all(|proc| proc.covers(me)) {
            return self.done_alone(id, out);
        }
        let procs = if procs.is_empty() { vec![ProcId::all(&me.nspace)] } else { procs };
        let procs = self.with_groups_resolved(procs);
        let awaited = Awaited::Fence { procs: procs.clone() };
        let request = Request::Fence(Fence { procs, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn fenced(&self, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
        if self.config.files.is_none() {
            return status(payload, self.config.dialect);
        }
        let reply = Reply::decode(payload, self.config.dialect)?;
        // Files of before are named again if they are still good.
        self.store.set_collected(&reply.collected);
        Ok(ClientReturn::Done(reply.status))
    }
}
