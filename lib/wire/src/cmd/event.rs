//! NOTIFY, REGEVENTS, DEREGEVENTS, and the notification that a server sends on tag 0.

use phalanx_spec::{Range, Status};

use crate::info::Info;
use crate::name::ProcId;

/// A client raises an event; the source is the sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Notify {
    pub code: Status,
    pub range: Range,
    pub info: Vec<Info>,
}

/// `codes` empty asks for every event (a default handler).
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterEvents {
    pub codes: Vec<Status>,
    pub info: Vec<Info>,
}

/// Never answered.
#[derive(Clone, Debug, PartialEq)]
pub struct DeregisterEvents {
    pub codes: Vec<Status>,
}

/// What a server tells a client or tool of an event. `range` is absent on cached events of older servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub code: Status,
    pub source: ProcId,
    pub info: Vec<Info>,
    pub range: Option<Range>,
}
