//! The right to answer a request: a value that is used once.

use phalanx_core::HostReply;
use phalanx_spec::Status;

use crate::id::NodeId;
use crate::msg::Down;
use crate::ranges::Ranges;
use crate::root::Cx;

/// Some daemon waits for this. It cannot be copied, and giving the answer uses it up.
#[must_use = "whoever has asked waits for the answer"]
#[derive(Debug)]
pub(super) struct Answer {
    to: NodeId,
    request: u64,
}

impl Answer {
    pub(super) fn new(to: NodeId, request: u64) -> Answer {
        Answer { to, request }
    }

    /// The daemon that has asked.
    pub(super) fn origin(&self) -> NodeId {
        self.to
    }

    pub(super) fn give(self, cx: &mut Cx<'_>, reply: HostReply) {
        let Answer { to, request } = self;
        cx.cast(Ranges::single(to.0), Down::Reply { request, reply });
    }

    /// With a status alone.
    pub(super) fn done(self, cx: &mut Cx<'_>, status: Status) {
        self.give(cx, HostReply::Done(status));
    }
}
