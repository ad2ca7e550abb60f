//! Continuing without the terminal: px starts itself again in a session of its own, which reports when it can be left alone.
//!
//! Until then its errors go where ours go, and its standard output is passed on: one line, or none if it fails.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::failure::{EXIT_FAILURE, Failure};
use crate::outer;

/// Starts `px` with these arguments in the background. Returns the line that it prints once it is up, or its exit code.
pub(crate) fn start(args: impl IntoIterator<Item = OsString>) -> Result<Result<String, u8>, Failure> {
    let cannot = |e: std::io::Error| Failure::new("cannot go into the background").because(e);
    let px = std::env::current_exe().map_err(cannot)?;
    let mut child = Command::new(px)
        .args(args)
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(cannot)?;
    }
    if line.ends_with('\n') {
        return Ok(Ok(line));
    }
    let code = child.wait().map_err(cannot)?.code();
    Ok(Err(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILURE)))
}

/// Whether this process was started by [`start`].
pub(crate) fn is_here() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Leaves the session of the terminal. Must be called first in a process that [`start`] has started.
pub(crate) fn enter() -> Result<(), Failure> {
    rustix::process::setsid()
        .map(drop)
        .map_err(|e| Failure::new("cannot leave the session of the terminal").because(e))
}

/// Prints the line that [`start`] waits for, and lets go of the terminal's descriptors.
pub(crate) fn stand(line: &str) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new("cannot go on in the background").because(e);
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(cannot)?;
    drop(stdout);
    let null = File::options().read(true).write(true).open("/dev/null").map_err(cannot)?;
    rustix::stdio::dup2_stdout(&null).map_err(|e| cannot(e.into()))?;
    rustix::stdio::dup2_stderr(&null).map_err(|e| cannot(e.into()))
}

/// A note for users that go to the background inside a job: the job's end also ends everything that its ranks have started.
pub(crate) fn remark() -> Option<String> {
    let outer = outer::job()?;
    Some(format!("this job ends with job {outer}, a rank of which started it"))
}

/// Set in the environment of the background process, but not of its children.
const VARIABLE: &str = "PHALANX_IN_BACKGROUND";
