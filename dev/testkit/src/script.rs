//! The actions of a simulated process, step by step, and its requests to its PMIx server.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_core::server::{ServerCall, ServerReturn};
use phalanx_core::{HostOp, HostReply, Machine};
use phalanx_spec::{IofChannel, Range, Rank, Status};
use phalanx_wire::{Blob, Info, ProcId};

/// A process's life. When the steps run out it exits with code 0.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub steps: Vec<Step>,
    /// Its reaction to SIGTERM: none, or to end after this long.
    pub ignores_term: bool,
    /// Its streams stay open this long after its end, as if a descendant held them.
    pub lingers: Duration,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Sends a request; continues when the answer comes.
    Ask(Op),
    /// Writes, as fast as the stream is read.
    Write(IofChannel, Vec<u8>),
    /// Reads standard input until its end.
    ReadAll,
    Sleep(Duration),
    Exit(i32),
    /// Ends by this signal.
    Die(i32),
    /// Does nothing until it is killed.
    Hang,
}

/// A request of a process to its server.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    Init,
    /// Puts and commits.
    Commit {
        key: String,
        value: Vec<u8>,
    },
    /// Empty `procs`: the whole job.
    Fence {
        procs: Vec<Rank>,
        collect: bool,
    },
    /// A fence of the whole job, without data, and a connect; only for real servers.
    FenceWith {
        info: Vec<Info>,
    },
    Connect {
        info: Vec<Info>,
    },
    /// Ends that; likewise.
    Disconnect {
        info: Vec<Info>,
    },
    Get {
        rank: Rank,
        key: String,
    },
    Publish {
        key: String,
        value: String,
        range: Range,
    },
    Lookup {
        key: String,
        wait: bool,
        timeout: Option<u64>,
    },
    Unpublish {
        key: String,
    },
    Abort {
        status: i32,
    },
    /// Job control; empty `targets`: the whole job.
    Control {
        targets: Vec<Rank>,
        directives: Vec<Info>,
    },
    /// Registers a handler for these codes; none: for all.
    Listen {
        codes: Vec<Status>,
    },
    Notify {
        code: Status,
        range: Range,
    },
    /// Constructs a group of the whole job; only for real servers.
    Group {
        name: String,
        info: Vec<Info>,
    },
    /// Destructs it; likewise.
    Ungroup {
        name: String,
        info: Vec<Info>,
    },
    /// Any upcall, unchanged; only for scripted servers.
    Host(Box<HostOp>),
    Finalize,
}

/// The server's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum RankAnswer {
    Done(Status),
    Value(Blob),
    /// To an upcall, or to a group construct.
    Host(Box<HostReply>),
}

/// A server that simulated processes can use.
pub trait RankServer: Machine<Call = ServerCall, Return = ServerReturn> {
    /// A process makes a request; the answer comes later.
    fn ask(&mut self, proc: &ProcId, op: Op);

    /// A process is gone, and its connection with it.
    fn leave(&mut self, proc: &ProcId);

    /// The answers since the last call.
    fn answers(&mut self) -> Vec<(ProcId, RankAnswer)>;

    /// Passes the environment that a process was started with.
    fn started(&mut self, _proc: &ProcId, _env: &BTreeMap<Vec<u8>, Vec<u8>>) {}
}

impl Script {
    pub fn new(steps: Vec<Step>) -> Script {
        Script { steps, ..Script::default() }
    }
}
