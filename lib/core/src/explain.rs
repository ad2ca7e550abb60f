//! Explains pending operations: what each waits for, and since when.

use std::borrow::Cow;

use phalanx_wire::ProcId;

use crate::machine::Time;

/// One operation that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The operation, in the standard's terms: `fence`, `get`, `lookup` ...
    pub operation: Cow<'static, str>,
    /// Its subject: a key, a group id, a set of participants.
    pub subject: String,
    /// The processes that asked.
    pub asked_by: Vec<ProcId>,
    /// The processes that have not arrived, or have not answered. Empty when it waits for the host.
    pub missing: Vec<ProcId>,
    pub since: Time,
    pub deadline: Option<Time>,
    /// What would end the wait.
    pub unblocked_by: Cow<'static, str>,
}

impl Waiting {
    /// What ends a wait for the host. Hosts may know more, and explain that themselves.
    pub const HOSTS_ANSWER: &str = "the host's answer";
}
