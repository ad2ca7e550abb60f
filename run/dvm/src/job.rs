//! What a user asks to be run, and what is told at its end.

use std::time::Duration;

use phalanx_spec::{IofChannel, ProcState, Rank, Status};
use phalanx_wire::{Info, Nspace, ProcId, Text};

use crate::environment::EnvChange;
use crate::hosts::HostEntry;
use crate::map::Policy;

/// One job: one or more app contexts, started together.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct JobRequest {
    pub apps: Vec<AppSpec>,
    /// The environment that every rank begins with, `NAME=VALUE`.
    pub env: Vec<Text>,
    pub stdin: StdinTarget,
    /// What may be pulled and pushed while it runs; `None`: everything.
    pub forward: Option<IofChannel>,
    /// Its processes have a stream for diagnostics beside the standard ones.
    pub diag: bool,
    pub on_failure: FailurePolicy,
    /// Kill the job when it has run this long.
    pub timeout: Option<Duration>,
    /// Give the job up when not all of its processes run after this long.
    pub start_timeout: Option<Duration>,
    /// How the ranks are placed, as far as the user said.
    pub policy: Policy,
    /// Further directives, as `PMIx_Spawn` takes them.
    pub info: Vec<Info>,
    /// The process that asked, when it was not the user.
    pub parent: Option<ProcId>,
}

/// One app context.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AppSpec {
    /// `argv[0]` is the program as the user named it.
    pub argv: Vec<Text>,
    pub procs: Option<u32>,
    /// Set on top of the job's environment, `NAME=VALUE`.
    pub env: Vec<Text>,
    /// What is changed of that, in this order.
    pub changes: Vec<EnvChange>,
    /// Working directory; the launcher's own when absent.
    pub cwd: Option<Text>,
    /// Put in front of PATH and LD_LIBRARY_PATH as PREFIX/bin and PREFIX/lib.
    pub prefix: Option<Text>,
    /// Only on these nodes, with these slots; empty is everywhere.
    pub hosts: Vec<HostEntry>,
    /// What was said about the placement of this app context alone; otherwise the job's policy holds.
    pub policy: Option<Policy>,
}

/// Who reads the launcher's standard input; the others read the null device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StdinTarget {
    #[default]
    FirstRank,
    Rank(Rank),
    All,
    None,
}

/// What one rank's failure means to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// Any failing rank ends the job.
    #[default]
    KillJob,
    /// A rank that exits with a code is let go; signals and aborts end the job.
    KillOnSignal,
    /// The others go on.
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal { number: i32, core_dumped: bool },
}

impl ExitStatus {
    /// As a shell would say it: the code, or 128 and the signal's number.
    pub fn shell_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal { number, .. } => 128 + number,
        }
    }

    pub fn is_success(self) -> bool {
        self == ExitStatus::Code(0)
    }
}

/// The state of a process that is no more.
pub(crate) fn ended_state(
    status: Option<ExitStatus>,
    killed_by_us: bool,
    lost_connection: bool,
) -> ProcState {
    match status {
        None => ProcState::FAILED_TO_START,
        Some(_) if killed_by_us => ProcState::KILLED_BY_CMD,
        Some(ExitStatus::Signal { .. }) => ProcState::ABORTED_BY_SIG,
        Some(ExitStatus::Code(0)) if lost_connection => ProcState::TERM_WO_SYNC,
        Some(ExitStatus::Code(0)) => ProcState::TERMINATED,
        Some(ExitStatus::Code(_)) => ProcState::TERM_NON_ZERO,
    }
}

/// How one rank ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcEnd {
    pub proc: ProcId,
    pub node: String,
    pub pid: Option<u32>,
    /// `None`: it never ran.
    pub status: Option<ExitStatus>,
    /// Since the job's start.
    pub after: Duration,
    /// It ended because we ended it.
    pub killed_by_us: bool,
    /// It left without finalize although it had called init.
    pub lost_connection: bool,
}

/// Why the job ended as it did: what decides the launcher's exit code.
#[derive(Clone, Debug, PartialEq)]
pub enum JobVerdict {
    Success,
    /// The first rank that failed.
    Failed {
        first: ProcEnd,
    },
    /// A rank called abort.
    Aborted {
        by: ProcId,
        status: Status,
        message: String,
    },
    /// A program could not be started.
    NotStarted {
        error: String,
    },
    TimedOut {
        limit: Duration,
    },
    /// The user ended it, with this signal.
    Cancelled {
        signal: i32,
    },
    /// A process or a tool has ended it, or some of its ranks, by job control.
    Killed {
        by: ProcId,
        signal: i32,
    },
    /// It was not to outlive the job that has started it.
    ParentEnded {
        parent: Nspace,
    },
    /// A node was lost.
    NodeLost {
        node: String,
    },
}

/// The exit report.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEnd {
    pub nspace: Nspace,
    pub verdict: JobVerdict,
    /// What the launcher exits with.
    pub exit_code: i32,
    pub procs: Vec<ProcEnd>,
    pub duration: Duration,
}

impl ProcEnd {
    /// Whether it is somebody's fault, and not ours.
    pub fn is_failure(&self) -> bool {
        let left_badly = self.status.is_none_or(|status| !status.is_success()) || self.lost_connection;
        left_badly && !self.killed_by_us
    }
}

impl FailurePolicy {
    /// Whether this end of one process ends the job.
    pub fn ends_job(self, end: &ProcEnd) -> bool {
        match self {
            FailurePolicy::KillJob => end.is_failure(),
            FailurePolicy::KillOnSignal => {
                end.is_failure() && matches!(end.status, Some(ExitStatus::Signal { .. }) | None)
            }
            FailurePolicy::Continue => false,
        }
    }
}
