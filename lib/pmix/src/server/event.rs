//! Events: those that the host raises, and handlers of the server's own process.

use phalanx_core::{ClientCall, Event, HandlerId, ServerCall, Verdict};
use phalanx_spec::Status;
use phalanx_wire::Info;

use super::Server;
use crate::client::done as own_done;
use crate::engine::{Callback, EventDone};
use crate::error::Error;

impl Server {
    /// Notifies local processes of an event (`PMIx_Notify_event`): one from another node, or the host's own, which has the
    /// server as its source. It is not passed to the host. Handlers of this process run as well.
    pub fn notify(&self, event: Event) -> Result<(), Error> {
        let operation = format!("notification of {}", event.code);
        match self.notification(event) {
            Notification::Foreign(call) => self.done(call, || operation),
            Notification::Own(call) => own_done(self.perform(call)?, || operation),
        }
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn notify_then(
        &self,
        event: Event,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("notification of {}", event.code);
        match self.notification(event) {
            Notification::Foreign(call) => self.done_then(call, || operation, then),
            Notification::Own(call) => self.submit(call, move |result| {
                then(result.and_then(|result| own_done(result, || operation)));
            }),
        }
    }

    fn notification(&self, event: Event) -> Notification {
        match event.source == *self.proc() {
            true => Notification::Own(ClientCall::Notify {
                code: event.code,
                range: event.range,
                info: event.info,
            }),
            false => Notification::Foreign(ServerCall::Notify(event)),
        }
    }

    /// Calls `handler` whenever one of these events happens; no codes: any event (`PMIx_Register_event_handler`). Directives
    /// and order are those of [`Client::register_event_handler`](crate::Client::register_event_handler).
    pub fn register_event_handler(
        &self,
        codes: &[Status],
        info: &[Info],
        handler: impl FnMut(&Event, &[Info]) -> Verdict + Send + 'static,
    ) -> Result<HandlerId, Error> {
        let mut handler = handler;
        let id = self.keep_event_handler(move |event: &Event, results: &[Info], done: EventDone| {
            done.complete(handler(event, results));
        })?;
        let call = ClientCall::RegisterEvents { handler: id, codes: codes.to_vec(), info: info.to_vec() };
        let registered = own_done(self.perform(call)?, || "registration of an event handler".into());
        if registered.is_err() {
            self.engine.forget(id)?;
        }
        registered.map(|()| id)
    }

    /// Stores a handler that may complete later, for a registration by [`submit`](Server::submit).
    pub fn keep_event_handler(
        &self,
        handler: impl FnMut(&Event, &[Info], EventDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        self.engine.keep(Callback::Event(Box::new(handler)))
    }

    /// Drops a stored handler.
    pub fn forget_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.forget(id)
    }

    /// Removes a handler; it is not called any more when this returns (`PMIx_Deregister_event_handler`).
    pub fn deregister_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        let ended = self.perform(ClientCall::DeregisterEvents { handler: id })?;
        own_done(ended, || "deregistration of an event handler".into())?;
        self.engine.forget(id)
    }
}

enum Notification {
    Own(ClientCall),
    Foreign(ServerCall),
}
