//! Groups: named sets of processes.

use phalanx_core::{ClientCall, ClientReturn, GroupFormed};
use phalanx_wire::cmd::group::{Construct, Leave};
use phalanx_wire::{Info, ProcId, Text};

use super::{Client, unexpected};
use crate::error::Error;

impl Client {
    /// Forms a group; all members call it (`PMIx_Group_construct`). With `pmix.grp.actxid` the host gives it a context id, a
    /// number that no other group has.
    pub fn group_construct(&self, name: &str, procs: &[ProcId], info: &[Info]) -> Result<GroupFormed, Error> {
        let call = ClientCall::GroupConstruct(Construct {
            id: Text::from(name),
            procs: procs.to_vec(),
            info: info.to_vec(),
        });
        self.formed(call, || format!("construction of group {name}"))
    }

    /// Invites processes to a group and waits for their answers, at most for `pmix.timeout` (`PMIx_Group_invite`). They get the
    /// event `PMIX_GROUP_INVITED`. If one declines, the group fails, unless `pmix.grp.opt` is set.
    pub fn group_invite(&self, name: &str, procs: &[ProcId], info: &[Info]) -> Result<GroupFormed, Error> {
        let call =
            ClientCall::GroupInvite { id: Text::from(name), procs: procs.to_vec(), info: info.to_vec() };
        self.formed(call, || format!("invitation to group {name}"))
    }

    /// Accepts an invitation and waits until the group is formed, or declines it and does not wait (`PMIx_Group_join`).
    pub fn group_join(
        &self,
        name: &str,
        leader: Option<&ProcId>,
        accept: bool,
        info: &[Info],
    ) -> Result<GroupFormed, Error> {
        let (id, leader) = (Text::from(name), leader.cloned());
        let call = ClientCall::GroupJoin { id, leader, accept, info: info.to_vec() };
        self.formed(call, || format!("joining of group {name}"))
    }

    fn formed(&self, call: ClientCall, operation: impl Fn() -> String) -> Result<GroupFormed, Error> {
        match self.call(call)? {
            ClientReturn::Group(result) => {
                result.map_err(|status| Error::Failed { operation: operation(), status })
            }
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Ends a group that this process is in; all members call it (`PMIx_Group_destruct`).
    pub fn group_destruct(&self, name: &str, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::GroupDestruct { id: Text::from(name), info: info.to_vec() };
        self.done(call, || format!("destruction of group {name}"))
    }

    /// Leaves a group; the others are notified by an event (`PMIx_Group_leave`).
    pub fn group_leave(&self, name: &str, info: &[Info]) -> Result<(), Error> {
        let call = ClientCall::GroupLeave(Leave { id: Text::from(name), info: info.to_vec() });
        self.done(call, || format!("leave of group {name}"))
    }
}
