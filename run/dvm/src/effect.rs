//! The border between deciding and doing: what a shell reports to a node, and what a node asks of its shell.

use std::sync::Arc;
use std::time::Duration;

use phalanx_core::{CloseReason, ConnId, FileLook, PeerCred};
use phalanx_spec::IofChannel;
use phalanx_topo::CpuSet;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Cleanup, Control, ExitStatus, LogLine, Measured, MpiLibrary, SpawnFailure, Survey, TaskId};
use crate::report::Report;

/// An event at this node.
#[derive(Debug)]
pub enum Input<'a> {
    /// The link to a neighbour is up.
    LinkUp {
        peer: NodeId,
    },
    /// The next bytes of a neighbour's [`Effect::Link`]s, in order, split anywhere.
    LinkBytes {
        peer: NodeId,
        bytes: &'a [u8],
    },
    /// The kernel of a neighbour that says nothing has acknowledged, so long ago, what was sent to it: its process exists.
    LinkAcked {
        peer: NodeId,
        ago: Duration,
    },
    /// The link was lost, or an attempt to make it failed, with a reason for each address that was tried.
    LinkDown {
        peer: NodeId,
        why: String,
    },

    /// A PMIx connection, as in `phalanx_core::Input`.
    Opened {
        conn: ConnId,
        peer: Option<PeerCred>,
    },
    Bytes {
        conn: ConnId,
        data: &'a [u8],
    },
    Writable {
        conn: ConnId,
        queued: usize,
    },
    Closed {
        conn: ConnId,
        reason: CloseReason,
    },

    /// A file was looked at for our server, as in `phalanx_core::Input`.
    Looked {
        look: u64,
        file: Option<FileLook>,
    },

    /// The user submits a job (at node 0). Answered by [`Report`]s that carry `request` until the job has a namespace.
    Submit {
        request: u64,
        job: Box<JobRequest>,
    },
    /// Refuse the jobs that wait for the DVM to come up (at node 0).
    Withdraw,
    /// The user is about to stop this process, and will continue it later.
    StandStill,
    /// It goes on, or was not stopped after all.
    StandNoLonger,
    Control {
        nspace: Nspace,
        action: Control,
    },
    /// The DVM is to end: jobs are terminated, then every daemon stops (at node 0).
    Shutdown,

    /// A process runs: its exec succeeded. `program`: the path of the file that was executed, from the root directory.
    Spawned {
        proc: ProcId,
        pid: u32,
        program: Text,
    },
    SpawnFailed {
        proc: ProcId,
        failure: SpawnFailure,
    },
    /// A process has ended and was reaped. Its streams may still hold bytes.
    Exited {
        proc: ProcId,
        status: ExitStatus,
    },
    /// Output of a process; never more than its credit.
    Output {
        proc: ProcId,
        channel: IofChannel,
        data: Arc<[u8]>,
    },
    OutputClosed {
        proc: ProcId,
        channel: IofChannel,
    },
    /// The user has taken `bytes` more of what [`Report::Output`] carried (at node 0). Credit flows back from here.
    OutputTaken {
        bytes: usize,
    },

    /// The launcher's standard input (at node 0), never more than asked for by [`Effect::StdinCredit`]. The first piece is only looked at, and
    /// what follows is read when all of that was read. Without bytes: there is input that cannot be looked at; does a process wait for it?
    Stdin {
        nspace: Nspace,
        data: Arc<[u8]>,
    },
    StdinEnd {
        nspace: Nspace,
    },
    /// A process's standard input has taken `bytes` more. Of the first it reports only those that the process has read. None: the process
    /// waits for input.
    StdinTaken {
        proc: ProcId,
        bytes: usize,
    },
    /// A process closed its standard input or is gone.
    StdinRefused {
        proc: ProcId,
    },

    /// The SIGSTOP of [`Effect::SignalTree`] has taken effect, or a later signal has replaced it. `escaped`: new descendants
    /// appear faster than they can be stopped.
    TreeStopped {
        proc: ProcId,
        escaped: bool,
    },

    /// A process has loaded this MPI library, found by [`Effect::Inspect`].
    Inspected {
        proc: ProcId,
        library: MpiLibrary,
    },

    /// The answer to [`Effect::Measure`].
    Measured {
        survey: Survey,
        measured: Box<Measured>,
    },

    /// The answer to [`Effect::Log`]; an error states the reason.
    Logged {
        task: TaskId,
        result: Result<(), String>,
    },

    Tick,
}

/// An action for the shell; actions are carried out in order.
#[derive(Debug)]
pub enum Effect {
    /// Send to a neighbour.
    Link {
        to: NodeId,
        bytes: Arc<[u8]>,
    },
    /// Make a link to this daemon, which is not a neighbour yet. Answered by `LinkUp` or `LinkDown`.
    Connect {
        to: NodeId,
        address: String,
    },
    /// Drop the link, and with it what was not sent yet.
    Unlink {
        to: NodeId,
    },
    Send {
        conn: ConnId,
        frame: Vec<u8>,
    },
    Close {
        conn: ConnId,
    },
    /// For our clients, as in `phalanx_core::Output`.
    WriteFile {
        path: String,
        at: u64,
        bytes: Vec<u8>,
    },
    RemoveFile {
        path: String,
    },
    /// Answered by [`Input::Looked`].
    LookAt {
        look: u64,
        path: String,
        reads: bool,
    },
    Spawn(Box<ProcStart>),
    /// A process is about to learn of a directory of its own, which must exist (mode 0700, with its parents).
    /// [`Effect::Forget`] removes the job's.
    MakeScratch {
        path: Text,
    },
    /// Send to the process's whole group.
    Signal {
        proc: ProcId,
        signal: i32,
    },
    /// Send to the process, and to all its descendants in any group or session; also after it has ended itself. SIGSTOP is
    /// answered with [`Input::TreeStopped`].
    SignalTree {
        proc: ProcId,
        signal: i32,
    },
    /// Read up to this many more bytes from the process's channel.
    Credit {
        proc: ProcId,
        channel: IofChannel,
        bytes: usize,
    },
    /// Write to a process's standard input. Without bytes: report when the process waits for input.
    Stdin {
        proc: ProcId,
        data: Arc<[u8]>,
    },
    StdinEnd {
        proc: ProcId,
    },
    /// Read this much more of the launcher's standard input (at node 0).
    StdinCredit {
        nspace: Nspace,
        bytes: usize,
    },
    /// Processes have read this much more of the launcher's first piece of input (at node 0). None: a process waits for input.
    StdinRead {
        nspace: Nspace,
        bytes: usize,
    },
    /// Report to the user (at node 0).
    Report(Report),
    /// A path that processes of the job leave to us to remove: when [`Effect::Cleanup`] names it, and with the job by
    /// [`Effect::Forget`] at the latest, even if this daemon is killed before. A second registration of a path replaces the
    /// first.
    RegisterCleanup {
        nspace: Nspace,
        path: Text,
        what: Cleanup,
    },
    /// These registered paths are due now.
    Cleanup {
        nspace: Nspace,
        paths: Vec<Text>,
    },
    /// The job is over here: remove its files, kill what is left of its process groups.
    Forget {
        nspace: Nspace,
        scratch: Text,
    },
    /// Check whether this process has loaded an MPI library. If it has, the answer is [`Input::Inspected`].
    Inspect {
        proc: ProcId,
        pid: u32,
    },
    /// Measure what these processes (rank and pid), this daemon and its node use.
    Measure {
        survey: Survey,
        pids: Vec<(u32, u32)>,
    },
    /// Write this for a process that logs.
    Log {
        task: TaskId,
        line: LogLine,
    },
    /// After [`Input::StandStill`]: what was said until now is all that others need to hear before.
    MayBeStopped,
    /// The DVM is over.
    Stop,
}

/// Everything needed to start one process; nothing is left to decide after the fork.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcStart {
    pub proc: ProcId,
    pub argv: Arc<[Text]>,
    /// Complete: `NAME=VALUE`.
    pub env: Vec<Text>,
    pub cwd: Option<Text>,
    /// `None`: unbound.
    pub cpus: Option<CpuSet>,
    pub stdin: StdinPlan,
    /// It has a third output stream; `PHALANX_STDDIAG_FD` names its descriptor.
    pub diag: bool,
    /// When its launcher dies, it gets SIGTERM and a moment to end by itself; otherwise it is killed at once.
    pub asked_first: bool,
    /// What it leaves behind is not to be killed, such as a connection that ssh keeps for the user's next session.
    pub may_leave: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinPlan {
    Null,
    Pipe,
}
