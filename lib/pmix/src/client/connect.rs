//! Connect and disconnect: bind processes of several jobs together (RFC0003).

use phalanx_core::ClientCall;
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::{Info, ProcId};

use super::Client;
use crate::error::Error;

impl Client {
    /// Binds processes together, as if they were of one job: the end of one concerns all (`PMIx_Connect`). Returns when all
    /// of them have called it; each then has the data of the others' jobs.
    pub fn connect(&self, procs: &[ProcId], info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Connect(Connect {
            procs: procs.to_vec(),
            info: info.to_vec(),
            endpoints: Vec::new(),
        });
        self.done(call, || format!("connect of {} participants", procs.len()))
    }

    /// Undoes a connect of the same processes (`PMIx_Disconnect`). Returns when all of them have called it.
    pub fn disconnect(&self, procs: &[ProcId], info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::Disconnect(Connect {
            procs: procs.to_vec(),
            info: info.to_vec(),
            endpoints: Vec::new(),
        });
        self.done(call, || format!("disconnect of {} participants", procs.len()))
    }
}
