//! What may happen to a job.

use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::job::JobVerdict;
use crate::msg::{Ends, MpiLibrary, ProcEnd, Programs, SpawnFailure, Stuck};
use crate::ranges::Ranges;
use crate::root::premises::Premises;

/// The kinds of events of a job. Times reported by daemons count from its placement.
#[derive(Debug)]
pub(in crate::root) enum What {
    Submitted,
    /// Its ranks have been mapped from these premises, and the daemons were notified.
    Placed(Box<Premises>),
    /// Ranks that could not be started, all for the same reason.
    StartFailed {
        ranks: Ranges,
        failure: SpawnFailure,
    },
    /// The start has taken longer than the spawn allows.
    StartOverdue,
    /// The first of its processes runs.
    Began {
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// Every process runs, or could not be started. Rank and pid of those that run, by rank.
    Started {
        pids: Vec<(u32, u32)>,
        programs: Programs,
        after: Duration,
        /// All of them run.
        whole: bool,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// So many processes have called init. Entered for the first of them, and for all.
    Connected {
        count: u32,
        after: Duration,
    },
    /// A process that has not connected has loaded an MPI library.
    LoadedMpi {
        by: ProcId,
        library: MpiLibrary,
    },
    /// All ranks that are to wait for a debugger do.
    Stopped,
    /// Ranks that failed in the same way; `first` is the first of them.
    Failed {
        ranks: Ranges,
        first: ProcEnd,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// Ranks that ended well, in the same way; `first` is the first of them. Entered only on request.
    Left {
        ranks: Ranges,
        first: ProcEnd,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// Ranks lost with their node, while the job goes on.
    Lost {
        ranks: Ranges,
        node: String,
        why: String,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// Ranks that a process or a tool has ended by job control.
    Killed {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// Ranks that had ended before such an order reached them.
    Spared {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// Ranks that a process or a tool has sent a signal by job control. Whether it ends them depends on them.
    Signalled {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// Ranks paused by a process or a tool, or else by the user.
    Paused {
        ranks: Ranges,
        by: Option<ProcId>,
    },
    /// Ranks resumed, likewise.
    Resumed {
        ranks: Ranges,
        by: Option<ProcId>,
    },
    /// What its processes were waiting for when its end was decided.
    Stuck(Vec<Stuck>),
    /// Ranks that have taken a checkpoint of this name.
    Checkpointed {
        ranks: Ranges,
        name: Text,
    },
    /// Ranks that were notified of their preemption.
    Preempted {
        ranks: Ranges,
        by: ProcId,
    },
    /// Ranks that are to be started again: on request, or because they have failed.
    Restarting {
        ranks: Ranges,
        by: Option<ProcId>,
        from: Option<Text>,
    },
    /// Ranks that run again, with these pids.
    Restarted {
        ranks: Ranges,
        pids: Vec<(u32, u32)>,
        programs: Programs,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
    /// A text that a process or a tool has logged. `stated`: when, in seconds since the epoch, if it stated a time.
    Logged {
        by: ProcId,
        text: String,
        stated: Option<u64>,
    },
    /// It is to end, for this reason.
    Ending(JobVerdict),
    /// All processes have ended, and their output is out.
    Exited(Box<Ends>),
    /// Nothing is left of it anywhere.
    Ended {
        verdict: JobVerdict,
        exit_code: i32,
        /// The process that failed first.
        first: Option<ProcId>,
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
    },
}

impl What {
    /// The jobs that may receive the event, if it is announced as one.
    pub(in crate::root) fn concerned(&self) -> Option<&Arc<[Nspace]>> {
        match self {
            What::Began { concerned }
            | What::Started { concerned, .. }
            | What::Failed { concerned, .. }
            | What::Left { concerned, .. }
            | What::Lost { concerned, .. }
            | What::Restarted { concerned, .. }
            | What::Ended { concerned, .. } => Some(concerned),
            _ => None,
        }
    }

    /// The codes of the events that announce it; none if it is only in the journal.
    pub(in crate::root) fn event_codes(&self) -> &'static [Status] {
        match self {
            What::Began { .. } => &[Status::EVENT_JOB_START],
            What::Started { whole: true, .. } => &[Status::LAUNCH_COMPLETE],
            What::Failed { first, .. } if first.is_without_sync() => {
                &[Status::EVENT_PROC_TERMINATED, Status::ERR_PROC_TERM_WO_SYNC]
            }
            What::Failed { .. } | What::Left { .. } | What::Lost { .. } => &[Status::EVENT_PROC_TERMINATED],
            What::Restarted { .. } => &[Status::ERR_PROC_RESTART],
            What::Ended { .. } => &[Status::EVENT_JOB_END],
            _ => &[],
        }
    }

    /// Whether equal events of other ranks may be merged into one entry.
    pub(super) fn may_be_joined(&self) -> bool {
        self.ends_processes()
            || matches!(
                self,
                What::Killed { .. }
                    | What::Spared { .. }
                    | What::Signalled { .. }
                    | What::Paused { .. }
                    | What::Resumed { .. }
            )
    }

    fn ends_processes(&self) -> bool {
        matches!(self, What::StartFailed { .. } | What::Failed { .. } | What::Left { .. })
    }

    /// Whether the order of the two is irrelevant: ends of different ranks are reported as they come.
    pub(super) fn is_akin(&self, other: &What) -> bool {
        discriminant(self) == discriminant(other) || (self.ends_processes() && other.ends_processes())
    }

    /// Whether both are equal apart from the ranks.
    pub(super) fn is_same(&self, other: &What) -> bool {
        let alike = |one: &ProcEnd| (one.status, one.killed_by_us, one.lost_connection);
        discriminant(self) == discriminant(other)
            && match (self, other) {
                (What::StartFailed { failure, .. }, What::StartFailed { failure: same, .. }) => {
                    failure == same
                }
                (
                    What::Failed { first, concerned, .. } | What::Left { first, concerned, .. },
                    What::Failed { first: same, concerned: told, .. }
                    | What::Left { first: same, concerned: told, .. },
                ) => alike(first) == alike(same) && concerned == told,
                (
                    What::Killed { by, signal, .. }
                    | What::Spared { by, signal, .. }
                    | What::Signalled { by, signal, .. },
                    What::Killed { by: same, signal: with, .. }
                    | What::Spared { by: same, signal: with, .. }
                    | What::Signalled { by: same, signal: with, .. },
                ) => (by, signal) == (same, with),
                (
                    What::Paused { by, .. } | What::Resumed { by, .. },
                    What::Paused { by: same, .. } | What::Resumed { by: same, .. },
                ) => by == same,
                _ => false,
            }
    }

    /// The ranks to which it has happened, if it belongs to ranks.
    pub(in crate::root) fn ranks(&self) -> Option<&Ranges> {
        match self {
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Lost { ranks, .. }
            | What::Killed { ranks, .. }
            | What::Spared { ranks, .. }
            | What::Signalled { ranks, .. }
            | What::Paused { ranks, .. }
            | What::Resumed { ranks, .. }
            | What::Checkpointed { ranks, .. }
            | What::Preempted { ranks, .. }
            | What::Restarting { ranks, .. }
            | What::Restarted { ranks, .. } => Some(ranks),
            _ => None,
        }
    }

    pub(super) fn ranks_mut(&mut self) -> Option<&mut Ranges> {
        match self {
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Killed { ranks, .. }
            | What::Spared { ranks, .. }
            | What::Signalled { ranks, .. }
            | What::Paused { ranks, .. }
            | What::Resumed { ranks, .. } => Some(ranks),
            _ => None,
        }
    }

    /// Whether programs determine how often it happens.
    pub(super) fn may_repeat(&self) -> bool {
        matches!(
            self,
            What::StartFailed { .. }
                | What::Failed { .. }
                | What::Left { .. }
                | What::Lost { .. }
                | What::Killed { .. }
                | What::Spared { .. }
                | What::Signalled { .. }
                | What::Paused { .. }
                | What::Resumed { .. }
                | What::Checkpointed { .. }
                | What::Preempted { .. }
                | What::Restarting { .. }
                | What::Restarted { .. }
        )
    }

    /// The approximate size in bytes of what it points to.
    pub(super) fn weight(&self) -> usize {
        let ranges = |ranks: &Ranges| ranks.spans().count() * size_of::<(u32, u32)>();
        match self {
            What::Placed(premises) => premises.weight(),
            What::Started { pids, programs, .. } => pids.len() * size_of::<(u32, u32)>() + programs.weight(),
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Lost { ranks, .. }
            | What::Killed { ranks, .. }
            | What::Spared { ranks, .. }
            | What::Signalled { ranks, .. }
            | What::Paused { ranks, .. }
            | What::Resumed { ranks, .. }
            | What::Preempted { ranks, .. } => ranges(ranks),
            What::Stuck(all) => {
                all.iter().map(|one| size_of_val(one) + one.subject.len() + ranges(&one.ranks)).sum()
            }
            What::Checkpointed { ranks, name } => ranges(ranks) + name.as_bytes().len(),
            What::Restarting { ranks, from, .. } => {
                ranges(ranks) + from.as_ref().map_or(0, |name| name.as_bytes().len())
            }
            What::Restarted { ranks, pids, programs, .. } => {
                ranges(ranks) + pids.len() * size_of::<(u32, u32)>() + programs.weight()
            }
            What::Logged { text, .. } => text.len(),
            What::Exited(ends) => {
                ends.groups.iter().map(|group| size_of_val(group) + ranges(&group.ranks)).sum()
            }
            _ => 0,
        }
    }
}
