//! Running cargo and other programs, at the root of the workspace and without standard input.

use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};

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

/// Runs cargo and hands on its standard output while it comes. Returned are what was made of it, and how cargo ended.
pub(crate) fn watched<T>(
    args: &[&str],
    watch: impl FnOnce(ChildStdout) -> Result<T>,
) -> Result<(T, Result<()>)> {
    let mut command = command(args);
    let shown = shown(&command);
    eprintln!("$ {shown}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("running {shown}"))?;
    let stdout = child.stdout.take().context("the standard output of cargo is no pipe")?;
    let watched = watch(stdout);
    let status = child.wait().with_context(|| format!("waiting for {shown}"))?;
    let outcome = if status.success() { Ok(()) } else { Err(anyhow!("{shown} failed ({status})")) };
    Ok((watched?, outcome))
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

/// Builds the shared library as it is shipped, and says where it is.
pub(crate) fn library() -> Result<PathBuf> {
    cargo(&["build", "--profile=library", "--locked", "--package", "phalanx-libpmix"])?;
    Ok(target().join("library/libpmix.so"))
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    crate::root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
}

fn command(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = if ignores_signals() {
        let mut reset = Command::new("env");
        reset.arg("--default-signal").arg(cargo);
        reset
    } else {
        Command::new(cargo)
    };
    command.args(args).current_dir(crate::root()).stdin(Stdio::null());
    command
}

/// Whether we were started with signals ignored, as `nohup` and shells' background jobs are. Programs under test would
/// inherit that, and launchers rightly keep ignoring what they were told to ignore: tests of signals would wait for ever.
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
