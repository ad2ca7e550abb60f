//! The session directory: everything that a launcher keeps in files, in one place that nobody else can enter.
//!
//! It is `TMPDIR/px.UID.PID.RANDOM`, mode 0700. The directory itself is locked as long as the launcher or its warden
//! lives, so whoever finds it unlocked may remove it: pids are no proof, they repeat and differ between containers.
//! Removal is the launcher's duty at an orderly end, the [warden](crate::warden)'s after a violent one, and that of
//! any later launcher of the same user when both are gone.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::process::{Pid, geteuid};

use crate::warden::{Groups, Warden};

/// Where to put the session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Instead of `TMPDIR`; nothing else is tried then.
    pub tmpdir: Option<PathBuf>,
}

/// A session that has begun. If it is dropped without [`Session::end`], or the process ends, the warden does what is
/// to be done.
#[derive(Debug)]
pub struct Session {
    dir: PathBuf,
    note: Option<String>,
    /// Held to the last: until then nobody else may take the directory for an abandoned one.
    _lock: OwnedFd,
    warden: Warden,
}

impl Session {
    /// Makes the directory and forks the warden. To be called while the process has one thread and little memory.
    pub fn begin(options: &SessionOptions) -> Result<Session> {
        let ((dir, lock), note) = match &options.tmpdir {
            Some(dir) => (make_in(dir)?, None),
            None => make_in_first(std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()))?,
        };
        let warden = Warden::fork(&dir, &lock).context("cannot start the process that cleans up after us")?;
        Ok(Session { dir, note, _lock: lock, warden })
    }

    /// Absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Something that the user should know, if the directory is not where it was to be.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The pid of the warden: it is a child of ours that no job has started.
    pub(crate) fn warden(&self) -> Pid {
        self.warden.pid()
    }

    /// The process groups that the warden would kill.
    pub(crate) fn groups(&mut self) -> &mut Groups {
        self.warden.groups()
    }

    /// The orderly end: removes the directory, and dismisses the warden.
    pub fn end(self) {
        if let Err(e) = remove(&self.dir) {
            tracing::warn!("cannot remove {}: {e}", self.dir.display());
        }
        self.warden.dismiss();
    }

    /// What every process of this session carries in its environment, `NAME=VALUE`.
    pub(crate) fn marker(&self) -> OsString {
        marker(&self.dir)
    }
}

/// See [`Session::marker`].
pub(crate) fn marker(dir: &Path) -> OsString {
    let mut marker = OsString::from("PX_SESSION=");
    marker.push(dir);
    marker
}

/// Removes a directory that may be losing or gaining files at the same time.
pub(crate) fn remove(dir: &Path) -> std::io::Result<()> {
    for _ in 0..8 {
        match std::fs::remove_dir_all(dir) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            done => return done,
        }
    }
    std::fs::remove_dir_all(dir)
}

/// Removes what launchers of this user have left beside `dir` and nobody holds any more. Looks at a bounded number
/// of names: a crowded directory must not delay anybody.
pub(crate) fn sweep(dir: &Path) {
    let Some(parent) = dir.parent() else { return };
    let prefix = format!("px.{}.", geteuid().as_raw());
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().take(SWEEP_NAMES) {
        if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) && entry.path() != dir {
            // Whoever gets the lock knows that no launcher and no warden has it. A directory that is just being made
            // is not locked yet, but whoever makes it notices and tries again (see `make_in`).
            if let Ok(_abandoned) = try_lock(&entry.path()) {
                let _ = remove(&entry.path());
            }
        }
    }
}

/// In `TMPDIR` if that works, else in a place that nearly always does, with a note.
fn make_in_first(tmpdir: Option<OsString>) -> Result<((PathBuf, OwnedFd), Option<String>)> {
    let fallback = Path::new("/tmp");
    let tmpdir = tmpdir.as_ref().map_or(fallback, Path::new);
    match make_in(tmpdir) {
        Ok(made) => Ok((made, None)),
        Err(e) if tmpdir != fallback => {
            let made = make_in(fallback).with_context(|| format!("{e:#} (TMPDIR)"))?;
            Ok((made, Some(format!("{e:#}; using {} instead of TMPDIR", fallback.display()))))
        }
        Err(e) => Err(e),
    }
}

fn make_in(parent: &Path) -> Result<(PathBuf, OwnedFd)> {
    let parent = std::path::absolute(parent).with_context(|| format!("cannot use {}", parent.display()))?;
    for _ in 0..16 {
        let dir = parent.join(name()?);
        match make_exactly(&dir) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(anyhow!("cannot make a session directory in {}: {e}", parent.display())),
        }
        // Another launcher that sweeps may have taken it for an abandoned one before it was locked.
        match try_lock(&dir) {
            Ok(lock) if fstat(&lock).is_ok_and(|stat| stat.st_nlink > 0) => return Ok((dir, lock)),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => {}
            Err(e) => return Err(anyhow!("cannot lock the session directory {}: {e}", dir.display())),
        }
    }
    bail!("cannot make a session directory in {}: others interfere", parent.display())
}

/// Makes a directory with mode 0700 whatever the umask. Never follows a symbolic link in the last component.
fn make_exactly(dir: &Path) -> std::io::Result<()> {
    let old = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let made = std::fs::DirBuilder::new().mode(0o700).create(dir);
    rustix::process::umask(old);
    made
}

/// The lock of a session directory of ours, if nobody has it.
fn try_lock(dir: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    Ok(fd)
}

fn name() -> Result<OsString> {
    let mut random = [0_u8; 6];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .context("cannot get random bytes")?;
    let random: String =
        random.iter().map(|b| char::from(NAME_LETTERS[usize::from(*b) % NAME_LETTERS.len()])).collect();
    Ok(format!("px.{}.{}.{random}", geteuid().as_raw(), std::process::id()).into())
}

const NAME_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const SWEEP_NAMES: usize = 10_000;
