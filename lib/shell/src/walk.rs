//! The directory to which a path leads, if no other user can make it lead elsewhere.
//!
//! A user that can rename a directory on the way, or owns a symbolic link there, can redirect a path at any moment. So the
//! path is walked from the root, name by name, and each directory on the way is checked through its descriptor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::unmapped::is_mapped;

/// How a directory is opened on the way.
pub const OPENED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory to which an absolute path leads. Fails if another user can redirect the path, or rename files in the directory.
pub fn walk(path: &Path) -> io::Result<OwnedFd> {
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

/// In reverse order.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The target of the link of this name.
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

/// Whether only root and we can rename entries of a directory. Its group can, unless that is root's or our own private group.
fn is_only_ours(uid: u32, gid: u32, mode: u32) -> bool {
    let is_private = gid == 0 || (gid == geteuid().as_raw() && gid == getegid().as_raw());
    let others = if is_private { 0o002 } else { 0o022 };
    is_trusted(uid) && (mode & others == 0 || mode & 0o1000 != 0)
}

fn is_trusted(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0 || (uid == UNMAPPED && !is_mapped(UNMAPPED))
}

/// The kernel's own limit.
const MOST_LINKS: u32 = 40;
/// Stands for users that this user namespace does not map, the owner of the system among them.
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
        let is_safe = || walk(&below).is_ok();
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
        let inode = |path: &Path| walk(path).ok().map(|dir| fstat(&dir).unwrap().st_ino);
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
