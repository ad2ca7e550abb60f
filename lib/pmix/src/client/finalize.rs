//! Finalize: says goodbye.

use phalanx_core::ClientCall;
use phalanx_wire::Info;

use super::Client;
use crate::error::Error;

impl Client {
    /// Says goodbye to the server and ends the progress thread (`PMIx_Finalize`). With `pmix.embed.barrier` only after all
    /// processes of the job have come this far.
    pub fn finalize(self, info: &[Info]) -> Result<(), Error> {
        self.done(ClientCall::Finalize { info: info.to_vec() }, || "finalize".into())
    }

    /// Ends the client like [`finalize`](Client::finalize) for all who share it; later calls are refused.
    pub fn close(&self, info: &[Info]) -> Result<(), Error> {
        let ended = self.done(ClientCall::Finalize { info: info.to_vec() }, || "finalize".into());
        if !matches!(ended, Err(Error::OnProgressThread | Error::Forked)) {
            self.engine.stop();
        }
        ended
    }
}
