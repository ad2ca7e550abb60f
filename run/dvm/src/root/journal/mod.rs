//! The journal of a job: what happened to it, in order, each thing once.
//!
//! Every decision about a job is appended here, and every report on its past is read from here: how it ended, its processes,
//! its phases, events for late registrations. There is no other history. The journals of ended jobs are kept within one bound;
//! beyond it the oldest go first.
//!
//! Equal events of many ranks, with nothing else in between, are one entry with ranges of ranks and the time of each. A second
//! occurrence for the same rank is an entry of its own. No clock is read here.

mod end;
mod read;

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::config::Limits;
use crate::job::{JobVerdict, ToolProcess};
use crate::msg::{Ends, JobDesc, MpiLibrary, ProcEnd, SpawnFailure, Stuck};
use crate::ranges::Ranges;
use crate::root::premises::Premises;

/// The history of one job.
#[derive(Debug)]
pub(super) struct Journal {
    desc: Arc<JobDesc>,
    /// The tool that runs it.
    run_by: Option<ProcId>,
    entries: Vec<Entry>,
    /// Entries dropped for lack of room.
    dropped: u64,
    /// The number of [`Moment`]s that all entries have besides their first ones.
    moments: usize,
    /// The processes of tools that have done something to it. A tool may be gone when the job ends.
    tools: BTreeMap<ProcId, ToolProcess>,
}

#[derive(Debug)]
pub(super) struct Entry {
    number: u64,
    at: Time,
    what: What,
    /// Later occurrences for other ranks, which are among the ranks of `what`.
    later: Vec<Moment>,
}

/// When an event happened to some of the ranks of an entry, and its sequence number. `ranks` is empty for events of the whole
/// job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) number: u64,
    pub(super) at: Time,
    pub(super) ranks: Ranges,
}

/// The kinds of events of a job. Times reported by daemons count from its placement.
#[derive(Debug)]
pub(super) enum What {
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
        /// The jobs that may receive the event.
        concerned: Arc<[Nspace]>,
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

impl Entry {
    pub(super) fn at(&self) -> Time {
        self.at
    }

    pub(super) fn what(&self) -> &What {
        &self.what
    }

    /// When it happened to which ranks, in order. Sequence numbers are shared by all jobs.
    pub(super) fn moments(&self) -> impl Iterator<Item = Moment> + '_ {
        let mut ranks = self.what.ranks().cloned().unwrap_or_default();
        self.later.iter().flat_map(|later| later.ranks.iter()).for_each(|rank| ranks.remove(rank));
        let first = Moment { number: self.number, at: self.at, ranks };
        std::iter::once(first).chain(self.later.iter().cloned())
    }

    /// Adds ranks to which the same has happened; returns the number of that moment.
    fn join(&mut self, moment: Moment, has_room: bool) -> u64 {
        if let Some(ranks) = self.what.ranks_mut() {
            ranks.add(&moment.ranks);
        }
        let (number, at) = self.later.last().map_or((self.number, self.at), |last| (last.number, last.at));
        if has_room && moment.at.since(at) >= SAME_TIME {
            let number = moment.number;
            self.later.push(moment);
            return number;
        }
        self.later.last_mut().into_iter().for_each(|last| last.ranks.add(&moment.ranks));
        number
    }
}

/// Hands out sequence numbers, and keeps the journals of ended jobs, the oldest first.
#[derive(Debug)]
pub(super) struct Journals {
    last: u64,
    ended: VecDeque<Arc<Journal>>,
    bytes: usize,
    most_jobs: usize,
    most_bytes: usize,
}

impl Journals {
    pub(super) fn new(limits: &Limits) -> Journals {
        let (most_jobs, most_bytes) = (limits.ended_jobs as usize, limits.journals);
        Journals { last: 0, ended: VecDeque::new(), bytes: 0, most_jobs, most_bytes }
    }

    /// Begins the journal of a job that has just been placed.
    pub(super) fn begin(
        &mut self,
        now: Time,
        submitted: Time,
        (desc, premises): (Arc<JobDesc>, Premises),
        run_by: Option<ProcId>,
    ) -> Journal {
        let mut journal = Journal {
            desc,
            run_by,
            entries: Vec::with_capacity(FEW),
            dropped: 0,
            moments: 0,
            tools: BTreeMap::new(),
        };
        self.append(&mut journal, submitted, What::Submitted);
        self.append(&mut journal, now, What::Placed(Box::new(premises)));
        journal
    }

    /// Appends an event. Returns its number, which is that of an equal event at the same time if it was merged with one.
    pub(super) fn append(&mut self, journal: &mut Journal, now: Time, what: What) -> u64 {
        self.last += 1;
        if let Some(number) = journal.join(self.last, now, &what) {
            return number;
        }
        if let Some(what) = journal.news(what) {
            journal.entries.push(Entry { number: self.last, at: now, what, later: Vec::new() });
        }
        self.last
    }

    /// The last number handed out.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Keeps the journal of a job that has ended, within the bounds.
    pub(super) fn keep(&mut self, journal: Journal) -> Arc<Journal> {
        let journal = Arc::new(journal);
        self.bytes += journal.weight();
        self.ended.push_back(journal.clone());
        while self.ended.len() > self.most_jobs || self.bytes > self.most_bytes {
            let Some(oldest) = self.ended.pop_front() else { break };
            self.bytes -= oldest.weight();
        }
        journal
    }

    /// The journal of an ended job.
    pub(super) fn get(&self, nspace: &Nspace) -> Option<&Journal> {
        self.ended.iter().rev().find(|journal| journal.desc.nspace == *nspace).map(|journal| &**journal)
    }

    /// The journals of the ended jobs, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Journal> {
        self.ended.iter().map(|journal| &**journal)
    }
}

impl Journal {
    /// Adds the event to an entry with the same event of other ranks, if nothing of another kind has happened since. Returns
    /// the number.
    fn join(&mut self, number: u64, now: Time, what: &What) -> Option<u64> {
        let ranks = what.ranks().filter(|_| what.may_be_joined())?;
        let has_room = self.moments < MOST_MOMENTS;
        // Ends of processes of different kinds may come interleaved.
        let is_open = |entry: &&mut Entry| {
            entry.what.is_akin(what) && entry.what.ranks().is_some_and(|known| !known.intersects(ranks))
        };
        let mut open = self.entries.iter_mut().rev().take_while(is_open);
        let same = open.find(|entry| entry.what.is_same(what))?;
        let before = same.later.len();
        let number = same.join(Moment { number, at: now, ranks: ranks.clone() }, has_room);
        self.moments += same.later.len() - before;
        Some(number)
    }

    /// Returns what is to become an entry; drops repetitions and what exceeds the bound.
    fn news(&mut self, what: What) -> Option<What> {
        match &what {
            What::Connected { count: now, .. } => {
                let counts = self.entries.iter().filter_map(|entry| match entry.what {
                    What::Connected { count, .. } => Some(count),
                    _ => None,
                });
                match counts.max().unwrap_or(0) {
                    0 if *now > 0 => {}
                    before if before < *now && *now == self.desc.size => {}
                    _ => return None,
                }
            }
            What::LoadedMpi { .. } if self.mpi().is_some() => return None,
            _ => {}
        }
        if what.may_repeat() && self.entries.len() >= MOST_ENTRIES {
            self.dropped += 1;
            return None;
        }
        Some(what)
    }

    /// The approximate size in bytes.
    pub(super) fn weight(&self) -> usize {
        let later = |one: &Moment| size_of_val(one) + one.ranks.spans().count() * size_of::<(u32, u32)>();
        let weight = |entry: &Entry| entry.what.weight() + entry.later.iter().map(later).sum::<usize>();
        let entries: usize = self.entries.iter().map(weight).sum();
        let texts = |texts: &[Text]| texts.iter().map(|text| text.as_bytes().len() + PER_TEXT).sum::<usize>();
        let apps: usize = self.desc.apps.iter().map(|app| texts(&app.argv) + texts(&app.env)).sum();
        let tool = |(_, process): (_, &ToolProcess)| {
            size_of::<(ProcId, ToolProcess)>() + process.command.as_ref().map_or(0, String::len)
        };
        let tools: usize = self.tools.iter().map(tool).sum();
        entries + apps + texts(&self.desc.env) + self.desc.places.weight() + tools
    }

    /// This tool does something to the job. Of many, the first are known.
    pub(super) fn note_tool(&mut self, tool: &ProcId, process: &ToolProcess) {
        if self.tools.len() < MOST_TOOLS {
            self.tools.entry(tool.clone()).or_insert_with(|| process.clone());
        }
    }

    pub(super) fn tool(&self, tool: &ProcId) -> Option<&ToolProcess> {
        self.tools.get(tool)
    }
}

impl What {
    /// Whether equal events of other ranks may be merged into one entry.
    fn may_be_joined(&self) -> bool {
        self.ends_processes()
            || matches!(
                self,
                What::Killed { .. } | What::Signalled { .. } | What::Paused { .. } | What::Resumed { .. }
            )
    }

    fn ends_processes(&self) -> bool {
        matches!(self, What::StartFailed { .. } | What::Failed { .. } | What::Left { .. })
    }

    /// Whether the order of the two is irrelevant: ends of different ranks are reported as they come.
    fn is_akin(&self, other: &What) -> bool {
        discriminant(self) == discriminant(other) || (self.ends_processes() && other.ends_processes())
    }

    /// Whether both are equal apart from the ranks.
    fn is_same(&self, other: &What) -> bool {
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
                    What::Killed { by, signal, .. } | What::Signalled { by, signal, .. },
                    What::Killed { by: same, signal: with, .. }
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
    fn ranks(&self) -> Option<&Ranges> {
        match self {
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Lost { ranks, .. }
            | What::Killed { ranks, .. }
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

    fn ranks_mut(&mut self) -> Option<&mut Ranges> {
        match self {
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Killed { ranks, .. }
            | What::Signalled { ranks, .. }
            | What::Paused { ranks, .. }
            | What::Resumed { ranks, .. } => Some(ranks),
            _ => None,
        }
    }

    /// Whether programs determine how often it happens.
    fn may_repeat(&self) -> bool {
        matches!(
            self,
            What::StartFailed { .. }
                | What::Failed { .. }
                | What::Left { .. }
                | What::Lost { .. }
                | What::Killed { .. }
                | What::Signalled { .. }
                | What::Paused { .. }
                | What::Resumed { .. }
                | What::Checkpointed { .. }
                | What::Preempted { .. }
                | What::Restarting { .. }
                | What::Restarted { .. }
        )
    }

    fn weight(&self) -> usize {
        let ranges = |ranks: &Ranges| ranks.spans().count() * size_of::<(u32, u32)>();
        let inside = match self {
            What::Placed(premises) => premises.weight(),
            What::Started { pids, .. } => pids.len() * size_of::<(u32, u32)>(),
            What::StartFailed { ranks, .. }
            | What::Failed { ranks, .. }
            | What::Left { ranks, .. }
            | What::Lost { ranks, .. }
            | What::Killed { ranks, .. }
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
            What::Restarted { ranks, pids, .. } => ranges(ranks) + pids.len() * size_of::<(u32, u32)>(),
            What::Exited(ends) => {
                ends.groups.iter().map(|group| size_of_val(group) + ranges(&group.ranks)).sum()
            }
            _ => 0,
        };
        size_of::<Entry>() + inside
    }
}

/// The number of entries of an ordinary job.
const FEW: usize = 6;
/// The most entries of one job. Events that can happen only once are entered even beyond it.
const MOST_ENTRIES: usize = 1024;
/// Tools whose processes are known, of one job.
const MOST_TOOLS: usize = 64;
/// Later moments of all entries of one job; what happens then has the time of what was before.
const MOST_MOMENTS: usize = 1 << 16;
/// Equal events no further apart than this get the same time.
const SAME_TIME: Duration = Duration::from_millis(10);
/// The overhead of a text besides its bytes.
const PER_TEXT: usize = size_of::<Text>();

#[cfg(test)]
mod tests;
