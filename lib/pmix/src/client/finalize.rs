//! Finalize: leaves the server.

use phalanx_core::ClientCall;
use phalanx_wire::Info;

use super::{Client, done};
use crate::error::Error;

impl Client {
    /// Disconnects from the server and ends the progress thread (`PMIx_Finalize`). With `pmix.embed.barrier`, waits first
    /// until all processes of the job have called it.
    pub fn finalize(self, info: &[Info]) -> Result<(), Error> {
        self.close(info)
    }

    /// Ends the client like [`finalize`](Client::finalize), for all its owners; later calls are refused.
    pub fn close(&self, info: &[Info]) -> Result<(), Error> {
        self.check_pid()?;
        self.end_screens();
        let result = self.engine.call_last(ClientCall::Finalize { info: info.to_vec() })?;
        self.close_screens();
        done(result, || "finalize".into())
    }
}
