//! The daemon shell with real processes, sockets and files.
//!
//! A launcher must have one thread and owns all its children, so every scenario is a process of its own: this program
//! runs itself once per scenario, and judges by the exit code. Scenarios wait for conditions, never for time to pass.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test without the harness that clippy knows")]

mod launcher;
mod scenarios;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "PHALANX_NODE_SCENARIO";
/// Far more than any of them needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(SCENARIO) {
        let mut known = scenarios::all().chain(scenarios::parts());
        let (_, run) = known.find(|(n, _)| name == *n).expect("a scenario of that name");
        // The ranks must not take themselves for scenarios.
        launcher::forget_variable(SCENARIO);
        run();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|a| a == name);
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = scenarios::all().map(|(name, _)| name).filter(|name| {
        filters.is_empty()
            || filters.iter().any(|f| if flag("--exact") { name == f } else { name.contains(*f) })
    });
    if flag("--list") {
        chosen.for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let failed: Vec<&str> = chosen.filter(|name| !passes(name)).collect();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// This program, to do one thing.
pub(crate) fn part(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.env(SCENARIO, name).stdin(Stdio::null());
    command
}

/// Waits for something that must become true.
pub(crate) fn until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn passes(name: &str) -> bool {
    let began = Instant::now();
    let mut child = part(name).spawn().expect("to start ourselves");
    let verdict = loop {
        match child.try_wait().expect("to wait") {
            Some(status) if status.success() => break "ok".to_owned(),
            Some(status) => break format!("FAILED ({status})"),
            None if began.elapsed() > PATIENCE => {
                child.kill().expect("to kill");
                child.wait().expect("to wait");
                break "FAILED (it hangs)".to_owned();
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    println!("test {name} ... {verdict} ({:.2?})", began.elapsed());
    verdict == "ok"
}
