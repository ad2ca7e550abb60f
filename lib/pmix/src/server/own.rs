//! The calls of a client that a server's process makes, in their raw form.
//!
//! They reach the host in the name of the server where a client's would in that client's.

use phalanx_core::{ClientCall, ClientReturn, ServerProcessCall, ServerProcessReturn};

use super::{Server, unexpected};
use crate::error::Error;

impl Server {
    /// Makes any call of a client and waits for its end.
    pub fn perform(&self, call: ClientCall) -> Result<ClientReturn, Error> {
        self.check_pid()?;
        own(self.engine.call(ServerProcessCall::Client(call))?)
    }

    /// Makes any call of a client without waiting for its end, which is told to `then` where progress is made; there, nothing
    /// may block. `then` is not run if this fails.
    pub fn submit(
        &self,
        call: ClientCall,
        then: impl FnOnce(Result<ClientReturn, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.check_pid()?;
        self.engine.call_then(ServerProcessCall::Client(call), move |result| then(result.and_then(own)))
    }
}

fn own(result: ServerProcessReturn) -> Result<ClientReturn, Error> {
    match result {
        ServerProcessReturn::Client(result) => Ok(result),
        other => Err(unexpected("call of a server's own process", &other)),
    }
}
