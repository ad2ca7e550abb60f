//! Get: values of processes and jobs. Known values are returned on the caller's thread.

use phalanx_core::{ClientCall, ClientReturn, Lookup, LookupRequest};
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Info, ProcId, Value};

use super::{Client, key, unexpected};
use crate::error::Error;

impl Client {
    /// The value of a key (`PMIx_Get`): of a process, of a job (rank WILDCARD), or of a node or app that `info` names.
    ///
    /// A value that is known here is returned at once, on this thread. Otherwise the server is asked, which waits until the
    /// process has committed the key, unless `info` changes that: `pmix.optional` never asks, `pmix.immediate` does not
    /// wait, `pmix.timeout` limits the wait, in seconds.
    pub fn get(&self, proc: &ProcId, name: &str, info: &[Info]) -> Result<Value, Error> {
        self.check_pid()?;
        self.hear_of_restarts(proc.rank);
        if info.is_empty()
            && let Some(value) = self.store.value(proc.nspace.as_str(), proc.rank, name)
        {
            return Ok(value);
        }
        self.look_up(LookupRequest::new(proc.clone(), Some(key(name)?), info), info)
    }

    /// The same without waiting (`PMIx_Get_nb`): `then` runs at once if the value is known here, otherwise where progress is
    /// made; it must not block. It does not run if this call fails.
    pub fn get_then(
        &self,
        proc: &ProcId,
        name: &str,
        info: &[Info],
        then: impl FnOnce(Result<Value, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("get of {name} of {proc}");
        let request = LookupRequest::new(proc.clone(), Some(key(name)?), info);
        match self.known(&request)? {
            Lookup::Hit(value) => then(Ok(value)),
            Lookup::Absent => then(Err(Error::Failed { operation, status: Status::ERR_NOT_FOUND })),
            Lookup::AskServer => {
                let call = ClientCall::Get { request, info: info.to_vec() };
                return self.submit(call, move |result| {
                    then(result.and_then(|result| match result {
                        ClientReturn::Value(value) => {
                            value.map_err(|status| Error::Failed { operation, status })
                        }
                        other => Err(unexpected(&operation, &other)),
                    }));
                });
            }
        }
        Ok(())
    }

    /// All values that a process has put and committed, and the host's values of it.
    pub fn get_all(&self, proc: &ProcId, info: &[Info]) -> Result<Vec<Info>, Error> {
        self.check_pid()?;
        match self.look_up(LookupRequest::new(proc.clone(), None, info), info)? {
            Value::DataArray(array) => Ok(array.infos().cloned().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// A value of this job as a whole, its session, or this process's node and app: `get` with rank WILDCARD.
    pub fn get_job(&self, name: &str) -> Result<Value, Error> {
        self.get(&self.job(), name, &[])
    }

    /// The server may have reported that values of another process are obsolete.
    pub(super) fn hear_of_restarts(&self, rank: Rank) {
        if rank != Rank::WILDCARD && rank != self.me.rank {
            self.engine.hear();
        }
    }

    fn look_up(&self, request: LookupRequest, info: &[Info]) -> Result<Value, Error> {
        // Made only where needed: a hit takes less time than formatting this text.
        let operation = |request: &LookupRequest| match &request.key {
            Some(key) => format!("get of {key} of {}", request.proc),
            None => format!("get of everything of {}", request.proc),
        };
        let (operation, result) = match self.store.lookup(&request) {
            Lookup::Hit(value) => return Ok(value),
            Lookup::Absent => (operation(&request), Err(Status::ERR_NOT_FOUND)),
            Lookup::AskServer => {
                let operation = operation(&request);
                match self.call(ClientCall::Get { request, info: info.to_vec() })? {
                    ClientReturn::Value(result) => (operation, result),
                    other => return Err(unexpected(&operation, &other)),
                }
            }
        };
        result.map_err(|status| Error::Failed { operation, status })
    }
}
