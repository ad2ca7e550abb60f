//! The lock file of a session, and its contents.
//!
//! All users can see its name, so the name reveals nothing useful: the session's directory has a secret name, which is stored in the file together
//! with the inode of what was made under it. Only that inode is ever removed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

use super::dir::PrivateDir;
use crate::tmpdir::TmpDir;

/// A session's place: the directory with the lock file, and the session's own name there.
#[derive(Debug)]
pub(crate) struct Place {
    parent: OwnedFd,
    path: PathBuf,
    /// `px.UID.PID.RANDOM`.
    name: OsString,
}

/// A lock that we hold.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Place {
    /// Makes and locks a new session in this directory.
    pub(crate) fn lock_new(dir: TmpDir) -> io::Result<(Place, Lock)> {
        let (parent, path) = dir.into_parts();
        for _ in 0..ATTEMPTS {
            let name = format!("px.{}.{}.{}", geteuid().as_raw(), std::process::id(), letters::<6>()?);
            let name = OsString::from(name);
            match Lock::take(&parent, &lock_name(&name), OFlags::CREATE | OFlags::EXCL) {
                // A sweeping launcher may have taken it for an abandoned one before it was locked.
                Ok(lock) if lock.is_named() => return Ok((Place { parent, path, name }, lock)),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::AlreadyExists) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("others interfere"))
    }

    /// Takes the locks of this user's sessions that no process holds any more, except for this one. Looks at a bounded number of names: a crowded
    /// directory must not delay a launch.
    pub(crate) fn abandoned(&self) -> Vec<(Place, Lock)> {
        let prefix = format!("px.{}.", geteuid().as_raw());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(&self.parent, c".", flags, Mode::empty()).and_then(Dir::new);
        let Ok(entries) = entries else { return Vec::new() };
        let abandoned = entries.flatten().take(SWEEP_NAMES).filter_map(|entry| {
            let file = entry.file_name().to_bytes();
            let name = file.strip_suffix(LOCK_SUFFIX).filter(|name| name.starts_with(prefix.as_bytes()))?;
            // If we get the lock, neither launcher nor warden has it. A file that is just being made is not locked yet, but its maker notices and
            // tries again.
            let lock = Lock::take(&self.parent, OsStr::from_bytes(file), OFlags::empty()).ok()?;
            let parent = rustix::io::fcntl_dupfd_cloexec(&self.parent, 3).ok()?;
            Some((Place { parent, path: self.path.clone(), name: OsStr::from_bytes(name).to_owned() }, lock))
        });
        abandoned.take(SWEEP_SESSIONS).collect()
    }

    /// Identifies the session in the environment of its processes.
    pub(crate) fn id(&self) -> PathBuf {
        self.path.join(&self.name)
    }

    /// Another process's copy.
    pub(crate) fn with_parent(&self, parent: OwnedFd) -> Place {
        Place { parent, path: self.path.clone(), name: self.name.clone() }
    }

    pub(crate) fn parent(&self) -> &OwnedFd {
        &self.parent
    }

    pub(crate) fn parent_path(&self) -> &Path {
        &self.path
    }

    /// An unguessable name for the session's directory.
    pub(crate) fn secret_name(&self) -> io::Result<OsString> {
        Ok(self.dir_name(&letters::<SECRET_LETTERS>()?))
    }

    /// Makes the session's directory under this name, and records name and inode in the lock file.
    pub(crate) fn make_dir(&self, lock: &Lock, name: &OsStr) -> io::Result<PrivateDir> {
        let secret = name.as_bytes().rsplit(|b| *b == b'.').next().unwrap_or_default();
        lock.say(0, &[secret, b"\n"].concat())?;
        let dir = PrivateDir::make(&self.parent, &self.path, name)?;
        lock.say(secret.len() + 1, format!("{}\n", dir.inode()?).as_bytes())?;
        Ok(dir)
    }

    /// The session's directory, if it was made and is still there.
    pub(crate) fn dir_of(&self, lock: &Lock) -> Option<PrivateDir> {
        let (secret, inode) = lock.said()?;
        let name = self.dir_name(&secret);
        let Some(inode) = inode else {
            // Its maker had no time to put anything there.
            let _ = unlinkat(&self.parent, &name, AtFlags::REMOVEDIR);
            return None;
        };
        PrivateDir::open(&self.parent, &self.path, &name)
            .ok()
            .filter(|dir| dir.inode().is_ok_and(|i| i == inode))
    }

    /// Removes the lock file, unless another session has its name by now.
    pub(crate) fn remove_lock(&self, lock: &Lock) {
        let name = lock_name(&self.name);
        let there = statat(&self.parent, &name, AtFlags::SYMLINK_NOFOLLOW);
        let is_ours = there.is_ok_and(|there| {
            fstat(&lock.file).is_ok_and(|ours| (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino))
        });
        if is_ours {
            let _ = unlinkat(&self.parent, &name, AtFlags::empty());
        }
    }

    fn dir_name(&self, secret: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(".");
        name.push(secret);
        name
    }
}

impl Lock {
    /// Takes the lock of a session of ours, if it is free.
    fn take(parent: &OwnedFd, name: &OsStr, flags: OFlags) -> io::Result<Lock> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = fstat(&fd)?;
        let is_ours = stat.st_uid == geteuid().as_raw()
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_mode & 0o022 == 0;
        if !is_ours {
            return Err(ErrorKind::PermissionDenied.into());
        }
        flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Lock { file: fd.into() })
    }

    /// The lock of a forked process.
    pub(crate) fn of(fd: OwnedFd) -> Lock {
        Lock { file: fd.into() }
    }

    fn is_named(&self) -> bool {
        fstat(&self.file).is_ok_and(|stat| stat.st_nlink == 1)
    }

    fn say(&self, at: usize, text: &[u8]) -> io::Result<()> {
        self.file.write_all_at(text, at as u64)
    }

    /// The secret of the directory's name, and its inode. The inode is missing if making the directory was interrupted.
    fn said(&self) -> Option<(String, Option<u64>)> {
        let mut text = [0; LONGEST];
        let length = match self.file.read_at(&mut text, 0) {
            Ok(length) => length,
            Err(error) => {
                tracing::debug!(%error, "cannot read the lock of a session");
                return None;
            }
        };
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        // A last line without a newline was not written completely.
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let secret = lines.next().filter(|secret| {
            secret.len() == SECRET_LETTERS && secret.bytes().all(|byte| LETTERS.contains(&byte))
        })?;
        Some((secret.to_owned(), lines.next().and_then(|inode| inode.parse().ok())))
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn lock_name(session: &OsStr) -> OsString {
    let mut name = session.to_owned();
    name.push(OsStr::from_bytes(LOCK_SUFFIX));
    name
}

fn letters<const N: usize>() -> Result<String, Errno> {
    let mut random = [0_u8; N];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Sixty bits.
const SECRET_LETTERS: usize = 12;
const LOCK_SUFFIX: &[u8] = b".lock";
const LONGEST: usize = 64;
const ATTEMPTS: u32 = 16;
const SWEEP_NAMES: usize = 10_000;
const SWEEP_SESSIONS: usize = 16;
