//! The right to answer a request: a value that is used once.
//!
//! A right that is dropped unused is noticed at the end of the turn: debug builds stop there, others answer with `PMIX_ERROR`.

use phalanx_core::{HostReply, Right, Rights};
use phalanx_spec::Status;
use phalanx_wire::{ProcId, Text};

use crate::id::NodeId;
use crate::msg::Down;
use crate::ranges::Ranges;
use crate::root::turn::Cx;

/// The right to answer a daemon's request with this number.
#[must_use = "a daemon waits for the answer"]
#[derive(Debug)]
pub(super) struct Answer(Right<(NodeId, u64)>);

#[derive(Debug, Default)]
pub(super) struct Answers(Rights<(NodeId, u64)>);

impl Answers {
    pub(super) fn of(&self, to: NodeId, request: u64) -> Answer {
        Answer(self.0.make((to, request)))
    }

    /// Answers requests with a right that was dropped by mistake.
    pub(super) fn give_dropped(&self, cx: &mut Cx<'_>) {
        while let Some((to, request)) = self.0.next_dropped() {
            debug_assert!(false, "request {request} of daemon {} was not answered", to.0);
            tracing::error!(request, daemon = to.0, "a request was not answered");
            reply(cx, to, request, HostReply::Done(Status::ERROR));
        }
    }
}

impl Answer {
    /// The daemon that sent the request.
    pub(super) fn origin(&self) -> NodeId {
        self.0.to().0
    }

    pub(super) fn give(self, cx: &mut Cx<'_>, answer: HostReply) {
        let (to, request) = self.0.use_up();
        reply(cx, to, request, answer);
    }

    /// Answers with a status alone.
    pub(super) fn done(self, cx: &mut Cx<'_>, status: Status) {
        self.give(cx, HostReply::Done(status));
    }
}

/// A requester that waits for an answer.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) by: ProcId,
    /// The requester's name for the request.
    pub(super) id: Option<Text>,
    pub(super) answer: Answer,
}

impl Asker {
    pub(super) fn new(by: &ProcId, answer: Answer) -> Asker {
        Asker { by: by.clone(), id: None, answer }
    }
}

/// The requester's name for a request, to put before what it is about.
pub(super) fn id_of(askers: &[Asker]) -> String {
    let id = askers.iter().find_map(|asker| asker.id.as_ref());
    id.map(|id| format!("{}: ", id.to_string_lossy())).unwrap_or_default()
}

fn reply(cx: &mut Cx<'_>, to: NodeId, request: u64, reply: HostReply) {
    cx.cast(Ranges::single(to.0), Down::Reply { request, reply });
}
