//! One turn of a daemon for its own node: its time, and the actions that it takes.

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{CallId, HostCall, HostOp, HostReply, Time, Waiting};
use phalanx_spec::IofChannel;
use phalanx_wire::{ProcId, Text};

use crate::config::NodeConfig;
use crate::effect::Effect;
use crate::id::NodeId;
use crate::local::calls::{Call, Calls};
use crate::local::timer::Timer;
use crate::msg::{
    Down, ExitStatus, Measured, MpiLibrary, OpId, OutputPiece, Part, Side, SpawnFailure, Survey, TaskId, Up,
};
use crate::timers::Timers;

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

/// An event or a request.
#[derive(Debug)]
pub(crate) enum ToLocal {
    /// A message from the root.
    Down(Arc<Down>),
    /// A message from another daemon.
    Side {
        from: NodeId,
        side: Side,
    },
    /// The root has taken these pieces of output.
    Taken(Vec<OutputPiece>),
    /// The operation cannot complete.
    GivenUp(Arc<OpId>),
    /// The DVM goes on without this daemon.
    Without(NodeId),
    /// Everything that waits at this node, as requested by [`FromLocal::Explained`].
    Waits {
        survey: Survey,
        waiting: Vec<Waiting>,
    },
    /// An upcall of our server.
    Upcall {
        call: HostCall,
        op: HostOp,
    },
    /// The answer to a call to our server.
    Returned {
        id: CallId,
        result: ServerReturn,
    },
    Spawned {
        proc: ProcId,
        pid: u32,
        program: Text,
    },
    SpawnFailed {
        proc: ProcId,
        failure: SpawnFailure,
    },
    Exited {
        proc: ProcId,
        status: ExitStatus,
    },
    Output {
        proc: ProcId,
        channel: IofChannel,
        data: Arc<[u8]>,
    },
    OutputClosed {
        proc: ProcId,
        channel: IofChannel,
    },
    StdinTaken {
        proc: ProcId,
        bytes: usize,
    },
    StdinRefused {
        proc: ProcId,
    },
    /// A process was stopped with its descendants. `escaped`: only with some of them, new ones keep appearing.
    TreeStopped {
        proc: ProcId,
        escaped: bool,
    },
    /// A process has loaded this MPI library.
    Inspected {
        proc: ProcId,
        library: MpiLibrary,
    },
    Measured {
        survey: Survey,
        measured: Box<Measured>,
    },
    /// A line for a log was written, or not for this reason.
    Logged {
        task: TaskId,
        result: Result<(), String>,
    },
    /// This daemon ends: what it has started must not outlive it.
    Stop,
    Tick,
}

/// One turn: the time, what this daemon is, its timers, its calls to the server, and where its actions go.
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) config: &'a NodeConfig,
    pub(super) timers: &'a mut Timers<Timer>,
    pub(super) calls: &'a mut Calls,
    /// Processes to give up once everything is handled that arrived before.
    pub(super) ended: &'a mut VecDeque<ProcId>,
    pub(super) out: &'a mut VecDeque<FromLocal>,
}

impl Cx<'_> {
    pub(super) fn effect(&mut self, effect: Effect) {
        self.out.push_back(FromLocal::Effect(effect));
    }

    pub(super) fn reply(&mut self, call: HostCall, reply: HostReply) {
        self.out.push_back(FromLocal::Reply { call, reply });
    }

    /// Calls our server.
    pub(super) fn call(&mut self, call: ServerCall, purpose: Call) {
        let id = self.calls.open(purpose);
        self.out.push_back(FromLocal::Call { id, call });
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
