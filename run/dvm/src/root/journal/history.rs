//! The history of one job: how it is recorded, and what is read from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{ProcId, Text};

use super::entry::{Entry, Moment};
use super::kill::Kill;
use super::what::What;
use crate::job::{JobVerdict, Phases, ToolProcess};
use crate::msg::{EndGroup, Ends, JobDesc, Reached, SpawnFailure, Stuck};
use crate::ranges::Ranges;
use crate::root::premises::Premises;

/// The history of one job.
#[derive(Debug)]
pub(in crate::root) struct Journal {
    desc: Arc<JobDesc>,
    /// The tool that runs it.
    run_by: Option<ProcId>,
    entries: Vec<Entry>,
    /// Entries dropped for lack of room.
    dropped: u64,
    /// The number of [`Moment`]s that all entries have besides their first ones.
    moments: usize,
    /// How many of the entries are texts that were logged, and their bytes.
    logged: (usize, usize),
    /// The processes of tools that have done something to it. A tool may be gone when the job ends.
    tools: BTreeMap<ProcId, ToolProcess>,
}

impl Journal {
    pub(super) fn new(desc: Arc<JobDesc>, run_by: Option<ProcId>) -> Journal {
        let entries = Vec::with_capacity(FEW);
        let (logged, tools) = ((0, 0), BTreeMap::new());
        Journal { desc, run_by, entries, dropped: 0, moments: 0, logged, tools }
    }

    /// Appends an event. Returns its number, which is that of an equal event at the same time if it was merged with one.
    pub(super) fn append(&mut self, number: u64, now: Time, what: What) -> u64 {
        if let Some(number) = self.join(number, now, &what) {
            return number;
        }
        if let Some(what) = self.news(what) {
            self.entries.push(Entry { number, at: now, what, later: Vec::new() });
        }
        number
    }

    /// Appends a text that was logged. False: there is no room for it. Such texts take no room from what happens to the job.
    pub(super) fn log(&mut self, number: u64, now: Time, what: What) -> bool {
        let (count, bytes) = (self.logged.0 + 1, self.logged.1 + what.weight());
        let has_room = count <= MOST_LOGGED && bytes <= MOST_LOGGED_BYTES;
        if has_room {
            self.logged = (count, bytes);
            self.entries.push(Entry { number, at: now, what, later: Vec::new() });
        }
        has_room
    }

    /// Adds the event to an entry with the same event of other ranks, if nothing of another kind has happened since. Returns
    /// the number.
    fn join(&mut self, number: u64, now: Time, what: &What) -> Option<u64> {
        let ranks = what.ranks().filter(|_| what.may_be_joined())?;
        let has_room = self.moments < MOST_MOMENTS;
        // Ends of processes of different kinds may come interleaved.
        let is_open = |entry: &&mut Entry| {
            entry.what.is_akin(what) && entry.what.ranks().is_some_and(|known| !known.intersects(ranks))
        };
        let happened = |entry: &&mut Entry| !matches!(entry.what, What::Logged { .. });
        let mut open = self.entries.iter_mut().rev().filter(happened).take_while(is_open);
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
        if what.may_repeat() && self.entries.len() - self.logged.0 >= MOST_ENTRIES {
            self.dropped += 1;
            return None;
        }
        Some(what)
    }

    /// The approximate size in bytes.
    pub(in crate::root) fn weight(&self) -> usize {
        let later = |one: &Moment| size_of_val(one) + one.ranks.spans().count() * size_of::<(u32, u32)>();
        let weight = |entry: &Entry| {
            size_of::<Entry>() + entry.what.weight() + entry.later.iter().map(later).sum::<usize>()
        };
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
    pub(in crate::root) fn note_tool(&mut self, tool: &ProcId, process: &ToolProcess) {
        if self.tools.len() < MOST_TOOLS {
            self.tools.entry(tool.clone()).or_insert_with(|| process.clone());
        }
    }

    pub(in crate::root) fn tool(&self, tool: &ProcId) -> Option<&ToolProcess> {
        self.tools.get(tool)
    }

    pub(in crate::root) fn desc(&self) -> &Arc<JobDesc> {
        &self.desc
    }

    pub(in crate::root) fn run_by(&self) -> Option<&ProcId> {
        self.run_by.as_ref()
    }

    /// The entries, in the order in which they happened.
    pub(in crate::root) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many entries were dropped for lack of room.
    pub(in crate::root) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// When the job was placed; its times count from then.
    pub(in crate::root) fn since(&self) -> Time {
        self.time_of(|what| matches!(what, What::Placed(_))).unwrap_or_default()
    }

    /// What its map was made from.
    pub(in crate::root) fn premises(&self) -> Option<&Premises> {
        self.entries.iter().find_map(|entry| match &entry.what {
            What::Placed(premises) => Some(&**premises),
            _ => None,
        })
    }

    pub(super) fn submitted(&self) -> Time {
        self.time_of(|what| matches!(what, What::Submitted)).unwrap_or_default()
    }

    /// From its placement until nothing was left of it.
    pub(in crate::root) fn duration(&self) -> Option<Duration> {
        Some(self.ended()?.since(self.since()))
    }

    /// When nothing was left of it.
    pub(in crate::root) fn ended(&self) -> Option<Time> {
        self.time_of(|what| matches!(what, What::Ended { .. }))
    }

    /// What its processes were waiting for when its end was decided.
    pub(in crate::root) fn stuck(&self) -> &[Stuck] {
        self.first(|what| match what {
            What::Stuck(stuck) => Some(&stuck[..]),
            _ => None,
        })
        .unwrap_or_default()
    }

    /// Whether any of its processes runs or has run.
    pub(in crate::root) fn has_begun(&self) -> bool {
        self.time_of(|what| matches!(what, What::Began { .. })).is_some()
    }

    /// How many processes are known to have failed to start.
    pub(in crate::root) fn start_failures(&self) -> u32 {
        let counts = self.entries.iter().filter_map(|entry| match &entry.what {
            What::StartFailed { ranks, .. } => Some(ranks.count()),
            _ => None,
        });
        counts.sum()
    }

    /// Whether each of its processes runs, or could not be started.
    pub(in crate::root) fn has_started(&self) -> bool {
        self.started().is_some()
    }

    /// Whether all its processes have ended.
    pub(in crate::root) fn has_exited(&self) -> bool {
        self.exits().is_some()
    }

    /// Why it ends, or has ended. A reason found out later replaces an earlier one.
    pub(in crate::root) fn verdict(&self) -> Option<&JobVerdict> {
        self.entries.iter().rev().find_map(|entry| match &entry.what {
            What::Ending(verdict) | What::Ended { verdict, .. } => Some(verdict),
            _ => None,
        })
    }

    /// The process that failed first, as far as is known.
    pub(in crate::root) fn first_failed(&self) -> Option<&ProcId> {
        let ended = self.first(|what| match what {
            What::Ended { first, .. } => Some(first.as_ref()),
            _ => None,
        });
        ended.unwrap_or_else(|| self.verdict().and_then(JobVerdict::culprit))
    }

    /// The exit code for the launcher of an ended job.
    pub(in crate::root) fn exit_code(&self) -> Option<i32> {
        self.first(|what| match what {
            What::Ended { exit_code, .. } => Some(*exit_code),
            _ => None,
        })
    }

    /// Whether any rank has called init.
    pub(in crate::root) fn has_connected(&self) -> bool {
        self.end_groups().iter().any(|group| group.connected)
    }

    /// The requester and signal of the first order by job control that ended some of its processes.
    pub(super) fn killer(&self) -> Option<(&ProcId, i32)> {
        let kills = self.kills().into_iter();
        let ended = |kill: &Kill<'_>| !(kill.ranks.is_empty() && kill.earlier.is_empty());
        kills.filter(ended).map(|kill| (kill.by, kill.signal)).next()
    }

    /// The ranks that job control has ended or is ending.
    pub(in crate::root) fn killed(&self) -> Ranges {
        let mut killed = Ranges::new();
        self.kills().iter().for_each(|kill| killed.add(&kill.ranks));
        killed
    }

    /// The orders by job control that ended processes, in their order.
    pub(super) fn kills(&self) -> Vec<Kill<'_>> {
        let mut kills: Vec<Kill<'_>> = Vec::new();
        for entry in &self.entries {
            match &entry.what {
                What::Killed { ranks, by, signal } => {
                    kills.push(Kill::new(ranks, by, *signal));
                }
                What::Spared { ranks, by, signal } => {
                    let meant = |kill: &&mut Kill<'_>| {
                        (kill.by, kill.signal) == (by, *signal) && kill.ranks.intersects(ranks)
                    };
                    if let Some(kill) = kills.iter_mut().rev().find(meant) {
                        kill.spare(ranks);
                    }
                }
                What::Restarting { ranks, .. } => kills.iter_mut().for_each(|kill| kill.restarted(ranks)),
                _ => {}
            }
        }
        kills
    }

    /// The first requester that sent this signal to the rank by job control.
    pub(super) fn sender(&self, number: i32, rank: Rank) -> Option<&ProcId> {
        self.first(|what| match what {
            What::Signalled { ranks, by, signal } => {
                (*signal == number && ranks.contains(rank.0)).then_some(by)
            }
            _ => None,
        })
    }

    /// The file of the first MPI library that a rank has loaded without having connected.
    pub(in crate::root) fn mpi(&self) -> Option<&str> {
        self.first(|what| match what {
            What::LoadedMpi { library, .. } => Some(library.file.as_str()),
            _ => None,
        })
    }

    /// Why the first process that could not be started was not.
    pub(super) fn start_failure(&self) -> Option<&SpawnFailure> {
        self.first(|what| match what {
            What::StartFailed { failure, .. } => Some(failure),
            _ => None,
        })
    }

    /// The result of the spawn, once each process runs or never will. Later failures do not count.
    pub(in crate::root) fn start_status(&self) -> Status {
        let is_overdue = self.time_of(|what| matches!(what, What::StartOverdue)).is_some();
        match self.start_failure() {
            _ if is_overdue => Status::ERR_TIMEOUT,
            Some(failure) => failure.status(),
            None if !self.pids().is_empty() => Status::SUCCESS,
            None => match self.verdict().map(JobVerdict::status) {
                Some(status) if !status.is_success() => status,
                _ => Status::ERR_JOB_FAILED_TO_LAUNCH,
            },
        }
    }

    /// How often ranks were started again, for those that were.
    pub(in crate::root) fn restarts(&self) -> BTreeMap<u32, u32> {
        let mut restarts = BTreeMap::new();
        for entry in &self.entries {
            if let What::Restarted { ranks, .. } = &entry.what {
                ranks.iter().for_each(|rank| *restarts.entry(rank).or_default() += 1);
            }
        }
        restarts
    }

    /// The pid of a rank; the last one if it was started again.
    pub(in crate::root) fn pid(&self, rank: Rank) -> Option<u32> {
        let again = self.entries.iter().rev().find_map(|entry| match &entry.what {
            What::Restarted { pids, .. } => pids.iter().find(|(of, _)| *of == rank.0),
            _ => None,
        });
        if let Some((_, pid)) = again {
            return Some(*pid);
        }
        let at = self.pids().binary_search_by_key(&rank.0, |(rank, _)| *rank).ok()?;
        self.pids().get(at).map(|(_, pid)| *pid)
    }

    /// The file that a rank was started from; the last one if it was started again.
    pub(in crate::root) fn program(&self, rank: Rank) -> Option<&Text> {
        self.entries.iter().rev().find_map(|entry| match &entry.what {
            What::Started { programs, .. } | What::Restarted { programs, .. } => programs.of(rank.0),
            _ => None,
        })
    }

    /// Rank and pid of all processes that have run, by rank.
    pub(in crate::root) fn pids(&self) -> &[(u32, u32)] {
        self.started().map_or(&[], |(pids, _)| pids)
    }

    /// How processes have ended, grouped by equal ends.
    fn end_groups(&self) -> &[EndGroup] {
        self.exits().map_or(&[], |ends| &ends.groups)
    }

    /// How each process has ended; none if it was lost with its node, or has not ended.
    pub(in crate::root) fn ends_by_rank(&self) -> Vec<Option<&EndGroup>> {
        let mut of_rank = vec![None; self.desc.size as usize];
        for group in self.end_groups() {
            for rank in group.ranks.iter() {
                of_rank.get_mut(rank as usize).into_iter().for_each(|of| *of = Some(group));
            }
        }
        of_rank
    }

    /// When the job reached each phase, counted from its submission.
    pub(in crate::root) fn phases(&self) -> Phases {
        let begin = self.submitted();
        let waited = self.since().since(begin);
        let by_all = |reached: Reached| (reached.count == self.desc.size).then_some(reached.after);
        let exits = self.exits();
        let connected = match exits {
            Some(ends) => by_all(ends.connected),
            None => self.first(|what| match what {
                What::Connected { count, after } => by_all(Reached { count: *count, after: *after }),
                _ => None,
            }),
        };
        Phases {
            placed: Some(waited),
            started: self.all_started().map(|after| waited + after),
            connected: connected.map(|after| waited + after),
            finalized: exits.and_then(|ends| by_all(ends.finalized)).map(|after| waited + after),
            exited: exits.filter(|ends| ends.exited.count > 0).map(|ends| waited + ends.exited.after),
            ended: self.ended().map(|at| at.since(begin)),
        }
    }

    /// When the last rank ran for the first time: in its first life, or in a later one if it was killed before that ran.
    fn all_started(&self) -> Option<Duration> {
        let (pids, after) = self.started()?;
        let mut ran: Ranges = pids.iter().map(|(rank, _)| *rank).collect();
        if ran.count() == self.desc.size {
            return Some(after);
        }
        self.entries.iter().find_map(|entry| {
            let What::Restarted { ranks, .. } = &entry.what else { return None };
            ran.add(ranks);
            (ran.count() == self.desc.size).then(|| entry.at.since(self.since()))
        })
    }

    fn started(&self) -> Option<(&[(u32, u32)], Duration)> {
        self.first(|what| match what {
            What::Started { pids, after, .. } => Some((&pids[..], *after)),
            _ => None,
        })
    }

    pub(super) fn exits(&self) -> Option<&Ends> {
        self.first(|what| match what {
            What::Exited(ends) => Some(&**ends),
            _ => None,
        })
    }

    /// When a rank without a reported end was lost, counted from the placement.
    pub(in crate::root) fn lost_after(&self, rank: u32) -> Option<Duration> {
        let is_loss = |what: &What| match what {
            What::Lost { ranks, .. } => ranks.contains(rank),
            What::Ending(verdict) => {
                matches!(verdict, JobVerdict::NodeLost { .. } | JobVerdict::AllocationEnded { .. })
            }
            _ => false,
        };
        self.time_of(is_loss).map(|at| at.since(self.since()))
    }

    fn time_of(&self, is_it: impl Fn(&What) -> bool) -> Option<Time> {
        self.entries.iter().find(|entry| is_it(&entry.what)).map(|entry| entry.at)
    }

    fn first<'a, T>(&'a self, read: impl Fn(&'a What) -> Option<T>) -> Option<T> {
        self.entries.iter().find_map(|entry| read(&entry.what))
    }
}

/// The number of entries of an ordinary job.
const FEW: usize = 6;
/// The most entries of one job. Events that can happen only once are entered even beyond it.
pub(super) const MOST_ENTRIES: usize = 1024;
/// The most texts that are logged in the record of one job, and the most bytes of them.
pub(in crate::root) const MOST_LOGGED: usize = 1024;
pub(in crate::root) const MOST_LOGGED_BYTES: usize = 1 << 20;
/// Tools whose processes are known, of one job.
const MOST_TOOLS: usize = 64;
/// Later moments of all entries of one job; what happens then has the time of what was before.
const MOST_MOMENTS: usize = 1 << 16;
/// The overhead of a text besides its bytes.
const PER_TEXT: usize = size_of::<Text>();
