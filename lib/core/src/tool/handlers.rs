//! Event handlers: registered with every server of the tool, including later ones.
//!
//! The program waits for the primary server's answer only; if that refuses, the handler is deregistered from the others.

use phalanx_spec::Status;
use phalanx_wire::Info;

use super::{Out, Own, Tool};
use crate::client::{ClientCall, ClientReturn};
use crate::machine::{CallId, HandlerId, Time};

#[derive(Debug, Default)]
pub(super) struct Handlers(Vec<Handler>);

#[derive(Debug)]
struct Handler {
    id: HandlerId,
    codes: Vec<Status>,
    info: Vec<Info>,
    /// The pending registration.
    call: Option<CallId>,
}

impl Handlers {
    pub(super) fn add(&mut self, call: CallId, id: HandlerId, codes: Vec<Status>, info: Vec<Info>) {
        self.0.push(Handler { id, codes, info, call: Some(call) });
    }

    pub(super) fn remove(&mut self, id: HandlerId) {
        self.0.retain(|handler| handler.id != id);
    }
}

impl Tool {
    /// Registers all handlers with a new server.
    pub(super) fn tell_handlers(&mut self, now: Time, session: u64, out: &mut Out) {
        let calls: Vec<ClientCall> = self.handlers.0.iter().map(Handler::registration).collect();
        for call in calls {
            self.make_call(now, session, call, Own::Nothing, out);
        }
    }

    /// Makes the same call of all servers but the primary one.
    pub(super) fn tell_others(&mut self, now: Time, call: &ClientCall, out: &mut Out) {
        let up = self.sessions.iter().filter(|(number, s)| s.up && Some(**number) != self.primary);
        let others: Vec<u64> = up.map(|(number, _)| *number).collect();
        for session in others {
            self.make_call(now, session, call.clone(), Own::Nothing, out);
        }
    }

    /// Handles the primary server's answer, if it was to a registration.
    pub(super) fn on_registered(&mut self, now: Time, call: CallId, result: &ClientReturn, out: &mut Out) {
        let Some(handler) = self.handlers.0.iter_mut().find(|handler| handler.call == Some(call)) else {
            return;
        };
        handler.call = None;
        let id = handler.id;
        if *result != ClientReturn::Done(Status::SUCCESS) {
            self.handlers.remove(id);
            self.tell_others(now, &ClientCall::DeregisterEvents { handler: id }, out);
        }
    }
}

impl Handler {
    fn registration(&self) -> ClientCall {
        ClientCall::RegisterEvents { handler: self.id, codes: self.codes.clone(), info: self.info.clone() }
    }
}
