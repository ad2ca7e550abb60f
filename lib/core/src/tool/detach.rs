//! Detach: leaves one server, or all of them when the tool finalizes.

use phalanx_spec::Status;
use phalanx_wire::ProcId;

use super::{Ending, Out, Own, Tool, ToolReturn};
use crate::client::{ClientCall, ClientReturn};
use crate::machine::{CallId, Output, Time};

impl Tool {
    pub(super) fn on_detach(&mut self, now: Time, id: CallId, server: &ProcId, out: &mut Out) {
        let Some(session) = self.session_of(server) else {
            return out.push(Output::Return { id, result: ToolReturn::Done(Status::ERR_NOT_FOUND) });
        };
        let goodbye = ClientCall::Finalize { info: Vec::new() };
        self.make_call(now, session, goodbye, Own::Detach { session, call: id }, out);
    }

    pub(super) fn on_detached(&mut self, number: u64, call: CallId, out: &mut Out) {
        if self.primary == Some(number) {
            // It stays as an unreachable primary server until another is set.
            if let Some(session) = self.sessions.get_mut(&number) {
                session.client.retire();
            }
        } else {
            self.sessions.remove(&number);
        }
        self.pulls.retain(|_, session| *session != number);
        out.push(Output::Return { id: call, result: ToolReturn::Done(Status::SUCCESS) });
    }

    /// Finalizes at every server. Directives are for the primary one.
    pub(super) fn on_finalize(&mut self, now: Time, id: CallId, call: ClientCall, out: &mut Out) {
        if self.ending.is_some() || self.sessions.is_empty() {
            return self.end(id, Status::ERR_INIT, out);
        }
        let all: Vec<u64> = self.sessions.keys().copied().collect();
        self.ending = Some(Ending { call: id, open: all.len() });
        for session in all {
            let goodbye = match self.primary == Some(session) {
                true => call.clone(),
                false => ClientCall::Finalize { info: Vec::new() },
            };
            self.make_call(now, session, goodbye, Own::Goodbye, out);
        }
    }

    pub(super) fn on_goodbye(&mut self, out: &mut Out) {
        let Some(ending) = &mut self.ending else { return };
        ending.open -= 1;
        if ending.open == 0 {
            let call = ending.call;
            self.end(call, Status::SUCCESS, out);
        }
    }

    fn end(&mut self, call: CallId, status: Status, out: &mut Out) {
        let result = ToolReturn::Client(ClientReturn::Done(status));
        out.push(Output::Return { id: call, result });
    }

    /// The connection to this server, if there is one. Any rank matches if the namespace has only one server.
    pub(super) fn session_of(&self, server: &ProcId) -> Option<u64> {
        let connected = self.sessions.iter().filter(|(_, session)| session.is_connected());
        let mut matching = connected.filter(|(_, s)| s.client.server().is_some_and(|it| server.covers(it)));
        matching.next().map(|(number, _)| *number)
    }
}
