//! The messages between the daemons of a DVM, as plain data. Their transport is the overlay's business.

pub(crate) mod checkpoint;
pub(crate) mod cleanup;
pub(crate) mod control;
mod desc;
mod end;
pub(crate) mod environment;
mod failure;
mod iof;
mod log;
mod mpi;
mod node;
mod op;
mod programs;
mod stacks;
mod survey;
mod task;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::{Event, HostOp, HostReply};
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Blob, Key, Nspace, ProcId, Text};

use crate::encoding::encoded;
use crate::id::NodeId;
use crate::ranges::Ranges;

pub use checkpoint::PREEMPT;
pub(crate) use checkpoint::{CheckpointCall, Method, Registration};
pub use cleanup::{Cleanup, CleanupRequest, DirectoryRules};
pub use control::Control;
pub use control::STANDS_STILL;
pub(crate) use control::{Cancel, ControlCall, ControlRequest, Pauser, Provision, Purpose};
pub(crate) use desc::{AppDesc, Binding, JobDesc, Life, Lives, Places, ReportedEnds};
pub use desc::{FailurePolicy, StdinTarget};
pub(crate) use end::{EndGroup, Ends, Reached, ended_state, exit_code};
pub use end::{ExitStatus, ProcEnd};
pub(crate) use environment::Change;
pub use environment::EnvChange;
pub use failure::{SpawnFailure, SpawnStep};
pub(crate) use iof::{Forward, OutputPiece, TapName};
pub use iof::{LEAST_CHARGE, charge};
pub use log::LogLine;
pub(crate) use log::Mail;
pub use mpi::MpiLibrary;
pub(crate) use node::{NodeReport, NodeTable};
pub(crate) use op::{Agreed, Collective, GroupPart, Members, OpId, Outcome, Part, Policy, each, procs};
pub(crate) use programs::Programs;
#[cfg(test)]
pub(crate) use stacks::Unread;
pub(crate) use stacks::{Stack, Stacks};
pub use survey::Survey;
pub(crate) use survey::{Found, FoundProc, Stuck, Subject, Wait};
pub use task::TaskId;
pub(crate) use task::{Results, Task};
pub use usage::{Measured, NodeUsage, Usage};

/// From the root to some daemons.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    /// The DVM is up; the names of all nodes.
    Table(Arc<NodeTable>),
    /// Send your topology.
    SendTopology,
    Start(Arc<JobDesc>),
    /// A collective operation has ended.
    Done {
        op: Arc<OpId>,
        outcome: Outcome,
    },
    Control {
        nspace: Nspace,
        ranks: Option<Ranges>,
        action: Control,
        /// For pauses: their reason.
        pauser: Pauser,
    },
    /// A part of a request. Each daemon contributes to the operation of this name when it has done its part.
    Task {
        id: TaskId,
        task: Arc<Task>,
    },
    /// Processes that have failed while their job goes on: stop waiting for them.
    Dead {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// These ranks are about to be started again with this checkpoint, and are waited for like others.
    Renewed {
        nspace: Nspace,
        ranks: Ranges,
        /// Those of them of which the last process ran.
        ran: Ranges,
        from: Option<Text>,
    },
    /// A group waits for these processes of the addressed daemons: report when they have ended.
    Watch {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// This operation waits: contribute, even if all its members here have ended.
    Expect(Collective),
    Forget {
        nspace: Nspace,
    },
    /// The root's answer to a request of the addressed daemon.
    Reply {
        request: u64,
        reply: HostReply,
    },
    /// Output for a reader at the addressed daemon.
    Output(Forward),
    /// Text for a tool at the addressed daemon, as output of the server, which the tool reads without asking.
    Say {
        to: ProcId,
        text: String,
    },
    Stdin {
        nspace: Nspace,
        ranks: Ranges,
        data: Arc<[u8]>,
    },
    StdinEnd {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// `except`: the daemon with the server that has already notified its own clients.
    Event {
        event: Arc<Event>,
        except: Option<NodeId>,
    },
    /// An event of the runtime about a job, for the recipients that [`phalanx_core::server::ServerCall::Announce`] defines.
    Announce {
        event: Arc<Event>,
        number: u64,
        concerned: Option<Arc<[Nspace]>>,
        /// How long ago it happened, for clients that registered only now.
        ago: Option<Duration>,
    },
    Stop,
}

/// From one daemon to the root.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    Topology {
        signature: String,
        encoded: Vec<u8>,
    },
    StartFailed {
        proc: ProcId,
        failure: SpawnFailure,
    },
    /// A process runs on the node of the job's first rank, while others there do not yet.
    Began {
        nspace: Nspace,
    },
    /// A failed process: under [`FailurePolicy::KillJob`] a daemon's first unless more are requested, otherwise each.
    Failed(ProcEnd),
    /// A process that has ended well, in a job with reports of all ends.
    Left(ProcEnd),
    Abort {
        from: ProcId,
        status: Status,
        message: String,
        procs: Vec<ProcId>,
    },
    /// A process that has not connected has loaded an MPI library.
    LoadedMpi {
        proc: ProcId,
        library: MpiLibrary,
    },
    /// Ranks that have called init, so far, in whichever of their lives.
    Connected {
        nspace: Nspace,
        reached: Reached,
    },
    /// All of a daemon's processes of this job have ended, but some of their output has not been taken yet.
    Exited {
        nspace: Nspace,
    },
    /// These processes of a job that goes on have ended, and their slots are free; these have finalized, and will probably end.
    Freed {
        nspace: Nspace,
        ended: Ranges,
        leaving: Ranges,
    },
    /// An operation waits; there may be daemons with members that will not arrive.
    Waits(Collective),
    /// An operation fails, even if members are yet to arrive: a member has ended, or the time limit of one has passed.
    Fails {
        op: Collective,
        status: Status,
    },
    /// These of the watched processes have ended, finalized, or lost their connection.
    Over {
        nspace: Nspace,
        ranks: Ranges,
    },
    /// An upcall that the root answers.
    Host {
        request: u64,
        op: HostOp,
    },
    /// A tool has finalized, or its connection has ended.
    ToolLeft {
        proc: ProcId,
    },
    StdinTaken {
        nspace: Nspace,
        rank: Rank,
        bytes: usize,
    },
    StdinRefused {
        nspace: Nspace,
        rank: Rank,
    },
    /// These pieces of [`Down::Output`] have left our server, in this order, except for so many of the last bytes of their
    /// streams, which are still held. `gone`: the reader no longer exists.
    OutputLeft {
        to: TapName,
        pieces: Vec<(u64, usize)>,
        gone: bool,
    },
    /// For the user of this process's job; without a process, for the DVM's user.
    Note {
        about: Option<ProcId>,
        text: String,
    },
}

/// From one daemon to another.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    /// Repeated until it is answered.
    Modex {
        id: u64,
        proc: ProcId,
        key: Option<Key>,
    },
    ModexIs {
        id: u64,
        result: Result<Blob, Status>,
    },
}

encoded!(enum Down {
    0 Table(table),
    1 SendTopology,
    2 Start(desc),
    3 Done { op, outcome },
    4 Control { nspace, ranks, action, pauser },
    5 Task { id, task },
    6 Dead { nspace, ranks },
    7 Watch { nspace, ranks },
    8 Expect(collective),
    9 Forget { nspace },
    10 Reply { request, reply },
    11 Output(forward),
    12 Say { to, text },
    13 Stdin { nspace, ranks, data },
    14 StdinEnd { nspace, ranks },
    15 Event { event, except },
    16 Announce { event, number, concerned, ago },
    17 Stop,
    18 Renewed { nspace, ranks, ran, from },
});

encoded!(enum Up {
    0 Topology { signature, encoded },
    1 StartFailed { proc, failure },
    2 Failed(end),
    3 Abort { from, status, message, procs },
    4 LoadedMpi { proc, library },
    5 Connected { nspace, reached },
    6 Exited { nspace },
    7 Waits(collective),
    8 Over { nspace, ranks },
    9 Host { request, op },
    10 ToolLeft { proc },
    11 StdinTaken { nspace, rank, bytes },
    12 StdinRefused { nspace, rank },
    13 OutputLeft { to, pieces, gone },
    14 Note { about, text },
    15 Left(end),
    16 Fails { op, status },
    17 Began { nspace },
    18 Freed { nspace, ended, leaving },
});

encoded!(enum Side { 0 Modex { id, proc, key }, 1 ModexIs { id, result } });
