//! Spawn: starts another job.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::{App, Info, Nspace};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// Starts another job (`PMIx_Spawn`) and returns its namespace; its data are known here from then on. `job` holds
    /// directives for the whole of it.
    pub fn spawn(&self, job: &[Info], apps: &[App]) -> Result<Nspace, Error> {
        let operation = || {
            let programs = apps.iter().filter_map(|app| app.cmd.as_ref()).map(ToString::to_string);
            format!("spawn of {}", programs.collect::<Vec<_>>().join(", "))
        };
        match self.call(ClientCall::Spawn { job: job.to_vec(), apps: apps.to_vec() })? {
            ClientReturn::Spawned(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }
}
