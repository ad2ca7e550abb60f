//! A place for a rendezvous file: a directory that was opened, and a name in it.
//!
//! The given directory may be a link; it is resolved once, when opened. The name itself is never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, linkat, openat, renameat, statat, unlinkat};

use crate::trust::Trust;

#[derive(Clone, Debug)]
pub(super) struct Spot {
    dir: Arc<OwnedFd>,
    name: OsString,
    path: PathBuf,
}

impl Spot {
    pub(super) fn of(path: &Path) -> io::Result<Spot> {
        let path = std::path::absolute(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no name of a file"));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(parent, flags, Mode::empty())?;
        Ok(Spot { dir: Arc::new(dir), name: name.to_owned(), path })
    }

    /// In an open directory with the path `at`.
    pub(super) fn within(dir: &Arc<OwnedFd>, at: &Path, name: &OsStr) -> Spot {
        Spot { dir: dir.clone(), name: name.to_owned(), path: at.join(name) }
    }

    /// Another name in the same directory.
    pub(super) fn beside(&self, name: OsString) -> Spot {
        Spot { dir: self.dir.clone(), path: self.path.with_file_name(&name), name }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Creates a new file that only its owner can access.
    pub(super) fn create(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.dir, &self.name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens the existing file. Does not block on a pipe.
    pub(super) fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.dir, &self.name, flags, Mode::empty())?.into())
    }

    /// The owner of the existing file, if there is one.
    pub(super) fn owner(&self) -> Option<u32> {
        Some(self.stat()?.st_uid)
    }

    pub(super) fn is_link(&self) -> bool {
        self.stat().is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    pub(super) fn stat(&self) -> Option<Stat> {
        statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Whether this is a name of that open file.
    pub(super) fn is_of(&self, file: &File) -> bool {
        let same = |there: Stat| {
            fstat(file).is_ok_and(|ours| (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino))
        };
        self.stat().is_some_and(same)
    }

    /// Gives this file the other name as well.
    pub(super) fn link_to(&self, other: &Spot) -> io::Result<()> {
        Ok(linkat(&self.dir, &self.name, &other.dir, &other.name, AtFlags::empty())?)
    }

    pub(super) fn rename_to(&self, other: &Spot) -> io::Result<()> {
        Ok(renameat(&self.dir, &self.name, &other.dir, &other.name)?)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.dir, &self.name, AtFlags::empty())?)
    }
}

/// Checks that this is a regular file that only trusted users can have written.
pub(super) fn check(file: impl AsFd, trust: &Trust) -> Result<Stat, String> {
    let stat = fstat(file).map_err(|error| error.to_string())?;
    trust.check(stat.st_uid).map_err(|error| error.to_string())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("it is not a regular file".to_owned());
    }
    match stat.st_mode & 0o002 {
        0 => Ok(stat),
        _ => Err("everybody can write to it".to_owned()),
    }
}
