//! A group that somebody has invited to, while it forms.

use std::collections::BTreeSet;

use phalanx_spec::Status;
use phalanx_wire::{Info, ProcId, Text};

/// What a leader waits for.
#[derive(Debug)]
pub(super) struct Invitation {
    pub(super) id: Text,
    /// A leader may form a group of others.
    pub(super) includes_leader: bool,
    /// Those who have not answered.
    pub(super) silent: BTreeSet<ProcId>,
    pub(super) accepted: Vec<ProcId>,
    /// What the members give each other.
    pub(super) given: Vec<Info>,
    /// Those who will not join.
    pub(super) lost: Vec<ProcId>,
    /// Whether, and why, the group does not form.
    pub(super) refused: Option<Status>,
    /// Whether the group may form without those.
    pub(super) may_lack_members: bool,
    pub(super) wants_context_id: bool,
}
