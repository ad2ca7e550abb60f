//! Events: handlers, and raising events.

use phalanx_core::{ClientCall, Event, HandlerId, Verdict};
use phalanx_spec::{Range, Status, keys};
use phalanx_wire::{Info, InfoList, Value};

use super::Client;
use crate::engine::{Callback, EventDone};
use crate::error::Error;

impl Client {
    /// Calls `handler` on the progress thread whenever one of these events happens; no codes: any event
    /// (`PMIx_Register_event_handler`).
    ///
    /// Handlers of one event run one after the other: single-code handlers before those of several codes before default ones,
    /// newer before older; `info` can change this. Each gets the results of those before it. A status of
    /// `PMIX_EVENT_ACTION_COMPLETE` ends the chain.
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
        let registered = self.done(call, || "registration of an event handler".into());
        if registered.is_err() {
            self.engine.forget(id)?;
        }
        registered.map(|()| id)
    }

    /// Stores a handler that may complete later, for a registration by [`submit`](Client::submit).
    pub fn keep_event_handler(
        &self,
        mut handler: impl FnMut(&Event, &[Info], EventDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        let shown = self.shown.clone();
        self.engine.keep(Callback::Event(Box::new(move |event, results, done| {
            if event.code == Status::EVENT_JOB_END
                && let Some(Value::Proc(job)) = event.info.find(keys::EVENT_AFFECTED_PROC)
            {
                shown.settle_job(&job.nspace);
            }
            handler(event, results, done);
        })))
    }

    /// Drops a stored handler.
    pub fn forget_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.engine.forget(id)
    }

    /// Removes a handler; it is not called any more when this returns (`PMIx_Deregister_event_handler`).
    pub fn deregister_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.done(ClientCall::DeregisterEvents { handler: id }, || {
            "deregistration of an event handler".into()
        })?;
        self.engine.forget(id)
    }

    /// Raises an event (`PMIx_Notify_event`). Handlers of this process run as well, if it is in range.
    pub fn notify(&self, code: Status, range: Range, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Notify { code, range, info: info.to_vec() };
        self.done(call, || format!("notification of {code}"))
    }
}
