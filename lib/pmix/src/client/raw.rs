//! Raw calls, for bindings to other languages: any call, with or without waiting.

use phalanx_core::{ClientCall, ClientReturn, Lookup, LookupRequest};
use phalanx_spec::{Rank, Scope};
use phalanx_wire::{Kval, Value};

use super::Client;
use crate::error::Error;

impl Client {
    /// Makes any call without waiting; its result goes to `then` on the progress thread, which must not block. `then` does
    /// not run if this call fails.
    pub fn submit(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.call_then(call, then)
    }

    /// Makes any call and waits for its result.
    pub fn perform(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.call(call)
    }

    /// Looks up a value that is known here, see [`get`](Client::get): never blocks, never asks the server.
    pub fn known(&self, request: &LookupRequest) -> Result<Lookup, Error> {
        self.check_pid()?;
        self.hear_of_restarts(request.proc.rank);
        Ok(self.store.lookup(request))
    }

    /// The result of [`known`](Client::known) without directives, by borrowed names: allocates only the value.
    pub fn value_at_hand(&self, nspace: &str, rank: Rank, key: &str) -> Option<Value> {
        self.check_pid().ok()?;
        self.hear_of_restarts(rank);
        self.store.value(nspace, rank, key)
    }

    /// Takes the values put since the last commit, for a commit by [`submit`](Client::submit).
    pub fn take_staged(&self) -> Result<Vec<(Scope, Vec<Kval>)>, Error> {
        self.check_pid()?;
        Ok(self.store.take_staged())
    }

    /// Whether this is the thread that runs callbacks: blocking calls are refused there.
    pub fn is_progress_thread(&self) -> bool {
        self.engine.is_progress_thread()
    }
}
