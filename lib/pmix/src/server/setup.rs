//! Setup: what a process must find in its environment.

use std::sync::Arc;

use phalanx_core::ServerConfig;
use phalanx_wire::ProcId;

use super::Server;
use crate::error::Error;

/// How processes find a server, apart from the server: it may be used in a forked child, where the server may not, and after
/// the server has ended.
#[derive(Clone, Debug)]
pub struct ForkSetup(Arc<ServerConfig>);

impl ForkSetup {
    /// The variables by which this process finds the server and knows who it is.
    pub fn environment(&self, proc: &ProcId) -> Vec<(String, String)> {
        self.0.environment(proc)
    }
}

impl Server {
    /// The variables by which a process finds this server and knows who it is (`PMIx_server_setup_fork`). Nobody's
    /// environment is changed. Answered on the calling thread, whichever that is.
    pub fn setup_fork(&self, proc: &ProcId) -> Result<Vec<(String, String)>, Error> {
        self.check_pid()?;
        Ok(self.config.environment(proc))
    }

    /// The same for hosts that set a process up when it has been forked already, as Slurm does.
    pub fn fork_setup(&self) -> ForkSetup {
        ForkSetup(self.config.clone())
    }
}
