//! The daemon shell with real processes, sockets and files.
//!
//! A launcher must have one thread and owns all its children, so every scenario is a process of its own: this program runs itself once per scenario,
//! and judges by the exit code. Scenarios wait for conditions, never for time to pass.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test without the harness that clippy knows")]

mod launcher;
mod scenarios;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

const SCENARIO: &str = "PHALANX_NODE_SCENARIO";
/// Far more than any scenario needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(name) = std::env::var_os(SCENARIO) {
        let mut known = scenarios::all().chain(scenarios::parts());
        let (_, run) = known.find(|(n, _)| name == *n).expect("a scenario of that name");
        // Ranks must not inherit it, or they would run scenarios.
        launcher::forget_variable(SCENARIO);
        run();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    // Scenarios measure and kill: one at a time.
    arguments.test_threads.get_or_insert(1);
    let trial = |(name, _)| Trial::test(name, move || try_out(name)).with_kind("in turn");
    let trials = scenarios::all().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// This program, for one scenario or part.
pub(crate) fn part(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.env(SCENARIO, name).stdin(Stdio::null());
    command
}

/// Waits until the condition is true.
pub(crate) fn until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs one scenario in a process of its own.
fn try_out(name: &str) -> Result<(), Failed> {
    let mut child = part(name).spawn().expect("to start ourselves");
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match child.try_wait().expect("to wait") {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("it ended with {status}").into()),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    child.kill().expect("to kill");
    child.wait().expect("to wait");
    Err("it hangs".into())
}
