//! Processes that ranks have started and left, in whatever session or group: found by what every process of a session carries in
//! its environment.
//!
//! The kernel makes them children of the launcher when their parents die, so that it knows without a search that there are none. Then they
//! are found as its children, too, with whatever environment; but not if it had children before its first rank, whose orphans
//! cannot be told from those of ranks.
//!
//! Such children were left by the commands that start daemons, such as a connection that ssh keeps. They stay.

use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid,
    waitpid,
};

/// From now on orphans of our descendants become children of ours. Where that cannot be, there is always a search.
pub(crate) fn adopt() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::debug!(%error, "orphans are left to others");
    }
}

/// Whether this process has any children.
pub(crate) fn have_children() -> bool {
    let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    any.err() != Some(Errno::CHILD)
}

/// Whether a search may find anybody: we have children that are not `known`.
pub(crate) fn are_possible(known: impl Fn(Pid) -> bool) -> bool {
    children().is_none_or(|children| children.into_iter().any(|pid| !known(pid)))
}

/// Our children. Not every kernel tells.
pub(crate) fn children() -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).ok()?;
        all.extend(children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    Some(all)
}

/// Kills all that carry the marker, `NAME=VALUE`, and `others`, until nobody is found. `others` says how many it has found.
pub(crate) fn kill_all(marker: &[u8], others: impl Fn() -> usize) {
    for _ in 0..KILL_ROUNDS {
        if others() + kill_marked(marker) == 0 {
            break;
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Kills our children, but for those that are `spared` and what agents have left; returns how many were not dead yet. Theirs become ours.
pub(crate) fn kill_children(spared: impl Fn(Pid) -> bool) -> usize {
    let found = children().unwrap_or_default().into_iter();
    let is_of_others = |pid: u32| is_warden(pid) || carries(pid, PARTING.as_bytes());
    let strays =
        found.filter(|pid| !spared(*pid) && !is_of_others(pid.as_raw_nonzero().get().cast_unsigned()));
    strays.filter(|pid| !is_reaped(*pid) && kill_process(*pid, Signal::KILL).is_ok()).count()
}

fn is_reaped(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Kills every process that carries the marker and is not dead yet; returns how many.
pub(crate) fn kill_marked(marker: &[u8]) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let me = std::process::id();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != me && carries(*pid, marker) && !is_warden(*pid))
        .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
        .count()
}

/// Whether a process was started with this variable. The environment of other users' processes cannot be read, that
/// of a zombie is empty.
fn carries(pid: u32, marker: &[u8]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|b| *b == 0).any(|variable| variable == marker)
}

/// A launcher among the ranks has a warden of its own, which has work to do now.
pub(crate) fn is_warden(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/comm"))
        .is_ok_and(|name| name.strip_suffix(b"\n") == Some(WARDEN.as_bytes()))
}

/// In the environment of what may leave something behind, in place of a session's marker. What it has left carries it as well, unless it has
/// written over its environment, as ssh does that stays in the background.
pub(crate) const PARTING: &str = "PHALANX_AGENT=1";
/// Without `px` in it: who kills all launchers by that name shall not kill what cleans up behind them.
pub(crate) const WARDEN: &str = "phalanx-warden";
const KILL_ROUNDS: u32 = 100;
const KILL_PAUSE: Duration = Duration::from_millis(10);
