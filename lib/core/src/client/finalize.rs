//! Finalize: says goodbye, and leaves even if nobody answers.

use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::{Info, InfoList, ProcId};

use super::handshake::{Phase, SERVER};
use super::pending::{Awaited, deadline_of};
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Output, Time};

pub(super) const ATTRIBUTES: &[&str] = &[keys::EMBED_BARRIER, keys::TIMEOUT];

impl Client {
    pub(super) fn on_finalize(&mut self, now: Time, id: CallId, info: &[Info], out: &mut Out) {
        match self.phase {
            Phase::Ready => {}
            Phase::Alone | Phase::Lost => {
                self.phase = Phase::Ended;
                return out.push(Output::Return { id, result: ClientReturn::Done(Status::SUCCESS) });
            }
            _ => return out.push(Output::Return { id, result: ClientReturn::Done(Status::ERR_INIT) }),
        }
        self.phase = Phase::Finalizing;
        if !info.is_set(keys::EMBED_BARRIER) {
            return self.say_goodbye(now, Some(id), out);
        }
        let everybody = vec![ProcId::all(&self.config.proc.nspace)];
        let fence = Request::Fence(Fence { procs: everybody, info: Vec::new() });
        self.ask_until(now, Some(id), &fence, Awaited::LastFence, deadline_of(now, info), out);
    }

    /// Nobody called: the barrier answers after its time ran out, and goodbye has been said.
    pub(super) fn say_goodbye(&mut self, now: Time, call: Option<CallId>, out: &mut Out) {
        if call.is_some() {
            let deadline = Some(now.after(PATIENCE));
            self.ask_until(now, call, &Request::Finalize, Awaited::Finalize, deadline, out);
        }
    }

    pub(super) fn on_goodbye(&mut self, call: Option<CallId>, out: &mut Out) {
        self.phase = Phase::Ended;
        for entry in self.pending.take_all() {
            let result = entry.what.failed(Status::ERR_LOST_CONNECTION);
            self.give_back(entry.call, result, out);
        }
        self.give_back(call, ClientReturn::Done(Status::SUCCESS), out);
        out.push(Output::Close { conn: SERVER });
    }
}

/// How long a server may take to say goodbye.
const PATIENCE: Duration = Duration::from_secs(2);
