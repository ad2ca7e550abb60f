//! A process outside that represents one on a host: it starts it there, forwards signals, and ends as it does.
//!
//! Not `nsenter`, because that stops when its child is stopped, and a frozen host could not be thawed. When the process
//! outside is killed, the kernel kills the one on the host.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use crate::roles::word;

/// Arguments: the pid of the process to take the namespaces from, the program, its arguments.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let there: i32 = word(arguments, 0)?.parse().context("reading the process id of the host")?;
    let there = Pid::from_raw(there).context("0 is no process id")?;
    let program = arguments.get(1).context("no program was named")?;
    let directory = std::env::current_dir().context("finding the current directory")?;
    let host = pidfd_open(there, PidfdFlags::empty()).context("the host is gone")?;
    move_into_thread_name_spaces(host.as_fd(), ALL).context("entering the host")?;
    // Entering has moved us to the root directory; this host may not have the previous one.
    if std::env::set_current_dir(&directory).is_err() {
        std::env::set_current_dir("/").context("changing to /")?;
    }
    let mut command = Command::new(program);
    command.args(&arguments[2..]);
    match stand_for(&mut command) {
        Ok(status) => Ok(end_as(status)),
        Err(error) => {
            eprintln!("cannot run {}: {error}", program.display());
            Ok(ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }))
        }
    }
}

/// Runs a program to its end and forwards signals to it. It dies with this process. For single-threaded processes.
pub fn stand_for(command: &mut Command) -> io::Result<ExitStatus> {
    let (signals, before) = Signals::block()?;
    let in_terminal = rustix::termios::isatty(rustix::stdio::stdin());
    die_with_us(command);
    // SAFETY: between fork and exec the child makes two system calls and touches no memory of others.
    unsafe {
        command.pre_exec(move || {
            // In a terminal it shares our foreground process group. Elsewhere our group may have no number in its namespace.
            if !in_terminal {
                rustix::process::setsid()?;
            }
            set_mask(&before)
        });
    }
    let child = command.spawn();
    let status = child.and_then(|mut child| {
        let pid = Pid::from_child(&child);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if let Some(signal) = signals.next()? {
                let _ = kill_process(pid, signal);
            }
        }
    });
    set_mask(&before)?;
    status
}

/// Makes the kernel kill the process that this command starts when the thread that starts it ends, for any reason.
pub(crate) fn die_with_us(command: &mut Command) {
    // SAFETY: between fork and exec the child makes one system call and touches no memory of others.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Dies of the signal that killed a program; otherwise returns its exit code.
pub fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        // SAFETY: no handler is installed. This replaces Rust's own one for SIGSEGV.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = kill_process(rustix::process::getpid(), signal);
        }
    }
    let code = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(255))
}

/// Lets the kernel reap our children, as no code waits for them.
pub(crate) fn ignore_children() {
    // SAFETY: no handler is installed, and no other thread of ours waits for a child.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

const ALL: ThreadNameSpaceType = ThreadNameSpaceType::NETWORK
    .union(ThreadNameSpaceType::MOUNT)
    .union(ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME)
    .union(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION)
    .union(ThreadNameSpaceType::PROCESS_ID);

/// The signals to forward, and SIGCHLD for the child's end.
const WATCHED: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

struct Signals(File);

impl Signals {
    /// Blocks these signals and collects them here. Also returns the previous mask.
    fn block() -> io::Result<(Signals, libc::sigset_t)> {
        // SAFETY: the sets are plain data, made by sigemptyset, and all pointers are to locals of this function.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in WATCHED {
                libc::sigaddset(&mut set, signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            let descriptor = libc::signalfd(-1, &set, libc::SFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok((Signals(File::from(OwnedFd::from_raw_fd(descriptor))), before))
        }
    }

    /// Waits for a signal. None: it should not be forwarded.
    fn next(&self) -> io::Result<Option<Signal>> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.0, &mut bytes)?;
        // The number is the first field, the origin the third, each of four bytes.
        let field = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (number, code) = (field(0), field(8));
        // A signal from a terminal goes to the whole group, and so to the child as well.
        let by_terminal = code > 0 && number != libc::SIGHUP;
        let passed = number != libc::SIGCHLD && !by_terminal;
        Ok(if passed { Signal::from_named_raw(number) } else { None })
    }
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the kernel returned this mask.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
