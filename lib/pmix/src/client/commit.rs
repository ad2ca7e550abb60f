//! Commit: sends the staged values to the server.

use phalanx_core::ClientCall;

use super::Client;
use crate::error::Error;

impl Client {
    /// Sends the values put so far to the server (`PMIx_Commit`).
    pub fn commit(&self) -> Result<(), Error> {
        self.check_pid()?;
        self.done(ClientCall::Commit(self.store.take_staged()), || "commit".into())
    }
}
