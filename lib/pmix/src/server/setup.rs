//! Setup: what a process must find in its environment.

use phalanx_core::{ServerCall, ServerReturn};
use phalanx_wire::ProcId;

use super::{Server, unexpected};
use crate::error::Error;

impl Server {
    /// The variables by which a process finds this server and knows who it is (`PMIx_server_setup_fork`). Nobody's
    /// environment is changed.
    pub fn setup_fork(&self, proc: &ProcId) -> Result<Vec<(String, String)>, Error> {
        match self.call(ServerCall::SetupFork(proc.clone()))? {
            ServerReturn::Environment(variables) => Ok(variables),
            other => Err(unexpected("setup of a process's environment", &other)),
        }
    }
}
