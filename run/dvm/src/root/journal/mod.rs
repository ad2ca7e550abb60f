//! The journal of a job: what happened to it, in order, and nothing twice.
//!
//! Whoever decides something about a job appends it here. Everything that is told of a job's past is read from here: how it
//! ended, its processes, its phases, events for those who ask late. No one else keeps history. The journals of jobs that have
//! ended are kept within one bound; then the oldest go first.
//!
//! Equal things that happen to many ranks, with nothing else in between, are one entry with ranges of ranks, and the time of each. What
//! happens to a rank once more is an entry of its own. No clock is read here.

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
use crate::root::placing::Premises;

/// All that happened to one job.
#[derive(Debug)]
pub(super) struct Journal {
    desc: Arc<JobDesc>,
    /// The tool that runs it.
    run_by: Option<ProcId>,
    entries: Vec<Entry>,
    /// Entries that found no room.
    dropped: u64,
    /// How many moments all entries have beside their first ones.
    moments: usize,
    /// The processes of tools that have done something to it. A tool may be gone when the job ends.
    tools: BTreeMap<ProcId, ToolProcess>,
}

#[derive(Debug)]
pub(super) struct Entry {
    number: u64,
    at: Time,
    what: What,
    /// The same has happened to others later: these are among its ranks.
    later: Vec<Moment>,
}

/// When a thing happened to some of the ranks of an entry, and its number then. What belongs to no ranks has none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) number: u64,
    pub(super) at: Time,
    pub(super) ranks: Ranges,
}

/// What can happen to a job. Times that daemons tell are those since it was placed.
#[derive(Debug)]
pub(super) enum What {
    Submitted,
    /// Its processes have places, which follow from this, and the daemons are told.
    Placed(Box<Premises>),
    /// These could not be started, for the same reason.
    StartFailed {
        ranks: Ranges,
        failure: SpawnFailure,
    },
    /// The start has taken longer than the spawn allows.
    StartOverdue,
    /// The first of its processes run.
    Began {
        /// The jobs whose ranks may hear of it.
        concerned: Arc<[Nspace]>,
    },
    /// Every process runs, or could not be started. Rank and pid of those that run, by rank.
    Started {
        pids: Vec<(u32, u32)>,
        after: Duration,
        /// All of them run.
        whole: bool,
        /// The jobs whose ranks may hear of it.
        concerned: Arc<[Nspace]>,
    },
    /// So many have called init: the first of them, then all.
    Connected {
        count: u32,
        after: Duration,
    },
    /// A process that has not connected has loaded an MPI library.
    LoadedMpi {
        by: ProcId,
        library: MpiLibrary,
    },
    /// All that are to wait for a debugger do.
    Stopped,
    /// These have ended badly, and alike; the first of them like this.
    Failed {
        ranks: Ranges,
        first: ProcEnd,
        /// The jobs whose ranks may hear of it.
        concerned: Arc<[Nspace]>,
    },
    /// These have ended well, and alike; the first of them like this. Entered if somebody asked for it.
    Left {
        ranks: Ranges,
        first: ProcEnd,
        /// The jobs whose ranks may hear of it.
        concerned: Arc<[Nspace]>,
    },
    /// These were lost with their node, and the job goes on.
    Lost {
        ranks: Ranges,
        node: String,
        why: String,
        /// The jobs whose ranks may hear of it.
        concerned: Arc<[Nspace]>,
    },
    /// A process or a tool has ended these by job control.
    Killed {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// A process or a tool has sent these a signal by job control. Whether it ends them is their affair.
    Signalled {
        ranks: Ranges,
        by: ProcId,
        signal: i32,
    },
    /// A process, a tool, or else the user, has had these pause.
    Paused {
        ranks: Ranges,
        by: Option<ProcId>,
    },
    /// Likewise, go on.
    Resumed {
        ranks: Ranges,
        by: Option<ProcId>,
    },
    /// When its end was decided, its processes were waiting for this.
    Stuck(Vec<Stuck>),
    /// These have taken a checkpoint of this name.
    Checkpointed {
        ranks: Ranges,
        name: Text,
    },
    /// These were told that they lose their place.
    Preempted {
        ranks: Ranges,
        by: ProcId,
    },
    /// These are to be started again: because somebody wants it, or because they have failed.
    Restarting {
        ranks: Ranges,
        by: Option<ProcId>,
        from: Option<Text>,
    },
    /// They run again, with these pids.
    Restarted {
        ranks: Ranges,
        pids: Vec<(u32, u32)>,
        /// The jobs whose ranks may hear of it.
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
        /// The jobs whose ranks may hear of it.
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

    /// When it happened to whom, in order. Numbers count for all jobs together.
    pub(super) fn moments(&self) -> impl Iterator<Item = Moment> + '_ {
        let mut ranks = self.what.ranks().cloned().unwrap_or_default();
        self.later.iter().flat_map(|later| later.ranks.iter()).for_each(|rank| ranks.remove(rank));
        let first = Moment { number: self.number, at: self.at, ranks };
        std::iter::once(first).chain(self.later.iter().cloned())
    }

    /// The same happens to others: its number.
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

/// Hands out sequence numbers, and keeps the journals of jobs that have ended, the oldest first.
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

    /// Adds what has just happened. Its number is that of what has happened alike at the same time.
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

    /// The last number.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The job has ended: its journal is kept for a while.
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

    /// Of a job that has ended.
    pub(super) fn get(&self, nspace: &Nspace) -> Option<&Journal> {
        self.ended.iter().rev().find(|journal| journal.desc.nspace == *nspace).map(|journal| &**journal)
    }

    /// Of the jobs that have ended, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Journal> {
        self.ended.iter().map(|journal| &**journal)
    }
}

impl Journal {
    /// Adds to an entry that says the same of other ranks, if nothing of another kind has happened since: its number.
    fn join(&mut self, number: u64, now: Time, what: &What) -> Option<u64> {
        let ranks = what.ranks().filter(|_| what.may_be_joined())?;
        let has_room = self.moments < MOST_MOMENTS;
        // What has ended some ranks and others otherwise may come in any order.
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

    /// Hands back what is to be an entry.
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

    /// About how many bytes it takes.
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
    /// Whether others may join those to whom it has happened.
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

    /// Whether both may stand in any order: which of several ranks ends how is told as it comes.
    fn is_akin(&self, other: &What) -> bool {
        discriminant(self) == discriminant(other) || (self.ends_processes() && other.ends_processes())
    }

    /// Whether it is the same, but for the ranks.
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

    /// To whom it has happened, if it belongs to ranks.
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

    /// Whether programs decide how often it happens.
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

/// What happens to an ordinary job.
const FEW: usize = 6;
/// Of one job. What can happen only once is entered all the same.
const MOST_ENTRIES: usize = 1024;
/// Tools whose processes are known, of one job.
const MOST_TOOLS: usize = 64;
/// Later moments of all entries of one job; what happens then has the time of what was before.
const MOST_MOMENTS: usize = 1 << 16;
/// What is no further apart has happened at the same time.
const SAME_TIME: Duration = Duration::from_millis(10);
/// What a text takes beside its bytes.
const PER_TEXT: usize = size_of::<Text>();

#[cfg(test)]
mod tests;
