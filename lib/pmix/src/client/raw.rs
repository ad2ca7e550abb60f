//! Calls in their raw form, for bindings to other languages: any call, waited for or not.

use phalanx_core::{ClientCall, ClientReturn, Lookup, LookupRequest};
use phalanx_spec::{Rank, Scope};
use phalanx_wire::{Kval, Value};

use super::Client;
use crate::error::Error;

impl Client {
    /// Makes any call without waiting for its end, which is told to `then` on the progress thread; there, nothing may block.
    /// `then` is not run if this fails.
    pub fn submit(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.call_then(call, then)
    }

    /// Makes any call and waits for its end.
    pub fn perform(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.call(call)
    }

    /// What is known here, see [`get`](Client::get): never blocks, never asks the server.
    pub fn known(&self, request: &LookupRequest) -> Result<Lookup, Error> {
        self.check_pid()?;
        Ok(self.store.lookup(request))
    }

    /// What [`known`](Client::known) finds without directives, named as it is: nothing is made but the value.
    pub fn value_at_hand(&self, nspace: &str, rank: Rank, key: &str) -> Option<Value> {
        self.check_pid().ok().and_then(|()| self.store.value(nspace, rank, key))
    }

    /// Takes what was put since the last commit, for a commit by [`submit`](Client::submit).
    pub fn take_staged(&self) -> Result<Vec<(Scope, Vec<Kval>)>, Error> {
        self.check_pid()?;
        Ok(self.store.take_staged())
    }

    /// Whether this is the thread on which callbacks run: blocking calls are refused there.
    pub fn is_progress_thread(&self) -> bool {
        self.engine.is_progress_thread()
    }
}
