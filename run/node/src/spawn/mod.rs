//! Starting processes: everything is worked out here, so that a child has nothing left to decide.
//!
//! Processes are started in batches. The children of a batch load side by side while the loop goes on. They share the writing end of a pipe, which
//! each exec closes: the pipe's end shows that all of them have succeeded or failed. [`child`] has the rules for the code in between. Waiting for the
//! end of processes is not done here. Next: [`crate::drive`].

pub(crate) mod bind;
mod child;
mod env;
mod find;

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result};
use phalanx_dvm::{ProcStart, SpawnFailure, SpawnStep, StdinPlan};
use phalanx_wire::{ProcId, Text};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, setpgid};

use crate::startup::{self, Inherited};
use crate::strays;
use child::{Orders, SignalsBlocked, Stacks};
use env::Strings;
pub(crate) use find::find;

/// Starts processes, and keeps what is common to them.
#[derive(Debug)]
pub(crate) struct Spawner {
    inherited: Inherited,
    null: OwnedFd,
    /// Set in the environment of every process, replacing that of an outer session.
    marker: Text,
    /// The last program that was looked up: all ranks of an app have the same one.
    found: Option<Found>,
    spare: Vec<Stacks>,
}

#[derive(Debug)]
struct Found {
    argv: Arc<[Text]>,
    path: Option<Vec<u8>>,
    cwd: Option<Text>,
    file: CString,
}

/// A cloned process. Whether its exec succeeds is known when its batch has resolved.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// See [`ProcStart::asked_first`].
    pub(crate) asked_first: bool,
    /// See [`ProcStart::may_leave`].
    pub(crate) may_leave: bool,
    /// Our ends.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) diag: Option<OwnedFd>,
}

/// Processes that were started together.
#[derive(Debug)]
pub(crate) struct Batch {
    members: Vec<Member>,
    stacks: Option<Stacks>,
    resolved: bool,
}

/// What one child reads.
#[derive(Debug)]
struct Member {
    orders: Box<Orders>,
    start: ProcStart,
    file: CString,
    _argv: Strings,
    _envp: Strings,
    _cwd: Option<CString>,
    _mask: Vec<u8>,
}

impl Spawner {
    pub(crate) fn new(inherited: Inherited, marker: &OsStr) -> Result<Spawner> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .context("cannot open /dev/null")?;
        let marker = Text::from_bytes(marker.as_bytes());
        Ok(Spawner { inherited, null, marker, found: None, spare: Vec::new() })
    }

    /// Clones all of `starts` (at most [`BATCH`]) and appends a result for each, in order. The returned descriptor reaches its end when the batch has
    /// resolved; [`Batch::resolve`] must not be called before.
    pub(crate) fn start(
        &mut self,
        starts: Vec<ProcStart>,
        results: &mut Vec<(ProcId, Result<Started, SpawnFailure>)>,
    ) -> Result<(Batch, OwnedFd), Errno> {
        let (resolved, held) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut batch = Batch {
            members: Vec::with_capacity(starts.len()),
            stacks: Some(self.spare.pop().unwrap_or_else(|| Stacks::new(BATCH))),
            resolved: false,
        };
        let reset = startup::handled_signals() | signal_bit(libc::SIGPIPE);
        let blocked = SignalsBlocked::new();
        for start in starts {
            let proc = start.proc.clone();
            results.push((proc, self.start_one(start, reset, &mut batch, &blocked)));
        }
        drop(blocked);
        drop(held);
        self.found = None;
        Ok((batch, resolved))
    }

    fn start_one(
        &mut self,
        start: ProcStart,
        reset: u64,
        batch: &mut Batch,
        blocked: &SignalsBlocked,
    ) -> Result<Started, SpawnFailure> {
        let file = self.find(&start)?;
        let failure = |step, errno: Errno| SpawnFailure {
            step,
            subject: find::shown(file.as_bytes()),
            errno: errno.raw_os_error(),
        };
        let streams =
            Streams::new(start.stdin, start.diag).map_err(|errno| failure(SpawnStep::Pipe, errno))?;

        let argv = Strings::new(start.argv.iter().map(Text::as_bytes));
        let diag = streams.diag.as_ref().map(|pipe| pipe.1.as_raw_fd());
        let variable = diag.map(|fd| Text::from(format!("{DIAG_VARIABLE}={fd}")));
        let parting = Text::from(strays::PARTING);
        let replaced =
            [self.marker.as_bytes(), strays::PARTING.as_bytes(), DIAG_VARIABLE.as_bytes()].map(env::name);
        let marker = if start.may_leave { &parting } else { &self.marker };
        let kept = start.env.iter().filter(|entry| !replaced.contains(&env::name(entry.as_bytes())));
        let envp = Strings::new(kept.chain([marker]).chain(&variable).map(Text::as_bytes));
        let cwd = start.cwd.as_ref().and_then(|cwd| CString::new(cwd.as_bytes()).ok());
        let mask = start.cpus.as_ref().map(bind::mask).unwrap_or_default();
        let orders = Box::new(Orders {
            path: file.as_ptr(),
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            cwd: cwd.as_ref().map_or(std::ptr::null(), |cwd| cwd.as_ptr()),
            mask: mask.as_ptr(),
            mask_bytes: mask.len(),
            diag: diag.unwrap_or(-1),
            stdio: streams.theirs(self.null.as_fd()).map(|fd| fd.as_raw_fd()),
            reset,
            open_files: self.inherited.open_files(),
            parent: std::process::id().cast_signed(),
            last_signal: if start.asked_first { libc::SIGTERM } else { libc::SIGKILL },
            failure: AtomicU64::new(0),
        });
        let (asked_first, may_leave) = (start.asked_first, start.may_leave);
        let at = batch.members.len();
        let Some(stacks) = &mut batch.stacks else { return Err(failure(SpawnStep::Fork, Errno::NOMEM)) };
        let member = Member { orders, start, file, _argv: argv, _envp: envp, _cwd: cwd, _mask: mask };
        // SAFETY: the orders and everything that they point to are heap memory of `member`, which joins the batch
        // before anything can drop it; a batch frees its members and stacks only in `resolve`, after the children have
        // left our memory, and leaks them otherwise (see its `drop`). Stack `at` is this member's alone.
        let pid = unsafe { child::start(&raw const *member.orders, stacks, at, blocked) };
        let pid = match pid {
            Ok(pid) => pid,
            Err(e) => {
                let errno = Errno::from_io_error(&e).unwrap_or(Errno::NOMEM);
                return Err(SpawnFailure {
                    step: SpawnStep::Fork,
                    subject: find::shown(member.file.as_bytes()),
                    errno: errno.raw_os_error(),
                });
            }
        };
        batch.members.push(member);
        // The child does the same; the order does not matter. After this call its group can be signalled.
        let _ = setpgid(Some(pid), Some(pid));
        Ok(streams.ours(pid, asked_first, may_leave))
    }

    /// Takes back the stacks of a batch for the next one.
    pub(crate) fn recycle(&mut self, mut batch: Batch) {
        if batch.resolved
            && self.spare.len() < SPARE_STACKS
            && let Some(stacks) = batch.stacks.take()
        {
            self.spare.push(stacks);
        }
    }

    fn find(&mut self, start: &ProcStart) -> Result<CString, SpawnFailure> {
        let path = env::lookup(b"PATH", start.env.iter().map(Text::as_bytes));
        if let Some(found) = &self.found
            && Arc::ptr_eq(&found.argv, &start.argv)
            && found.path.as_deref() == path
            && found.cwd == start.cwd
        {
            return Ok(found.file.clone());
        }
        let program = start.argv.first().map(Text::as_bytes).unwrap_or_default();
        let file = find::find(program, path, directory(start))?;
        self.found = Some(Found {
            argv: start.argv.clone(),
            path: path.map(<[u8]>::to_vec),
            cwd: start.cwd.clone(),
            file: file.clone(),
        });
        Ok(file)
    }
}

impl Batch {
    /// The file that member `at` was started from.
    pub(crate) fn program(&self, at: usize) -> Text {
        let path = |member: &Member| find::from_root(member.file.as_bytes(), directory(&member.start));
        self.members.get(at).map_or_else(|| Text::from(""), path)
    }

    /// Why the start of member `at` failed, counting those that were cloned. Meaningful once the batch has resolved or that member was reaped.
    pub(crate) fn failure(&self, at: usize) -> Option<SpawnFailure> {
        let member = self.members.get(at)?;
        let (step, errno) = member.orders.failure()?;
        let subject = match step {
            SpawnStep::Exec => {
                return Some(find::explain_exec(member.file.as_bytes(), directory(&member.start), errno));
            }
            SpawnStep::Chdir => member.start.cwd.as_ref().map(Text::to_string_lossy).unwrap_or_default(),
            SpawnStep::Bind => member.start.cpus.as_ref().map(ToString::to_string).unwrap_or_default(),
            SpawnStep::Find | SpawnStep::Pipe | SpawnStep::Fork => find::shown(member.file.as_bytes()),
        };
        Some(SpawnFailure { step, subject, errno })
    }

    /// Marks that all children have left our memory, as the end of the batch's pipe shows.
    pub(crate) fn resolve(&mut self) {
        self.resolved = true;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if !self.resolved {
            // A child may still be reading its orders. The process is about to end anyway.
            std::mem::forget((std::mem::take(&mut self.members), self.stacks.take()));
        }
    }
}

/// Both ends of a process's standard streams.
#[derive(Debug)]
struct Streams {
    stdin: Option<(OwnedFd, OwnedFd)>,
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
    diag: Option<(OwnedFd, OwnedFd)>,
}

impl Streams {
    fn new(stdin: StdinPlan, diag: bool) -> Result<Streams, Errno> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let stdin = match stdin {
            StdinPlan::Null => None,
            StdinPlan::Pipe => Some(pipe()?),
        };
        let diag = if diag { Some(pipe()?) } else { None };
        let streams = Streams { stdin, stdout: pipe()?, stderr: pipe()?, diag };
        // Only our ends: the flag belongs to one end of a pipe, and the child expects ordinary streams.
        let ours = [
            Some(&streams.stdout.0),
            Some(&streams.stderr.0),
            streams.stdin.as_ref().map(|pipe| &pipe.1),
            streams.diag.as_ref().map(|pipe| &pipe.0),
        ];
        for fd in ours.into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(streams)
    }

    fn theirs<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        let stdin = self.stdin.as_ref().map_or(null, |pipe| pipe.0.as_fd());
        [stdin, self.stdout.1.as_fd(), self.stderr.1.as_fd()]
    }

    fn ours(self, pid: Pid, asked_first: bool, may_leave: bool) -> Started {
        let (stdin, diag) = (self.stdin.map(|pipe| pipe.1), self.diag.map(|pipe| pipe.0));
        Started { pid, asked_first, may_leave, stdin, stdout: self.stdout.0, stderr: self.stderr.0, diag }
    }
}

fn directory(start: &ProcStart) -> Option<&Path> {
    start.cwd.as_ref().map(|cwd| Path::new(OsStr::from_bytes(cwd.as_bytes())))
}

fn signal_bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// How many processes are started before the loop turns to other events. A batch takes some milliseconds at most.
pub(crate) const BATCH: usize = 32;
/// Names the descriptor of a process's stream for diagnostics.
const DIAG_VARIABLE: &str = "PHALANX_STDDIAG_FD";
const SPARE_STACKS: usize = 4;
