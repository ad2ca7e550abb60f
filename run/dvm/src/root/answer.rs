//! The right to answer a request: a value that is used once.
//!
//! A right that is dropped unused is a defect: debug builds stop at it, others answer with `PMIX_ERROR`.

use std::sync::mpsc::{Receiver, Sender, channel};

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::{ProcId, Text};

use crate::id::NodeId;
use crate::msg::Down;
use crate::ranges::Ranges;
use crate::root::turn::Cx;

/// The right to answer a request that a daemon waits for. It cannot be copied, and giving the answer uses it up.
#[must_use = "whoever has asked waits for the answer"]
#[derive(Debug)]
pub(super) struct Answer {
    to: NodeId,
    request: u64,
    /// Receives the request if the right is dropped; none once the answer has been given.
    dropped: Option<Sender<(NodeId, u64)>>,
}

/// Creates rights to answer, and learns of each one that was dropped unused.
#[derive(Debug)]
pub(super) struct Answers {
    dropped: Receiver<(NodeId, u64)>,
    on_drop: Sender<(NodeId, u64)>,
}

impl Default for Answers {
    fn default() -> Answers {
        let (on_drop, dropped) = channel();
        Answers { dropped, on_drop }
    }
}

impl Answers {
    pub(super) fn of(&self, to: NodeId, request: u64) -> Answer {
        Answer { to, request, dropped: Some(self.on_drop.clone()) }
    }

    /// Answers requests with a right that was dropped by mistake, so that no client waits for ever.
    pub(super) fn give_dropped(&self, cx: &mut Cx<'_>) {
        for (to, request) in self.dropped.try_iter() {
            debug_assert!(false, "request {request} of daemon {} was not answered", to.0);
            tracing::error!(request, daemon = to.0, "a request was not answered");
            reply(cx, to, request, HostReply::Done(Status::ERROR));
        }
    }
}

impl Answer {
    /// The daemon that sent the request.
    pub(super) fn origin(&self) -> NodeId {
        self.to
    }

    pub(super) fn give(mut self, cx: &mut Cx<'_>, answer: HostReply) {
        self.dropped = None;
        reply(cx, self.to, self.request, answer);
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

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            // Fails if the root itself is gone.
            let _ = dropped.send((self.to, self.request));
        }
    }
}

fn reply(cx: &mut Cx<'_>, to: NodeId, request: u64, reply: HostReply) {
    cx.cast(Ranges::single(to.0), Down::Reply { request, reply });
}
