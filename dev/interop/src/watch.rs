//! What other processes do: who lives, who is whose child, how much memory is in use.
//!
//! Only reads `/proc`. Tests wait here for conditions, with deadlines that no healthy machine reaches.

use std::fs;
use std::time::{Duration, Instant};

/// Waits until `condition` holds. Fails the test when it does not within a minute.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "after a minute still not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.elapsed()
}

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The living processes whose environment has `assignment` (`NAME=VALUE`): pid and command line.
///
/// A test marks its job with a variable of its own, so that it finds its ranks whoever their parent is now.
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

/// Whether a process runs, also if nobody has waited for it. Not every container has somebody who waits for orphans.
pub fn lives(pid: u32) -> bool {
    !matches!(stat(pid), None | Some(('Z' | 'X', _)))
}

/// The living children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    processes().filter(|&pid| stat(pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// The resident size of a process and the largest it ever was, in KiB.
pub fn rss_kib(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_matches([':', '\t', ' ']).split(' ').next()?.parse().ok()
    };
    Some((field("VmRSS")?, field("VmHWM")?))
}

/// Whether a process has used no processor time for a moment, as one does that waits for somebody.
pub fn rests(pid: u32) -> bool {
    let before = cpu_ticks(pid);
    std::thread::sleep(Duration::from_millis(300));
    before == cpu_ticks(pid)
}

fn cpu_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    after.split_ascii_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// State letter and parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, even parentheses.
    let mut rest = text[text.rfind(')')? + 1..].split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
