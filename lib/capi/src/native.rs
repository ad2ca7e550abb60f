//! The role of this process: a client, a tool, or a server that makes client calls itself.

use std::sync::Arc;

use phalanx_spec::{IofChannel, Rank, Scope};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{Info, Kval, ProcId, Value};
use pmix::screen::Part;
use pmix::{
    Client, ClientCall, ClientReturn, Error, Event, EventDone, HandlerId, Lookup, LookupRequest, OutputDone,
    Showing, Tool,
};

use crate::server::serving::Serving;

pub(crate) enum Native {
    Client(Client),
    Tool(Tool),
    Server(Arc<Serving>),
}

/// The same call for any role.
macro_rules! either {
    ($self:ident, $role:ident => $call:expr) => {
        match $self {
            Native::Client($role) => $call,
            Native::Tool($role) => $call,
            Native::Server(serving) => {
                let $role = &serving.server;
                $call
            }
        }
    };
}

impl Native {
    pub(crate) fn proc(&self) -> &ProcId {
        either!(self, role => role.proc())
    }

    pub(crate) fn perform(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        either!(self, role => role.perform(call))
    }

    pub(crate) fn submit(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        either!(self, role => role.submit(call, then))
    }

    pub(crate) fn keep_event_handler(
        &self,
        handler: impl FnMut(&Event, &[Info], EventDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        either!(self, role => role.keep_event_handler(handler))
    }

    pub(crate) fn forget_event_handler(&self, id: HandlerId) -> Result<(), Error> {
        either!(self, role => role.forget_event_handler(id))
    }

    pub(crate) fn keep_output_handler(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        either!(self, role => role.keep_output_handler(handler))
    }

    pub(crate) fn forget_output_handler(&self, id: HandlerId) -> Result<(), Error> {
        either!(self, role => role.forget_output_handler(id))
    }

    /// A server does not get the output of what it spawns.
    pub(crate) fn prepare_spawn(&self, spawn: &mut Spawn) -> Result<Option<Showing>, Error> {
        match self {
            Native::Client(client) => client.prepare_spawn(spawn),
            Native::Tool(tool) => tool.prepare_spawn(spawn),
            Native::Server(serving) => {
                serving.server.prepare_spawn(spawn);
                Ok(None)
            }
        }
    }

    pub(crate) fn perform_spawn(
        &self,
        spawn: Spawn,
        showing: Option<Showing>,
    ) -> Result<ClientReturn, Error> {
        match self {
            Native::Client(client) => client.perform_spawn(spawn, showing),
            Native::Tool(tool) => tool.perform_spawn(spawn, showing),
            Native::Server(serving) => serving.server.perform(ClientCall::Spawn(spawn)),
        }
    }

    pub(crate) fn parts_of(
        &self,
        sources: &[ProcId],
        directives: &[Info],
        has_callback: bool,
    ) -> Result<Vec<Part>, Error> {
        match self {
            Native::Client(client) => client.parts_of(sources, directives, has_callback),
            Native::Tool(tool) => tool.parts_of(sources, directives, has_callback),
            Native::Server(_) => Part::of(directives, has_callback, false),
        }
    }

    pub(crate) fn is_progress_thread(&self) -> bool {
        either!(self, role => role.is_progress_thread())
    }

    pub(crate) fn stop_progress_thread(&self, flushes: bool) {
        either!(self, role => role.stop_progress_thread(flushes));
    }

    pub(crate) fn progress(&self) {
        either!(self, role => role.progress());
    }

    pub(crate) fn known(&self, request: &LookupRequest) -> Result<Lookup, Error> {
        either!(self, role => role.known(request))
    }

    /// A known value of a client. The other roles take the longer path.
    pub(crate) fn value_at_hand(&self, nspace: &str, rank: Rank, key: &str) -> Option<Value> {
        match self {
            Native::Client(client) => client.value_at_hand(nspace, rank, key),
            Native::Tool(_) | Native::Server(_) => None,
        }
    }

    pub(crate) fn take_staged(&self) -> Result<Vec<(Scope, Vec<Kval>)>, Error> {
        either!(self, role => role.take_staged())
    }

    pub(crate) fn put_any(&self, scope: Scope, name: &str, value: Value) -> Result<(), Error> {
        either!(self, role => role.put_any(scope, name, value))
    }

    pub(crate) fn store_internal(&self, proc: &ProcId, name: &str, value: Value) -> Result<(), Error> {
        either!(self, role => role.store_internal(proc, name, value))
    }
}
