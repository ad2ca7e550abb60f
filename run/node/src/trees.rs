//! Ranks with all their descendants: which processes these are, and signals for all of them.
//!
//! A process belongs to a rank if its environment names that rank, as in everything that the rank has started without replacing the environment, or
//! if it descends from one that does. So children with a session of their own belong, too. Processes may be born while we look: we look again until
//! no new one is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use phalanx_wire::ProcId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::strays;

/// A process that is to get a signal, with all its descendants.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) proc: ProcId,
    /// The process that was started; none if it was reaped.
    pub(crate) pid: Option<Pid>,
    pub(crate) signal: Signal,
    /// A process group that gets the signal last: a process without the rank's environment is found below its parent only while that lives.
    pub(crate) group: Option<Pid>,
}

/// Signals each tree. One look at /proc serves all of them.
pub(crate) fn signal(wishes: &[Wish]) {
    signal_found(wishes);
    for wish in wishes {
        if let Some(group) = wish.group {
            let _ = kill_process_group(group, wish.signal);
        }
    }
}

fn signal_found(wishes: &[Wish]) {
    let mut reached = BTreeSet::new();
    for _ in 0..MOST_LOOKS {
        let seen = look();
        let mut found_new = false;
        for (at, wish) in wishes.iter().enumerate() {
            for pid in tree_of(&seen, wish) {
                if !reached.insert((at, pid)) {
                    continue;
                }
                let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
                found_new |= target.is_some_and(|pid| kill_process(pid, wish.signal).is_ok());
            }
        }
        // No repeat if nothing new was found. SIGCONT needs none: processes that run may fork on.
        if !found_new || wishes.iter().all(|wish| wish.signal == Signal::CONT) {
            return;
        }
    }
}

#[derive(Debug)]
struct Seen {
    parent: u32,
    /// Job and rank, as named in its environment.
    of: Option<(Vec<u8>, u32)>,
}

/// All processes except this one.
fn look() -> BTreeMap<u32, Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let me = std::process::id();
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != me && !strays::is_warden(*pid));
    others.filter_map(|pid| Some((pid, Seen { parent: parent(pid)?, of: rank_of(pid) }))).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even parentheses.
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse().ok()
}

fn rank_of(pid: u32) -> Option<(Vec<u8>, u32)> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let find = |name: &[u8]| environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name));
    let rank = std::str::from_utf8(find(b"PHALANX_RANK=")?).ok()?.parse().ok()?;
    Some((find(b"PHALANX_JOB=")?.to_vec(), rank))
}

fn tree_of(seen: &BTreeMap<u32, Seen>, wish: &Wish) -> BTreeSet<u32> {
    let ProcId { nspace, rank } = &wish.proc;
    let is_of_rank = |seen: &Seen| {
        seen.of.as_ref().is_some_and(|(job, of)| *job == nspace.as_str().as_bytes() && *of == rank.0)
    };
    let mut tree: BTreeSet<u32> =
        seen.iter().filter(|(_, one)| is_of_rank(one)).map(|(pid, _)| *pid).collect();
    tree.extend(wish.pid.map(|pid| pid.as_raw_nonzero().get().cast_unsigned()));
    loop {
        let is_new = |(pid, one): &(&u32, &Seen)| !tree.contains(pid) && tree.contains(&one.parent);
        let more: Vec<u32> = seen.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if more.is_empty() {
            return tree;
        }
        tree.extend(more);
    }
}

/// A tree that forks faster than this escapes.
const MOST_LOOKS: usize = 16;
