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
}
