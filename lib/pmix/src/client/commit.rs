//! Commit: hands what was put to the server.

use phalanx_core::ClientCall;

use super::Client;
use crate::error::Error;

impl Client {
    /// Hands what was put to the server (`PMIx_Commit`).
    pub fn commit(&self) -> Result<(), Error> {
        self.check_pid()?;
        self.done(ClientCall::Commit(self.store.take_staged()), || "commit".into())
    }
}
