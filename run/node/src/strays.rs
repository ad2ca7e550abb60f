//! Processes that ranks have started and left, in whatever session or group: found by the marker that every process of a session has in its
//! environment.
//!
//! The kernel makes orphans children of the launcher, so that it knows without a search when there are none. Then they are also found as its
//! children, whatever their environment is; but not if it had children before its first rank, whose orphans look the same as those of ranks.
//!
//! Commands that start daemons leave such children on purpose, such as a connection that ssh keeps. They stay.

use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid,
    waitpid,
};

/// Adopts orphans of our descendants from now on. Where that fails, there is always a search.
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

/// Whether a search may find any process: we have children that are not `known`.
pub(crate) fn are_possible(known: impl Fn(Pid) -> bool) -> bool {
    children().is_none_or(|children| children.into_iter().any(|pid| !known(pid)))
}

/// Our children. Not every kernel lists them.
pub(crate) fn children() -> Option<Vec<Pid>> {
    listed("self")
}

/// The children of another process, as far as the kernel lists them.
pub(crate) fn children_of(pid: u32) -> Vec<Pid> {
    listed(&pid.to_string()).unwrap_or_default()
}

fn listed(process: &str) -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).ok()?;
        all.extend(children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    Some(all)
}

/// Kills all processes with the marker, `NAME=VALUE`, and `others`, until none is found. `others` returns how many it has found.
pub(crate) fn kill_all(marker: &[u8], others: impl Fn() -> usize) {
    for _ in 0..KILL_ROUNDS {
        if others() + kill_marked(marker) == 0 {
            break;
        }
        std::thread::sleep(KILL_PAUSE);
    }
}

/// Kills our children, except for the `spared` and what agents have left; returns how many there were, with those that had ended: each may have
/// left another one. We adopt their children.
pub(crate) fn kill_children(spared: impl Fn(Pid) -> bool) -> usize {
    let found = children().unwrap_or_default().into_iter();
    let is_of_others = |pid: u32| is_warden(pid) || carries(pid, PARTING.as_bytes());
    let strays =
        found.filter(|pid| !spared(*pid) && !is_of_others(pid.as_raw_nonzero().get().cast_unsigned()));
    strays.filter(|pid| is_reaped(*pid) || kill_process(*pid, Signal::KILL).is_ok()).count()
}

fn is_reaped(child: Pid) -> bool {
    !matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None))
}

/// Kills every living process with the marker; returns how many.
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

/// Whether a process was started with this variable. The environment of other users' processes cannot be read; that of a zombie is empty.
fn carries(pid: u32, marker: &[u8]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|b| *b == 0).any(|variable| variable == marker)
}

/// A launcher among the ranks has a warden of its own, which is at work now.
pub(crate) fn is_warden(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/comm"))
        .is_ok_and(|name| name.strip_suffix(b"\n") == Some(WARDEN.as_bytes()))
}

/// In the environment of processes that may leave others behind, in place of a session's marker. Those have it as well, unless they have overwritten
/// their environment, as an ssh in the background does.
pub(crate) const PARTING: &str = "PHALANX_AGENT=1";
/// Without `px` in it: killing all launchers by that name must not kill the process that cleans up after them.
pub(crate) const WARDEN: &str = "phalanx-warden";
const KILL_ROUNDS: u32 = 100;
const KILL_PAUSE: Duration = Duration::from_millis(10);
