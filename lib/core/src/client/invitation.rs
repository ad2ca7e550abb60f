//! A group under invitation, at its leader.

use std::collections::BTreeSet;

use phalanx_spec::Status;
use phalanx_wire::{Info, ProcId, Text};

/// The state of an invitation.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) id: Text,
    /// False if the leader forms a group of other processes.
    pub(super) includes_leader: bool,
    /// Invited processes that have not answered.
    pub(super) silent: BTreeSet<ProcId>,
    pub(super) accepted: Vec<ProcId>,
    /// What the members exchange.
    pub(super) given: Vec<Info>,
    /// Invited processes that will not join.
    pub(super) lost: Vec<ProcId>,
    /// Why the group does not form, if so.
    pub(super) refused: Option<Status>,
    /// Whether the group may form without the lost ones.
    pub(super) may_lack_members: bool,
    pub(super) wants_context_id: bool,
}
