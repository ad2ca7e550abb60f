//! One run of one command: how long it took, what it printed, whether it ended at all.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

/// No run here takes a tenth of this. Peers are known to hang.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Run {
    /// The monotonic clock at the start, in microseconds.
    pub(crate) began: f64,
    pub(crate) took: Duration,
    /// `None`: it hung and was killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
}

/// Runs a command and discards its output.
pub(crate) fn silent(command: Command) -> Run {
    run(command, false)
}

/// Runs a command and keeps its standard output, which must fit into a pipe.
pub(crate) fn captured(command: Command) -> Run {
    run(command, true)
}

fn run(mut command: Command, keep: bool) -> Run {
    let stdout = if keep { Stdio::piped() } else { Stdio::null() };
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::null()).process_group(0);
    let clock = clock_gettime(ClockId::Monotonic);
    let began = clock.tv_sec as f64 * 1e6 + clock.tv_nsec as f64 / 1e3;
    let started = Instant::now();
    let mut child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
    let pid = Pid::from_child(&child);
    let fd = pidfd_open(pid, PidfdFlags::empty()).expect("watching a process");
    let patience = Timespec::try_from(PATIENCE).expect("a few seconds");
    let ended = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)).is_ok_and(|ready| ready > 0);
    let took = started.elapsed();
    if !ended {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait().expect("waiting for a process");
    let mut text = String::new();
    if let Some(pipe) = &mut child.stdout
        && ended
    {
        let _ = pipe.read_to_string(&mut text);
    }
    Run { began, took, code: status.code().filter(|_| ended), stdout: text }
}

/// The output of all ranks, by metric.
pub(crate) fn metrics_of(text: &str) -> BTreeMap<String, Vec<f64>> {
    let mut metrics: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((metric, value)) = line.split_once(' ')
            && let Ok(value) = value.parse()
        {
            metrics.entry(metric.to_owned()).or_default().push(value);
        }
    }
    metrics
}

/// The median; `None` without samples.
pub(crate) fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The machine, without which the numbers mean nothing.
pub(crate) fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cpus} CPUs, Linux {kernel}, load {load} at the beginning")
}
