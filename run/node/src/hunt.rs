//! Stopping ranks with all their descendants, in steps, between which the daemon does its other work.
//!
//! Each step looks at all processes and stops those of the ranks that go on. A process that was forked meanwhile is found by
//! the next step; the hunt for a rank ends when two steps in a row find none. A program that forks on and on, each process in a session of
//! its own, leaves us orphans: we reap none during a step, so the chain cannot go on unnoticed, and quick looks at the new ones
//! reach its living process, which is one of them or a child of one.
//!
//! A cgroup would not help here: moving a process into a freezer races with its forks as SIGSTOP does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use phalanx_wire::ProcId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::strays;
use crate::trees::{self, Seen, Wish};

/// The ranks that are being stopped.
#[derive(Debug, Default)]
pub(crate) struct Hunts {
    open: BTreeMap<ProcId, Hunt>,
    next: Option<Instant>,
}

#[derive(Debug)]
struct Hunt {
    since: Instant,
    /// Processes that have got the signal.
    signalled: BTreeSet<u32>,
    /// When the last one was found that had not got it.
    last_new: Instant,
    /// The last step has found none. It may have passed the place of a process that was being forked.
    was_quiet: bool,
}

/// The end of a hunt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caught {
    pub(crate) proc: ProcId,
    /// New processes appear faster than they can be stopped.
    pub(crate) escaped: bool,
}

impl Hunts {
    /// Begins a hunt, or begins it anew. Its first step is due.
    pub(crate) fn begin(&mut self, proc: ProcId) {
        let now = Instant::now();
        self.open
            .insert(proc, Hunt { since: now, signalled: BTreeSet::new(), last_new: now, was_quiet: false });
        self.next = Some(now);
    }

    /// Ends a hunt. Returns whether there was one.
    pub(crate) fn end(&mut self, proc: &ProcId) -> bool {
        self.open.remove(proc).is_some()
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&ProcId) -> bool) {
        self.open.retain(|proc, _| stays(proc));
    }

    /// When the next step is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.open.is_empty())
    }

    /// One step of all hunts. `wish_of` describes a rank as it is now. Returns the hunts that have ended.
    pub(crate) fn step(&mut self, wish_of: impl Fn(&ProcId) -> Wish) -> Vec<Caught> {
        let wishes: Vec<Wish> = self.open.keys().map(wish_of).collect();
        for group in wishes.iter().filter_map(|wish| wish.group) {
            let _ = kill_process_group(group, Signal::STOP);
        }
        let mut orphans = Orphans::new();
        let seen = trees::look();
        orphans.has_unknown |= seen.values().any(Seen::is_unknown_orphan);
        let mut going_on = self.stop(&seen, &wishes);
        let begun = Instant::now();
        let mut quiet_since = begun;
        loop {
            let found = self.stop(&orphans.look(), &wishes);
            if !found.is_empty() {
                quiet_since = Instant::now();
                going_on.extend(found);
            }
            let has_doubts = !going_on.is_empty() || orphans.has_unknown;
            if !has_doubts || quiet_since.elapsed() >= QUIET || begun.elapsed() >= SLICE {
                break;
            }
        }
        let now = Instant::now();
        let has_ended = |at: usize, hunt: &mut Hunt| {
            let quiet = now.duration_since(hunt.last_new);
            let are_of_others = orphans.has_of_rank && quiet >= QUIET_BESIDE;
            let has_doubts = orphans.has_unknown && !are_of_others;
            let is_quiet = !going_on.contains(&at) && !has_doubts;
            let was_quiet = std::mem::replace(&mut hunt.was_quiet, is_quiet);
            let is_late = now.duration_since(hunt.since) >= PATIENCE;
            ((is_quiet && was_quiet) || is_late).then_some(has_doubts || (!is_quiet && quiet < QUIET_BESIDE))
        };
        let all = self.open.iter_mut().enumerate();
        let ended = all.filter_map(|(at, (proc, hunt))| {
            Some(Caught { proc: proc.clone(), escaped: has_ended(at, hunt)? })
        });
        let ended: Vec<Caught> = ended.collect();
        ended.iter().for_each(|caught| drop(self.open.remove(&caught.proc)));
        self.next = Some(now + PAUSE);
        ended
    }

    /// Stops those of these processes that go on. Returns the hunts, by number, that have found any.
    fn stop(&mut self, seen: &BTreeMap<u32, Seen>, wishes: &[Wish]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for (at, (wish, hunt)) in wishes.iter().zip(self.open.values_mut()).enumerate() {
            for pid in trees::tree_of(seen, wish) {
                let Some(one) = seen.get(&pid) else { continue };
                if one.stands(hunt.signalled.contains(&pid)) {
                    continue;
                }
                let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
                if target.is_some_and(|pid| kill_process(pid, Signal::STOP).is_ok()) {
                    found.insert(at);
                    if hunt.signalled.insert(pid) {
                        hunt.last_new = Instant::now();
                    }
                }
            }
        }
        found
    }
}

/// The children that we get during a step.
struct Orphans {
    known: BTreeSet<u32>,
    /// One was gone, or had no environment, before it was known whose it was: it may be of any rank.
    has_unknown: bool,
    /// One belongs to some rank.
    has_of_rank: bool,
}

impl Orphans {
    fn new() -> Orphans {
        Orphans { known: children().collect(), has_unknown: false, has_of_rank: false }
    }

    /// The new ones, with their own children.
    fn look(&mut self) -> BTreeMap<u32, Seen> {
        let mut new: Vec<u32> = children().filter(|pid| self.known.insert(*pid)).collect();
        let mut seen = BTreeMap::new();
        while let Some(pid) = new.pop() {
            match trees::see(pid) {
                Some(one) => {
                    self.has_of_rank |= one.of.is_some();
                    self.has_unknown |= one.of.is_none();
                    new.extend(strays::children_of(pid).into_iter().map(trees::number_of));
                    seen.insert(pid, one);
                }
                None => self.has_unknown = true,
            }
        }
        seen
    }
}

fn children() -> impl Iterator<Item = u32> {
    strays::children().unwrap_or_default().into_iter().map(trees::number_of)
}

/// A rank in which new processes are found for so long escapes.
const PATIENCE: Duration = Duration::from_secs(1);
/// For so long after the last find, a step goes on with quick looks.
const QUIET: Duration = Duration::from_millis(2);
/// After so long without a find, unknown orphans are of another rank, of which some are seen.
const QUIET_BESIDE: Duration = Duration::from_millis(300);
/// The longest that a step goes on with them.
const SLICE: Duration = Duration::from_millis(10);
/// From a step to the next one.
const PAUSE: Duration = Duration::from_millis(1);
