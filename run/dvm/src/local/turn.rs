//! One turn of a daemon for its own node: its time, and the actions that it takes.

use std::collections::VecDeque;

use phalanx_core::server::ServerCall;
use phalanx_core::{CallId, HostCall, HostReply, Time, Waiting};

use crate::effect::Effect;
use crate::id::NodeId;
use crate::msg::{OpId, OutputPiece, Part, Side, Survey, Up};

/// An action to take; actions are carried out in order.
#[derive(Debug)]
pub(crate) enum FromLocal {
    /// Send to the root.
    Post(Up),
    /// This daemon's part of an operation.
    Join(OpId, Part),
    /// Send to another daemon.
    Send(NodeId, Side),
    Stream(OutputPiece),
    /// What waits in our server; to be completed with everything else that waits at this node.
    Explained {
        survey: Survey,
        waiting: Vec<Waiting>,
    },
    Effect(Effect),
    Call {
        id: CallId,
        call: ServerCall,
    },
    Reply {
        call: HostCall,
        reply: HostReply,
    },
}

/// One turn: the current time and the outbox.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) out: &'a mut VecDeque<FromLocal>,
}

impl Cx<'_> {
    pub(super) fn effect(&mut self, effect: Effect) {
        self.out.push_back(FromLocal::Effect(effect));
    }

    pub(super) fn reply(&mut self, call: HostCall, reply: HostReply) {
        self.out.push_back(FromLocal::Reply { call, reply });
    }

    pub(super) fn post(&mut self, up: Up) {
        self.out.push_back(FromLocal::Post(up));
    }

    pub(super) fn join(&mut self, op: OpId, part: Part) {
        self.out.push_back(FromLocal::Join(op, part));
    }

    pub(super) fn send(&mut self, to: NodeId, side: Side) {
        self.out.push_back(FromLocal::Send(to, side));
    }

    pub(super) fn stream(&mut self, piece: OutputPiece) {
        self.out.push_back(FromLocal::Stream(piece));
    }
}

/// How many processes an explanation names: as many as a person reads.
pub(super) const ENOUGH: usize = 100;
