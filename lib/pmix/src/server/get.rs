//! Get: committed values of local processes, for other servers; and values for this process itself.

use phalanx_core::{ClientCall, ClientReturn, LookupRequest, ServerCall, ServerReturn};
use phalanx_spec::Status;
use phalanx_wire::{Blob, Info, Key, ProcId, Value};

use super::{Server, unexpected};
use crate::error::Error;

impl Server {
    /// The committed values of a local process, for [`Host::direct_modex`](super::Host::direct_modex) of another server
    /// (`PMIx_server_dmodex_request`). Waits until the process has committed `key`, or anything at all.
    pub fn dmodex_request(&self, proc: &ProcId, key: Option<Key>) -> Result<Blob, Error> {
        committed(self.call(ServerCall::DirectModex { proc: proc.clone(), key })?, proc)
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn dmodex_request_then(
        &self,
        proc: &ProcId,
        key: Option<Key>,
        then: impl FnOnce(Result<Blob, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let proc = proc.clone();
        self.call_then(ServerCall::DirectModex { proc: proc.clone(), key }, move |result| {
            then(result.and_then(|result| committed(result, &proc)));
        })
    }

    /// The value of a key (`PMIx_Get`): of a process, of a job (rank WILDCARD), or of a node or app that `info` names. The
    /// directives are those of [`Client::get`](crate::Client::get).
    pub fn get(&self, proc: &ProcId, name: &str, info: &[Info]) -> Result<Value, Error> {
        let key = Key::new(name).map_err(|reason| Error::Key { key: name.to_owned(), reason })?;
        let operation = || format!("get of {name} of {proc}");
        let request = LookupRequest::new(proc.clone(), Some(key), info);
        match self.perform(ClientCall::Get { request, info: info.to_vec() })? {
            ClientReturn::Value(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }
}

fn committed(result: ServerReturn, proc: &ProcId) -> Result<Blob, Error> {
    let operation = || format!("request for what {proc} has committed");
    match result {
        // The process has committed other keys, and the time for this one is over.
        ServerReturn::Modex(Err(Status::ERR_PARTIAL_SUCCESS)) => {
            Err(Error::Failed { operation: operation(), status: Status::ERR_NOT_FOUND })
        }
        ServerReturn::Modex(result) => {
            result.map_err(|status| Error::Failed { operation: operation(), status })
        }
        other => Err(unexpected(&operation(), &other)),
    }
}
