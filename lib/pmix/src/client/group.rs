//! Groups: sets of processes with a name.

use phalanx_core::{ClientCall, ClientReturn, GroupFormed};
use phalanx_wire::{Info, ProcId, Text};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// Forms a group; all members call it (`PMIx_Group_construct`). With `pmix.grp.actxid` the host gives it a context id, a
    /// number that no other group has.
    pub fn group_construct(&self, name: &str, procs: &[ProcId], info: &[Info]) -> Result<GroupFormed, Error> {
        let operation = || format!("construction of group {name}");
        let call =
            ClientCall::GroupConstruct { id: Text::from(name), procs: procs.to_vec(), info: info.to_vec() };
        match self.call(call)? {
            ClientReturn::Group(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Ends a group that this process has helped to form; all members call it (`PMIx_Group_destruct`).
    pub fn group_destruct(&self, name: &str, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::GroupDestruct { id: Text::from(name), info: info.to_vec() };
        self.done(call, || format!("destruction of group {name}"))
    }

    /// Leaves a group; the others are told by an event (`PMIx_Group_leave`).
    pub fn group_leave(&self, name: &str, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::GroupLeave { id: Text::from(name), info: info.to_vec() };
        self.done(call, || format!("leave of group {name}"))
    }
}
