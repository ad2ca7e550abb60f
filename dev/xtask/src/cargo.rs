//! Runs cargo and other programs, at the root of the workspace and without standard input.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs cargo; its output goes where ours goes.
pub(crate) fn cargo(args: &[&str]) -> Result<()> {
    run(&mut command(args))
}

/// Runs cargo and returns its standard output.
pub(crate) fn capture(args: &[&str]) -> Result<String> {
    let mut command = command(args);
    let shown = shown(&command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("running {shown}"))?;
    ensure!(output.status.success(), "{shown} failed ({})", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of {shown}"))
}

/// Runs a program after printing its command line; an unsuccessful end is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("$ {shown}");
    let status = command
        .current_dir(crate::root())
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("running {shown}"))?;
    ensure!(status.success(), "{shown} failed ({status})");
    Ok(())
}

/// Builds the shared library as it is shipped, and returns its path.
pub(crate) fn library() -> Result<PathBuf> {
    cargo(&["build", "--profile=library", "--locked", "--package", "phalanx-libpmix"])?;
    Ok(target().join("library/libpmix.so"))
}

/// cargo's output directory.
pub(crate) fn target() -> PathBuf {
    crate::root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
}

fn command(args: &[&str]) -> Command {
    let mut command = default_signals(&std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(args).current_dir(crate::root()).stdin(Stdio::null());
    command
}

/// Runs a program that ignores no signals.
pub(crate) fn default_signals(program: &OsStr) -> Command {
    if !ignores_signals() {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

/// Whether we were started with signals ignored, as `nohup` and shells' background jobs are. Programs under test would
/// inherit that, and launchers rightly keep ignored signals ignored: tests of signals would wait forever.
fn ignores_signals() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored & SIGNALS_UNDER_TEST != 0
}

/// SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT, SIGTSTP.
const SIGNALS_UNDER_TEST: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 9 | 1 << 11 | 1 << 14 | 1 << 17 | 1 << 19;

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
