//! Runs a command in isolation, as if nothing else ran on this machine.
//!
//! Its processes, shared memory and temporary files are separate from those of the machine in both directions: it sees neither servers of other users
//! nor leftovers of killed programs. When the process that started it ends, for any reason, the kernel ends everything that the command has started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, WaitOptions, wait};

use crate::debian::debian_file;
use crate::emptied::words;
use crate::join::die_with_us;
use crate::roles::ALONE;

/// Where programs leave files for other programs.
pub const PRIVATE: [&str; 4] = ["/tmp", "/run", "/var/tmp", "/dev/shm"];

/// A command that finds [`PRIVATE`] empty except for the directories in `kept`. Its first argument is a program. `player` plays the
/// roles ([`crate::run_role`]).
pub fn alone(player: &Path, kept: &[PathBuf]) -> Result<Command> {
    let mut command = Command::new(debian_file("/usr/bin/unshare", "util-linux")?);
    command.args(["--mount", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--"]);
    command.arg(player).arg(ALONE).arg(player).args(words(&PRIVATE, kept));
    die_with_us(&mut command);
    Ok(command)
}

/// Process 1 of the world: runs the program that the arguments name, and reaps all orphans until it has ended.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let (program, rest) = arguments.split_first().context("no program was named")?;
    // Without this, its session would have no number here.
    let _ = rustix::process::setsid();
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .context("mounting /proc")?;
    let child = Command::new(program).args(rest).spawn();
    let child = Pid::from_child(&child.with_context(|| format!("cannot run {}", program.display()))?);
    loop {
        let ended = wait(WaitOptions::empty()).context("waiting for the processes of the world")?;
        if let Some((_, status)) = ended.filter(|(pid, _)| *pid == child) {
            let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
            return Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)));
        }
    }
}
