//! Setup: what a process must find in its environment.

use phalanx_wire::ProcId;

use super::Server;
use crate::error::Error;

impl Server {
    /// The variables by which a process finds this server and knows who it is (`PMIx_server_setup_fork`). Nobody's
    /// environment is changed. Answered on the calling thread, whichever that is.
    pub fn setup_fork(&self, proc: &ProcId) -> Result<Vec<(String, String)>, Error> {
        self.check_pid()?;
        Ok(self.config.environment(proc))
    }
}
