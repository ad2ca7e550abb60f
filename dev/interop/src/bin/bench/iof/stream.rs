//! One launcher with its standard output read here, under a deadline.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::launcher::Launcher;

pub(crate) struct Stream {
    pub(crate) child: Child,
    stdout: ChildStdout,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl Stream {
    /// `ranks` copies of a program with these arguments, and options for the launcher.
    pub(crate) fn start(
        launcher: Launcher,
        options: &[&str],
        ranks: u32,
        program: &Path,
        arguments: &[&str],
        stdin: Stdio,
    ) -> Stream {
        let reads = matches!(arguments, ["sink", ..]);
        let words: Vec<&OsStr> = arguments.iter().map(|word| OsStr::new(*word)).collect();
        let mut command = launcher.command_with(options, ranks, program, &words);
        if launcher == Launcher::Bare {
            let script = if reads { "cat | \"$@\"" } else { "\"$@\" | cat" };
            let mut piped = Command::new("/bin/sh");
            piped.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
            command = piped;
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        let stdout = child.stdout.take().expect("it is piped");
        Stream { child, stdout, buffer: vec![0; 1 << 20], deadline: Instant::now() + PATIENCE }
    }

    /// The next bytes, up to `most`; none at the end, or at the deadline.
    pub(crate) fn next(&mut self, most: usize) -> &[u8] {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("some seconds");
        let ready = poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&left));
        if ready.is_ok_and(|ready| ready == 0) {
            return &[];
        }
        let room = &mut self.buffer[..most.min(1 << 20)];
        let count = self.stdout.read(room).unwrap_or(0);
        &self.buffer[..count]
    }

    /// `true`: it ended by itself, successfully.
    pub(crate) fn end(mut self) -> bool {
        let pid = Pid::from_child(&self.child);
        drop(self.stdout);
        let ended = ends(&mut self.child, self.deadline);
        if ended.is_none() {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
        ended == Some(true)
    }

    /// Ends it early.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process_group(pid, Signal::TERM);
        drop(self.stdout);
        if ends(&mut self.child, Instant::now() + Duration::from_secs(10)).is_none() {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn ends(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        match child.try_wait().expect("waiting for a launcher") {
            Some(status) => return Some(status.success()),
            None if Instant::now() > deadline => return None,
            None => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The slowest peer needs a fifth of this. Peers are known to hang.
const PATIENCE: Duration = Duration::from_secs(120);
