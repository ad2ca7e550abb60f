//! Job control: directives for running processes (RFC0015).

use phalanx_core::ClientCall;
use phalanx_wire::{Info, ProcId};

use super::Client;
use crate::error::Error;

impl Client {
    /// Directs running processes, or tells the host what to do when they end (`PMIx_Job_control`). No targets: the whole
    /// job.
    pub fn job_control(&self, targets: &[ProcId], directives: &[Info]) -> Result<Vec<Info>, Error> {
        let call = ClientCall::JobControl { targets: targets.to_vec(), directives: directives.to_vec() };
        self.infos(call, || "job control".into())
    }
}
