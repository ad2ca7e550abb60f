//! Running cargo and other programs, at the root of the workspace and without standard input.

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

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(args).current_dir(crate::root()).stdin(Stdio::null());
    command
}

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
