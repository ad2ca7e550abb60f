//! Ranks with all their descendants: which processes these are, and signals for all of them.
//!
//! A process belongs to a rank if its environment names that rank, as in everything that the rank has started without replacing the environment, or
//! if it descends from one that does. So children with a session of their own belong, too. Processes may be born while we look: we look again until
//! no new one is found. Stopping ranks takes more than that (`hunt.rs`).

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
    if wishes.is_empty() {
        return;
    }
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
pub(crate) struct Seen {
    parent: u32,
    /// As the kernel reports it, such as `R` or `T`.
    state: u8,
    /// Job and rank, as named in its environment.
    pub(crate) of: Option<(Vec<u8>, u32)>,
    /// It executes another program or ends just now, and has no environment for that moment.
    is_between: bool,
}

impl Seen {
    /// Whether it does nothing any more. `stopped`: it was sent SIGSTOP, which waits for a call of the kernel that nothing interrupts.
    pub(crate) fn stands(&self, stopped: bool) -> bool {
        match self.state {
            b'T' | b't' | b'Z' | b'X' | b'x' => true,
            b'D' => stopped,
            _ => false,
        }
    }

    /// Whether it is our child, and of some rank that cannot be known at this moment.
    pub(crate) fn is_unknown_orphan(&self) -> bool {
        self.is_between && self.parent == std::process::id()
    }
}

/// All processes except this one.
pub(crate) fn look() -> BTreeMap<u32, Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let me = std::process::id();
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != me && !strays::is_warden(*pid));
    others.filter_map(|pid| Some((pid, see(pid)?))).collect()
}

pub(crate) fn see(pid: u32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even parentheses.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ"));
    let of = environment.as_ref().ok().and_then(|environment| rank_of(environment));
    // Where an environment ends. One that is empty on purpose has an end, too.
    let has_none = environment.is_ok_and(|found| found.is_empty()) && fields.nth(ENV_END) == Some("0");
    Some(Seen { parent, state, of, is_between: has_none && !matches!(state, b'Z' | b'X' | b'x') })
}

pub(crate) fn number_of(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

fn rank_of(environment: &[u8]) -> Option<(Vec<u8>, u32)> {
    let find = |name: &[u8]| environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name));
    let rank = std::str::from_utf8(find(b"PHALANX_RANK=")?).ok()?.parse().ok()?;
    Some((find(b"PHALANX_JOB=")?.to_vec(), rank))
}

pub(crate) fn tree_of(seen: &BTreeMap<u32, Seen>, wish: &Wish) -> BTreeSet<u32> {
    let ProcId { nspace, rank } = &wish.proc;
    let is_of_rank = |seen: &Seen| {
        seen.of.as_ref().is_some_and(|(job, of)| *job == nspace.as_str().as_bytes() && *of == rank.0)
    };
    let mut tree: BTreeSet<u32> =
        seen.iter().filter(|(_, one)| is_of_rank(one)).map(|(pid, _)| *pid).collect();
    tree.extend(wish.pid.map(number_of));
    loop {
        let is_new = |(pid, one): &(&u32, &Seen)| !tree.contains(pid) && tree.contains(&one.parent);
        let more: Vec<u32> = seen.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if more.is_empty() {
            return tree;
        }
        tree.extend(more);
    }
}

/// The fields of a process between its parent (field 4) and this one (field 51).
const ENV_END: usize = 46;
/// A tree that forks faster than this escapes.
const MOST_LOOKS: usize = 16;
