//! Resources used by processes and by this node, from `/proc`.

use std::fs;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use phalanx_dvm::{Measured, NodeUsage, Usage};
use rustix::time::{ClockId, clock_gettime};

/// Measures this daemon, the node, and the given processes (rank and pid).
pub(crate) fn measure(pids: &[(u32, u32)]) -> Measured {
    let seen = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let of_proc = |(rank, pid): &(u32, u32)| Some((*rank, of_process(*pid, seen)?));
    Measured {
        daemon: fs::read_to_string("/proc/self/status").ok().and_then(|status| bytes(&status, "VmRSS")),
        node: of_node(seen),
        procs: pids.iter().filter_map(of_proc).collect(),
    }
}

fn of_process(pid: u32, seen: u64) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // The name in parentheses may hold anything, even parentheses.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    let ticks = number::<u64>(&fields, 11)? + number::<u64>(&fields, 12)?;
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?);
    Some(Usage {
        // Missing for a process that has ended.
        resident: bytes(&status, "VmRSS")?,
        size: bytes(&status, "VmSize")?,
        most_size: bytes(&status, "VmPeak")?,
        time: of_ticks(ticks),
        age: now.saturating_sub(of_ticks(number(&fields, 19)?)),
        state: fields.first()?.chars().next()?,
        priority: number(&fields, 15)?,
        threads: number(&fields, 17)?,
        cpu: number(&fields, 36)?,
        seen,
    })
}

fn of_node(seen: u64) -> Option<NodeUsage> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let load: Vec<&str> = load.split_whitespace().collect();
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name| bytes(&memory, name);
    Some(NodeUsage {
        load: [number(&load, 0)?, number(&load, 1)?, number(&load, 2)?],
        memory: bytes("MemTotal")?,
        free: bytes("MemFree")?,
        buffers: bytes("Buffers")?,
        cached: bytes("Cached")?,
        swap: bytes("SwapTotal")?,
        swap_free: bytes("SwapFree")?,
        swap_cached: bytes("SwapCached")?,
        seen,
        link: None,
    })
}

fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000 / TICKS))
}

fn number<T: FromStr>(fields: &[&str], at: usize) -> Option<T> {
    fields.get(at)?.parse().ok()
}

/// The value of the line `name: N kB`, in bytes.
fn bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Per second: the kernel's unit of processor time in /proc.
const TICKS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_node_are_seen() {
        let measured = measure(&[(3, std::process::id()), (4, u32::MAX)]);
        assert!(measured.daemon.unwrap() > 0 && measured.node.unwrap().memory > 0);
        let [(3, usage)] = measured.procs.as_slice() else { panic!("{:?}", measured.procs) };
        assert!(usage.resident > 0 && usage.size >= usage.resident && usage.most_size >= usage.size);
        // Tests have not run for a day; start times of processes are rounded.
        let day = Duration::from_secs(86_400);
        assert!(usage.age < day && usage.time <= (usage.age + Duration::from_secs(1)) * 64, "{usage:?}");
        assert!(usage.threads > 0 && usage.state.is_ascii_alphabetic(), "{usage:?}");
    }
}
