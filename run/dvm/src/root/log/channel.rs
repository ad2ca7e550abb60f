//! The channels of log requests, and what goes where.

use phalanx_spec::{IofChannel, Status};
use phalanx_wire::{Info, Nspace, Text};

use crate::msg::Mail;

/// A channel, with what goes there.
#[derive(Debug)]
pub(super) enum Channel {
    /// To the readers of this stream.
    Stream(IofChannel, String),
    Syslog(Syslog, u8, Text),
    Mail(Mail),
    File(Text, Text),
    /// The record of this job, with the time that the requester stated.
    Record(Nspace, String, Option<u64>),
    /// To be published.
    Store(Vec<Info>),
}

/// Whose syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syslog {
    /// That of the requester's node.
    Local,
    /// That of the root's.
    Global,
    /// The global one, or else the local one.
    Any,
}

/// Why a text is not in a channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) status: Status,
    pub(super) why: String,
}

impl Fault {
    pub(super) fn new(status: Status, why: impl Into<String>) -> Fault {
        Fault { status, why: why.into() }
    }

    pub(super) fn bad(why: impl Into<String>) -> Fault {
        Fault::new(Status::ERR_BAD_PARAM, why)
    }
}
