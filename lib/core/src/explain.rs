//! Every pending operation can say who it waits for and since when.

use std::borrow::Cow;

use phalanx_wire::ProcId;

use crate::machine::Time;

/// One operation that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// What is going on, in the standard's words: `fence`, `get`, `lookup` ...
    pub operation: Cow<'static, str>,
    /// What it is about: a key, a group id, a set of participants.
    pub subject: String,
    /// Who asked.
    pub asked_by: Vec<ProcId>,
    /// Who has not arrived, or has not answered. Empty when it waits for the host.
    pub missing: Vec<ProcId>,
    pub since: Time,
    pub deadline: Option<Time>,
    /// What would end the wait.
    pub unblocked_by: Cow<'static, str>,
}

impl Waiting {
    /// What ends it if the host has it. Hosts may know more, and tell it themselves.
    pub const HOSTS_ANSWER: &str = "the host's answer";
}
