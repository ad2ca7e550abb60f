//! Process sets: names that the host gives to sets of processes.

use phalanx_core::ServerCall;
use phalanx_wire::ProcId;

use super::Server;
use crate::error::Error;

impl Server {
    /// Names a set of processes (`PMIx_server_define_process_set`). Local processes are notified by an event.
    pub fn define_process_set(&self, name: &str, members: &[ProcId]) -> Result<(), Error> {
        let call = ServerCall::DefineProcessSet { name: name.to_owned(), members: members.to_vec() };
        self.done(call, || format!("definition of process set {name}"))
    }

    /// Removes the name (`PMIx_server_delete_process_set`).
    pub fn delete_process_set(&self, name: &str) -> Result<(), Error> {
        let call = ServerCall::DeleteProcessSet { name: name.to_owned() };
        self.done(call, || format!("deletion of process set {name}"))
    }
}
