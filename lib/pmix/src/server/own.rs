//! Raw client calls of a server's process.
//!
//! They reach the host in the name of the server, where a client's calls would arrive in the client's name.

use phalanx_core::{
    ClientCall, ClientReturn, HandlerId, Lookup, LookupRequest, ServerProcessCall, ServerProcessReturn,
};
use phalanx_spec::{IofChannel, Scope};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{Info, Key, Kval, ProcId, Value};

use super::{Server, unexpected};
use crate::client::spawn::begin_here;
use crate::engine::{Callback, OutputDone};
use crate::error::Error;

impl Server {
    /// Makes any client call and waits for its result.
    pub fn perform(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.check_pid()?;
        own(self.engine.call(ServerProcessCall::Client(call))?)
    }

    /// Prepares a spawn by this process: programs for which no directory is named begin in ours.
    pub fn prepare_spawn(&self, spawn: &mut Spawn) {
        begin_here(&mut spawn.apps);
    }

    /// Makes any client call without waiting; its result goes to `then` where progress is made, which must not block. `then`
    /// does not run if this call fails.
    pub fn submit(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.call_then(ServerProcessCall::Client(call), move |result| then(result.and_then(own)))
    }

    /// Looks up a value that is known here, see [`get`](Server::get): never blocks, never asks the server.
    pub fn known(&self, request: &LookupRequest) -> Result<Lookup, Error> {
        self.check_pid()?;
        Ok(self.store.lookup(request))
    }

    /// Offers a value of this process, from the next commit by [`submit`](Server::submit) on (`PMIx_Put`).
    pub fn put_any(&self, scope: Scope, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        if ![Scope::LOCAL, Scope::REMOTE, Scope::GLOBAL, Scope::INTERNAL].contains(&scope) {
            return Err(Error::Scope(scope));
        }
        self.store.put(scope, kval(name, value)?);
        Ok(())
    }

    /// Takes the values put since the last commit.
    pub fn take_staged(&self) -> Result<Vec<(Scope, Vec<Kval>)>, Error> {
        self.check_pid()?;
        Ok(self.store.take_staged())
    }

    /// Stores a value of any process for this process alone (`PMIx_Store_internal`).
    pub fn store_internal(&self, proc: &ProcId, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.check_pid()?;
        let values = vec![kval(name, value)?];
        self.store.load_owner(OwnerData { owner: proc.clone(), values });
        Ok(())
    }

    /// Stores an output handler for a pull by [`submit`](Server::submit).
    pub fn keep_output_handler(
        &self,
        handler: impl FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send + 'static,
    ) -> Result<HandlerId, Error> {
        self.check_pid()?;
        self.engine.keep(Callback::Output(Box::new(handler)))
    }

    /// Drops a stored handler.
    pub fn forget_output_handler(&self, id: HandlerId) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.forget(id)
    }
}

fn kval(name: &str, value: impl Into<Value>) -> Result<Kval, Error> {
    let key = Key::new(name).map_err(|reason| Error::Key { key: name.to_owned(), reason })?;
    Ok(Kval { key, value: value.into() })
}

fn own(result: ServerProcessReturn) -> Result<ClientReturn, Error> {
    match result {
        ServerProcessReturn::Client(result) => Ok(result),
        other => Err(unexpected("call of a server's own process", &other)),
    }
}
