//! A directory that no other user can enter. It is opened once; everything in it is reached through its descriptor.
//!
//! Where others can rename a part of a path, it may lead elsewhere at any moment. So everything here is newly made or fails, links are never
//! followed, owner and mode are checked on the opened file, and trees are removed through descriptors.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::cleanup::Tree;

/// See above. The path is for others to use.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl PrivateDir {
    /// Makes it in `parent`, which has the path `at`. Fails if it exists.
    pub(crate) fn make(parent: &OwnedFd, at: &Path, name: &OsStr) -> io::Result<PrivateDir> {
        with_private_umask(|| mkdirat(parent, name, Mode::RWXU))?;
        let dir = PrivateDir::open(parent, at, name)?;
        // The owner of the parent directory may have put another directory of ours in its place.
        match dir.is_empty()? {
            true => Ok(dir),
            false => Err(io::Error::other("it was replaced by another directory")),
        }
    }

    /// Opens an existing one.
    pub(crate) fn open(parent: &OwnedFd, at: &Path, name: &OsStr) -> io::Result<PrivateDir> {
        Ok(PrivateDir { fd: open(parent, name)?, path: at.join(name) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Distinguishes it from later directories of the same name.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(fstat(&self.fd)?.st_ino)
    }

    /// Makes a directory below this one, and its missing parents.
    pub(crate) fn make_below(&self, path: &Path) -> io::Result<()> {
        let mut at = None;
        for name in names_below(&self.path, path)? {
            let parent = at.as_ref().unwrap_or(&self.fd);
            match with_private_umask(|| mkdirat(parent, name, Mode::RWXU)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = Some(open(parent, name)?);
        }
        Ok(())
    }

    /// Removes a directory below this one with its contents.
    pub(crate) fn remove_below(&self, path: &Path) -> io::Result<()> {
        let mut names = names_below(&self.path, path)?;
        let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
        let mut at = None;
        for name in names {
            at = Some(open(at.as_ref().unwrap_or(&self.fd), name)?);
        }
        remove(at.as_ref().unwrap_or(&self.fd), last)
    }

    /// Empties it and removes it from `parent`, if it is still there.
    pub(crate) fn remove(self, parent: &OwnedFd) -> io::Result<()> {
        let Some(name) = self.path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let there = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match there.st_ino == self.inode()? {
            true => remove(parent, name),
            false => Err(io::Error::other("it was replaced by something else")),
        }
    }

    fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> PrivateDir {
        let fd = rustix::fs::open(path, OPENED, Mode::empty()).unwrap();
        PrivateDir { fd, path: path.to_owned() }
    }
}

/// The names on the way from `dir` down to `path`.
fn names_below<'a>(dir: &Path, path: &'a Path) -> io::Result<Vec<&'a OsStr>> {
    let below = path.strip_prefix(dir).map_err(|_| io::ErrorKind::InvalidInput)?;
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    below.components().map(name).collect()
}

/// Opens a directory of ours that no other user can change.
fn open(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let fd = openat(parent, name, OPENED, Mode::empty())?;
    let stat = fstat(&fd)?;
    let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && stat.st_uid == geteuid().as_raw()
        && stat.st_mode & 0o022 == 0;
    if is_ours { Ok(fd) } else { Err(io::Error::other("it is a directory that others can change")) }
}

/// Only we can have put files here, so all of them go, regardless of their present owner.
fn remove(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match Tree::with_everything(parent, &CString::new(name.as_bytes())?) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("somebody goes on putting files there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn with_private_umask<T>(make: impl FnOnce() -> T) -> T {
    let old = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let made = make();
    rustix::process::umask(old);
    made
}

const OPENED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn parent(dir: &Path) -> OwnedFd {
        rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    fn name() -> &'static OsStr {
        OsStr::new("name")
    }

    #[test]
    fn a_directory_that_is_there_is_not_taken() {
        let top = tempfile::tempdir().unwrap();
        let (parent, victim) = (parent(top.path()), top.path().join("victim"));
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("precious"), "x").unwrap();
        symlink(&victim, top.path().join("name")).unwrap();
        assert!(PrivateDir::make(&parent, top.path(), name()).is_err());
        assert!(PrivateDir::open(&parent, top.path(), name()).is_err());
        fs::remove_file(top.path().join("name")).unwrap();
        fs::create_dir(top.path().join("name")).unwrap();
        assert!(PrivateDir::make(&parent, top.path(), name()).is_err());
        fs::set_permissions(top.path().join("name"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(PrivateDir::open(&parent, top.path(), name()).is_err());
        assert!(victim.join("precious").exists());
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let (parent, victim) = (parent(top.path()), top.path().join("victim"));
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("precious"), "x").unwrap();
        let dir = PrivateDir::make(&parent, top.path(), name()).unwrap();
        dir.make_below(&dir.path().join("job/rank")).unwrap();
        fs::write(dir.path().join("job/rank/file"), "x").unwrap();
        symlink(&victim, dir.path().join("job/link")).unwrap();
        symlink(&victim, dir.path().join("other")).unwrap();
        assert!(dir.make_below(&dir.path().join("other/rank")).is_err());
        assert!(dir.remove_below(&dir.path().join("other/precious")).is_err());
        assert!(dir.remove_below(&dir.path().join("../victim")).is_err());
        dir.remove_below(&dir.path().join("job")).unwrap();
        assert!(!dir.path().join("job").exists());
        // A link takes its place: nothing is removed at all.
        fs::rename(dir.path(), top.path().join("moved")).unwrap();
        symlink(&victim, dir.path()).unwrap();
        assert!(dir.remove(&parent).is_err());
        assert!(victim.join("precious").exists() && top.path().join("moved/other").is_symlink());
    }

    #[test]
    fn created_directories_are_removed_with_their_content() {
        let top = tempfile::tempdir().unwrap();
        let parent = parent(top.path());
        let dir = PrivateDir::make(&parent, top.path(), name()).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let deep: PathBuf = (0..100).fold(dir.path().to_owned(), |path, _| path.join("d"));
        dir.make_below(&deep).unwrap();
        (0..100).for_each(|n| fs::write(deep.join(n.to_string()), "").unwrap());
        dir.remove(&parent).unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
