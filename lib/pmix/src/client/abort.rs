//! Abort: ends processes.

use phalanx_core::ClientCall;
use phalanx_spec::Status;
use phalanx_wire::{ProcId, Text};

use super::Client;
use crate::error::Error;

impl Client {
    /// Ends these processes; none: the whole job (`PMIx_Abort`). Usually this one is among them, and the call does not
    /// return. `status` is what the launcher reports.
    pub fn abort(&self, status: i32, message: &str, procs: &[ProcId]) -> Result<(), Error> {
        let message = (!message.is_empty()).then(|| Text::from(message));
        let call = ClientCall::Abort { status: Status(status), message, procs: procs.to_vec() };
        self.done(call, || "abort".into())
    }
}
