//! The commands, a file each.

pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod daemon;
pub(crate) mod dvm;
pub(crate) mod events;
pub(crate) mod hello;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod ps;
pub(crate) mod publish;
pub(crate) mod query;
pub(crate) mod run;
pub(crate) mod stacks;
pub(crate) mod top;
pub(crate) mod wait;
pub(crate) mod why;

use std::io::Write;

use phalanx_wire::plain;

use crate::failure::Failure;

/// Writes a command's product to standard output, without terminal control sequences. A reader that leaves early is no error.
pub(crate) fn print(text: &str) -> Result<u8, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(plain::lines(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new("cannot write to standard output").because(e))
        }
        _ => Ok(0),
    }
}

/// The process would go on without a terminal and tools could not find it, so it is not started.
fn unfindable(doing: &str, error: &anyhow::Error) -> Failure {
    let failure = Failure::new(format!("{doing}: tools could not find it")).because(format!("{error:#}"));
    failure.hint("the files by which it is found go into the directory that TMPDIR names, or /tmp")
}
