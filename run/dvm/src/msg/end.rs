//! How processes have ended.

use std::time::Duration;

use phalanx_spec::{ProcState, keys};
use phalanx_wire::{Info, ProcId, Value};

use crate::encoding::encoded;
use crate::ranges::Ranges;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal { number: i32, core_dumped: bool },
}

impl ExitStatus {
    /// The exit code of a shell: the code, or 128 and the signal's number.
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

impl ProcEnd {
    /// Whether it ended badly without our having ended it.
    pub fn is_failure(&self) -> bool {
        let left_badly = self.status.is_none_or(|status| !status.is_success()) || self.lost_connection;
        left_badly && !self.killed_by_us
    }

    /// Whether it has connected to its server and left without finalize, and nothing else was wrong.
    pub(crate) fn is_without_sync(&self) -> bool {
        self.lost_connection && self.status.is_some_and(ExitStatus::is_success)
    }
}

/// An exit code with the standard's type, int.
pub(crate) fn exit_code(code: i32) -> Info {
    Info::new(keys::EXIT_CODE, Value::Int(code))
}

/// The state of a process that has ended.
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

/// How the processes of a subtree have ended, and which phases they had reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ends {
    pub groups: Vec<EndGroup>,
    /// Ranks of which a process has called init, and when the last of them did so for the first time.
    pub connected: Reached,
    /// Processes that have finalized.
    pub finalized: Reached,
    /// Processes that have run and exited.
    pub exited: Reached,
}

/// How many processes have reached a phase, and when the last of them did, from the job's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    pub count: u32,
    pub after: Duration,
}

impl Ends {
    pub(crate) fn merge(&mut self, more: Ends) {
        EndGroup::merge(&mut self.groups, more.groups);
        self.connected.merge(more.connected);
        self.finalized.merge(more.finalized);
        self.exited.merge(more.exited);
    }
}

impl Reached {
    pub(crate) fn merge(&mut self, more: Reached) {
        self.count += more.count;
        self.after = self.after.max(more.after);
    }
}

/// Processes that ended alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndGroup {
    pub ranks: Ranges,
    pub status: Option<ExitStatus>,
    pub killed_by_us: bool,
    pub lost_connection: bool,
    /// A process of each of them has called init.
    pub connected: bool,
    /// When the last of them ended, from the job's start.
    pub after: Duration,
}

impl EndGroup {
    /// Adds `more` to `ends`: equal ends become one group.
    pub(crate) fn merge(ends: &mut Vec<EndGroup>, more: Vec<EndGroup>) {
        for group in more {
            let alike = |other: &&mut EndGroup| {
                let traits = |group: &EndGroup| {
                    let connection = (group.connected, group.lost_connection);
                    (group.status, group.killed_by_us, connection, group.after)
                };
                traits(&group) == traits(other)
            };
            match ends.iter_mut().find(alike) {
                Some(same) => same.ranks.add(&group.ranks),
                None => ends.push(group),
            }
        }
    }
}

encoded!(enum ExitStatus { 0 Code(code), 1 Signal { number, core_dumped } });
encoded!(struct ProcEnd { proc, node, pid, status, after, killed_by_us, lost_connection });
encoded!(struct Ends { groups, connected, finalized, exited });
encoded!(struct Reached { count, after });
encoded!(struct EndGroup { ranks, status, killed_by_us, lost_connection, connected, after });
