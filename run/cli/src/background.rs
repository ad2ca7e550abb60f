//! Going on without the terminal: this program is started again, in a session of its own, and says when it may be left alone.
//!
//! Until then its errors go where ours go, and what it says on standard output is handed on: one line, or none if it fails.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::failure::{EXIT_FAILURE, Failure};
use crate::outer;

/// Starts `px` with these arguments in the background. The result is the line that it says when it stands, or its exit code.
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

/// Whether [`start`] has started this process.
pub(crate) fn is_here() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Leaves the session of the terminal. To be called first by a process that [`start`] has started.
pub(crate) fn enter() -> Result<(), Failure> {
    rustix::process::setsid()
        .map(drop)
        .map_err(|e| Failure::new("cannot leave the session of the terminal").because(e))
}

/// Says the line that [`start`] waits for, and lets go of what the terminal has given us.
pub(crate) fn stand(line: &str) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new("cannot go on in the background").because(e);
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(cannot)?;
    drop(stdout);
    let null = File::options().read(true).write(true).open("/dev/null").map_err(cannot)?;
    rustix::stdio::dup2_stdout(&null).map_err(|e| cannot(e.into()))?;
    rustix::stdio::dup2_stderr(&null).map_err(|e| cannot(e.into()))
}

/// What is to be said to whoever goes on without us inside of a job: that ends everything that its ranks have started.
pub(crate) fn remark() -> Option<String> {
    let outer = outer::job()?;
    Some(format!("this job ends with job {outer}, a rank of which started it"))
}

/// In the environment of what runs in the background, and of nothing that it starts.
const VARIABLE: &str = "PHALANX_IN_BACKGROUND";
