//! The state of other processes: which live, their children, their memory.
//!
//! Only reads `/proc`. Tests wait here for conditions, with deadlines that no healthy machine reaches.

use std::fs;
use std::time::{Duration, Instant};

/// Waits until `condition` holds. Fails the test if it does not within three minutes.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "after {PATIENCE:?} still not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The living processes that have `assignment` (`NAME=VALUE`) in their environment: pid and command line.
///
/// A test marks its job with a variable of its own, so that it finds its ranks even if their parent has changed.
pub fn survivors(assignment: &str) -> Vec<(u32, String)> {
    processes()
        .filter(|&pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|block| block.split(|&byte| byte == 0).any(|entry| entry == assignment.as_bytes()))
        })
        .filter(|&pid| lives(pid))
        .map(|pid| (pid, command_line(pid)))
        .collect()
}

/// Whether a process runs; zombies do not. Not every container has an init process that reaps orphans.
pub fn lives(pid: u32) -> bool {
    !matches!(stat(pid), None | Some(('Z' | 'X', _)))
}

/// The living children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    processes().filter(|&pid| stat(pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// The current and the largest resident size of a process, in KiB.
pub fn rss_kib(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_matches([':', '\t', ' ']).split(' ').next()?.parse().ok()
    };
    Some((field("VmRSS")?, field("VmHWM")?))
}

/// Whether a process and all its descendants are waiting for others: all their threads sleep, and none has run between several
/// samples. A runnable thread without a processor counts as running, so a busy machine makes no process look idle.
pub fn rests(pid: u32) -> bool {
    let first = asleep(pid);
    first.is_some()
        && (0..3).all(|_| {
            std::thread::sleep(Duration::from_millis(20));
            asleep(pid) == first
        })
}

/// The threads of a process and its descendants with how often each has run, if all of them sleep or are stopped.
fn asleep(pid: u32) -> Option<Vec<(u32, u64)>> {
    let (mut all, mut next) = (vec![pid], 0);
    while let Some(parent) = all.get(next) {
        all.extend(children_of(*parent));
        next += 1;
    }
    let mut threads = Vec::new();
    for pid in all {
        for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let switches = |name: &str| field(name)?.parse::<u64>().ok();
            if !matches!(field("State:")?.chars().next(), Some('S' | 'T' | 't')) {
                return None;
            }
            let runs = switches("voluntary_ctxt_switches:")? + switches("nonvoluntary_ctxt_switches:")?;
            threads.push((entry.file_name().to_str()?.parse().ok()?, runs));
        }
    }
    Some(threads)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// State letter and parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, even parentheses.
    let mut rest = text[text.rfind(')')? + 1..].split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// The longest that a busy machine may take for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_rests_only_if_its_children_wait_too() {
        let rests_in = |script: &str, looks: usize| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().expect("a shell");
            let all = || 1 + children_of(child.id()).len();
            eventually("it is under way", || all() == 2);
            let seen = (0..looks).any(|_| rests(child.id()));
            for pid in children_of(child.id()).into_iter().chain([child.id()]) {
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let _ = child.wait();
            seen
        };
        assert!(rests_in("sleep 1000 & wait", 10_000));
        assert!(
            !rests_in("while :; do :; done & wait", 20),
            "its child is busy, with a processor or without"
        );
    }
}
