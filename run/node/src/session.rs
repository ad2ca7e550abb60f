//! A session: what a launcher keeps in files, in one place that nobody else can enter.
//!
//! The lock file `TMPDIR/px.UID.PID.RANDOM.lock` stands for the session; the directory of the same name without `.lock`,
//! mode 0700, is made when something is to be put there. Most launches of programs without PMIx never need it, and a
//! directory can cost more than the whole rest of such a launch.
//!
//! The file is locked as long as the launcher or its warden lives, so whoever finds it unlocked may remove both: pids
//! are no proof, they repeat and differ between containers. Removal is the launcher's duty at an orderly end, the
//! [warden](crate::warden)'s after a violent one, and that of any later launcher of the same user when both are gone.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat};
use rustix::process::{Pid, geteuid};

use crate::cleanup;
use crate::strays;
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
    /// Held to the last: until then nobody else may take the session for an abandoned one.
    _lock: OwnedFd,
    warden: Warden,
    /// All children that this process has but for the warden, ranks have left.
    was_childless: bool,
    /// Whether anything was ever put into the directory.
    used: bool,
}

impl Session {
    /// Makes the lock file and forks the warden. To be called while the process has one thread and little memory.
    pub fn begin(options: &SessionOptions) -> Result<Session> {
        let ((dir, lock), note) = match &options.tmpdir {
            Some(dir) => (lock_in(dir)?, None),
            None => lock_in_first(std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty()))?,
        };
        let was_childless = !strays::have_children();
        let warden = Warden::fork(&dir, &lock).context("cannot start the process that cleans up after us")?;
        strays::adopt();
        Ok(Session { dir, note, _lock: lock, warden, was_childless, used: false })
    }

    /// Where the session keeps its files. Absolute; it exists when something was put there.
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

    /// Makes a directory of this session, because somebody may look for it from now on.
    pub(crate) fn make(&mut self, dir: &Path) {
        self.used = true;
        if let Err(e) = make(dir) {
            tracing::warn!("cannot make {}: {e}", dir.display());
        }
    }

    /// Makes the directory of the session, for something of our own.
    pub(crate) fn use_dir(&mut self) {
        if !self.used {
            self.make(&self.dir.clone());
        }
    }

    /// Removes a directory of this session with all that is in it.
    pub(crate) fn discard(&self, dir: &Path) {
        if self.used && dir.starts_with(&self.dir) {
            remove(dir);
        }
    }

    /// The orderly end: nothing of the session is left.
    pub fn end(self) {
        if strays::are_possible(|pid| pid == self.warden.pid()) {
            strays::kill_all(self.marker().as_bytes(), || match self.was_childless {
                true => strays::kill_children(self.warden.pid()),
                false => 0,
            });
        }
        if self.used {
            remove(&self.dir);
        }
        let _ = std::fs::remove_file(lock_file(&self.dir));
        self.warden.dismiss();
    }

    /// What every process of this session carries in its environment, `NAME=VALUE`.
    pub(crate) fn marker(&self) -> OsString {
        marker(&self.dir)
    }
}

/// See [`Session::marker`].
pub(crate) fn marker(dir: &Path) -> OsString {
    let mut marker = OsString::from("PHALANX_SESSION=");
    marker.push(dir);
    marker
}

/// Removes everything of a session whose processes are all dead.
pub(crate) fn clear(dir: &Path) {
    cleanup::carry_out_journal(dir);
    remove(dir);
    let _ = std::fs::remove_file(lock_file(dir));
}

/// The sessions of this user beside `dir` that nobody holds any more, each with its lock, which is ours now. Looks at
/// a bounded number of names: a crowded directory must not delay anybody.
pub(crate) fn abandoned(dir: &Path) -> Vec<(PathBuf, OwnedFd)> {
    let prefix = format!("px.{}.", geteuid().as_raw());
    let Some((parent, entries)) =
        dir.parent().and_then(|parent| Some((parent, std::fs::read_dir(parent).ok()?)))
    else {
        return Vec::new();
    };
    let abandoned = entries.flatten().take(SWEEP_NAMES).filter_map(|entry| {
        let name = entry.file_name();
        let session = name.as_bytes().strip_suffix(LOCK_SUFFIX.as_bytes())?;
        // Whoever gets the lock knows that no launcher and no warden has it. A file that is just being made is not
        // locked yet, but whoever makes it notices and tries again (see `lock_in`).
        let lock =
            session.starts_with(prefix.as_bytes()).then(|| lock(&entry.path(), OFlags::empty()).ok())??;
        Some((parent.join(OsStr::from_bytes(session)), lock))
    });
    abandoned.take(SWEEP_SESSIONS).collect()
}

/// In `TMPDIR` if that works, else in a place that nearly always does, with a note.
fn lock_in_first(tmpdir: Option<OsString>) -> Result<((PathBuf, OwnedFd), Option<String>)> {
    let fallback = Path::new("/tmp");
    let tmpdir = tmpdir.as_ref().map_or(fallback, Path::new);
    match lock_in(tmpdir) {
        Ok(made) => Ok((made, None)),
        Err(e) if tmpdir != fallback => {
            let made = lock_in(fallback).with_context(|| format!("{e:#} (TMPDIR)"))?;
            Ok((made, Some(format!("{e:#}; using {} instead of TMPDIR", fallback.display()))))
        }
        Err(e) => Err(e),
    }
}

/// Makes and locks a lock file; returns the directory that belongs to it.
fn lock_in(parent: &Path) -> Result<(PathBuf, OwnedFd)> {
    let parent = std::path::absolute(parent).with_context(|| format!("cannot use {}", parent.display()))?;
    for _ in 0..16 {
        let dir = parent.join(name()?);
        // Another launcher that sweeps may have taken it for an abandoned one before it was locked.
        match lock(&lock_file(&dir), OFlags::CREATE | OFlags::EXCL) {
            Ok(lock) if fstat(&lock).is_ok_and(|stat| stat.st_nlink > 0) => return Ok((dir, lock)),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::AlreadyExists) => {}
            Err(e) => return Err(anyhow!("cannot make a lock file in {}: {e}", parent.display())),
        }
    }
    bail!("cannot make a lock file in {}: others interfere", parent.display())
}

/// The lock of a session of ours, if nobody has it.
fn lock(file: &Path, flags: OFlags) -> std::io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&fd)?;
    if stat.st_uid != geteuid().as_raw() || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ErrorKind::PermissionDenied.into());
    }
    flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    Ok(fd)
}

fn lock_file(dir: &Path) -> PathBuf {
    let mut file = dir.as_os_str().to_owned();
    file.push(LOCK_SUFFIX);
    file.into()
}

/// Makes a directory, and those above it that are missing, each with mode 0700 whatever the umask. Never follows a
/// symbolic link in a component that it makes.
fn make(dir: &Path) -> std::io::Result<()> {
    let old = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let made = make_below(dir);
    rustix::process::umask(old);
    made
}

fn make_below(dir: &Path) -> std::io::Result<()> {
    let make = || std::fs::DirBuilder::new().mode(0o700).create(dir);
    match (make(), dir.parent()) {
        (Err(e), Some(parent)) if e.kind() == ErrorKind::NotFound => {
            make_below(parent)?;
            make()
        }
        (Err(e), _) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        (made, _) => made,
    }
}

/// Removes a directory that may be losing or gaining files at the same time.
fn remove(dir: &Path) {
    for _ in 0..8 {
        match std::fs::remove_dir_all(dir) {
            Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return tracing::warn!("cannot remove {}: {e}", dir.display());
            }
            _ => return,
        }
    }
    tracing::warn!("cannot remove {}: somebody goes on putting files there", dir.display());
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
const LOCK_SUFFIX: &str = ".lock";
const SWEEP_NAMES: usize = 10_000;
const SWEEP_SESSIONS: usize = 16;
