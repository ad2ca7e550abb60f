//! The directory for temporary files: `TMPDIR`, unless others can interfere there, else `/tmp`.
//!
//! Whoever can rename a directory on the way, or owns a symbolic link there, can lead a path elsewhere from one moment to the next. So the
//! path is walked from the root, one name after the other, and each directory in which a name stands is checked on its
//! descriptor. What happens in the directory that was reached goes through its descriptor too.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// A directory for temporary files, open.
#[derive(Debug)]
pub struct TmpDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl TmpDir {
    /// What `make` makes in the `TMPDIR` of the environment. If that is not possible or not safe, the same in `/tmp`, with a
    /// remark for the user.
    pub fn choose<T>(make: impl Fn(TmpDir) -> Result<T>) -> Result<(T, Option<String>)> {
        let Some(named) = named() else { return Ok((make(TmpDir::open(FALLBACK.as_ref())?)?, None)) };
        match TmpDir::checked(&named).and_then(&make) {
            Ok(made) => Ok((made, None)),
            Err(error) => {
                let made = TmpDir::open(FALLBACK.as_ref()).and_then(make);
                let made = made.with_context(|| format!("{error:#} (TMPDIR)"))?;
                Ok((made, Some(format!("{error:#}; using {FALLBACK} instead of TMPDIR"))))
            }
        }
    }

    /// All that [`TmpDir::choose`] may have chosen.
    pub fn all() -> Vec<TmpDir> {
        let named = named().map(|path| TmpDir::checked(&path));
        named.into_iter().chain([TmpDir::open(FALLBACK.as_ref())]).flatten().collect()
    }

    /// One that the user has named, who may know better.
    pub(crate) fn open(path: &Path) -> Result<TmpDir> {
        TmpDir::reached(path, |path| Ok(open(path, OPENED, Mode::empty())?))
    }

    fn checked(path: &Path) -> Result<TmpDir> {
        TmpDir::reached(path, walk)
    }

    fn reached(path: &Path, reach: impl FnOnce(&Path) -> io::Result<OwnedFd>) -> Result<TmpDir> {
        let cannot = || format!("cannot use {}", path.display());
        let absolute = std::path::absolute(path).with_context(cannot)?;
        Ok(TmpDir { fd: reach(&absolute).with_context(cannot)?, path: absolute })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn into_parts(self) -> (OwnedFd, PathBuf) {
        (self.fd, self.path)
    }
}

/// What the environment says, if it says anything else than we would use in any case.
fn named() -> Option<PathBuf> {
    std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty() && dir != FALLBACK).map(PathBuf::from)
}

/// The directory to which an absolute path leads, if nobody else can make it lead elsewhere.
fn walk(path: &Path) -> io::Result<OwnedFd> {
    let root = || open("/", OPENED, Mode::empty());
    let (mut here, mut at) = (root()?, PathBuf::from("/"));
    let (mut rest, mut links) = (names(path), 0);
    loop {
        check(&here, &at)?;
        let Some(name) = rest.pop() else { return Ok(here) };
        match openat(&here, &name, OPENED.union(OFlags::NOFOLLOW), Mode::empty()) {
            Ok(next) => {
                here = next;
                match name == ".." {
                    true => at = at.parent().unwrap_or(&at).to_owned(),
                    false => at.push(&name),
                }
            }
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let target = link(&here, &name, &at)?;
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if target.is_absolute() {
                    (here, at) = (root()?, PathBuf::from("/"));
                }
                rest.extend(names(&target));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// Where the link of this name leads.
fn link(dir: &OwnedFd, name: &OsStr, at: &Path) -> io::Result<PathBuf> {
    let link = openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&link)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Err(Errno::NOTDIR.into());
    }
    if !is_trusted(stat.st_uid) {
        let link = at.join(name);
        return Err(io::Error::other(format!("the link {} belongs to user {}", link.display(), stat.st_uid)));
    }
    let target = readlinkat(&link, c"", Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

fn check(dir: &OwnedFd, path: &Path) -> io::Result<()> {
    let stat = fstat(dir)?;
    match is_only_ours(stat.st_uid, stat.st_gid, stat.st_mode) {
        true => Ok(()),
        false => Err(io::Error::other(format!("others can rename files in {}", path.display()))),
    }
}

/// Whether nobody but root and we can rename what lies in a directory. Its group can unless it is root's, or the one of our name.
fn is_only_ours(uid: u32, gid: u32, mode: u32) -> bool {
    let is_private = gid == 0 || (gid == geteuid().as_raw() && gid == getegid().as_raw());
    let others = if is_private { 0o002 } else { 0o022 };
    is_trusted(uid) && (mode & others == 0 || mode & 0o1000 != 0)
}

fn is_trusted(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0 || (uid == UNMAPPED && !is_mapped(UNMAPPED))
}

/// Whether this user namespace has a user of this number.
fn is_mapped(uid: u32) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().unwrap_or(0));
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        first.zip(count).is_some_and(|(first, count)| uid >= first && uid - first < count)
    })
}

const OPENED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FALLBACK: &str = "/tmp";
/// As many as the kernel follows.
const MOST_LINKS: u32 = 40;
/// Stands for users that this user namespace does not know, the system's owner among them.
const UNMAPPED: u32 = 65_534;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn directories_that_others_can_change_are_not_safe() {
        let me = geteuid().as_raw();
        assert!(is_only_ours(me, 0, 0o770) && is_only_ours(0, 4242, 0o1777) && is_only_ours(me, 4242, 0o755));
        assert!(!is_only_ours(me, 4242, 0o770) && !is_only_ours(me, 0, 0o777));
        assert!(!is_only_ours(4242, 0, 0o755) && !is_only_ours(4242, 0, 0o1777));
    }

    #[test]
    fn a_directory_is_as_safe_as_those_above_it() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let is_safe = || TmpDir::checked(&below).is_ok();
        assert!(is_safe());
        let open = |mode| std::fs::set_permissions(top.path().join("a"), PermissionsExt::from_mode(mode));
        open(0o777).unwrap();
        assert!(!is_safe());
        open(0o1777).unwrap();
        assert!(is_safe());
    }

    #[test]
    fn links_lead_where_the_kernel_follows_them() {
        let top = tempfile::tempdir().unwrap();
        let path = |name: &str| top.path().join(name);
        std::fs::create_dir_all(path("a/b/c")).unwrap();
        for (target, link) in
            [("b/../b/c", "a/relative"), ("../a/relative", "a/again"), ("self", "self"), ("file", "to-file")]
        {
            symlink(target, path(link)).unwrap();
        }
        symlink(path("a/again"), path("absolute")).unwrap();
        std::fs::write(path("file"), "").unwrap();
        let inode = |path: &Path| TmpDir::checked(path).ok().map(|dir| fstat(&dir.fd).unwrap().st_ino);
        let wanted = inode(&path("a/b/c"));
        assert!(wanted.is_some());
        for link in ["a/relative", "a/again", "absolute", "absolute/../c/.", "a/b/c/"] {
            assert_eq!(inode(&path(link)), wanted, "{link}");
        }
        for wrong in ["self", "file", "to-file", "file/x", "nowhere", "absolute/nowhere"] {
            assert_eq!(inode(&path(wrong)), None, "{wrong}");
        }
    }
}
