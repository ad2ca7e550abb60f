//! Removing one registered path, and nothing else.
//!
//! The path may lead elsewhere by now than when it was registered. Every step starts from a descriptor. A symbolic link is followed only on the way
//! to a path, and only if no user but root and the job's own can have put it there. Files of other users stay, and so do those on another file system
//! or too deep. A directory that is filled while we empty it stays.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;

use phalanx_dvm::{Cleanup, DirectoryRules};
use phalanx_wire::Text;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Removes a path as far as `what` allows, except for `ignored`: absolute paths, and names of entries.
pub(super) fn remove(path: &Text, what: Cleanup, ignored: &BTreeSet<Text>) -> io::Result<()> {
    let mut names: VecDeque<&[u8]> = names(path.as_bytes());
    let Some(name) = names.pop_back() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let name = CString::new(name)?;
    let parent = walk(names)?;
    let stat = statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_ours(&stat) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    match (what, file_type(&stat)) {
        (Cleanup::Ignored, _) => Ok(()),
        (Cleanup::File, FileType::Directory) => Err(io::ErrorKind::IsADirectory.into()),
        (Cleanup::File, _) => Ok(unlinkat(&parent, &name, AtFlags::empty())?),
        (Cleanup::Directory(rules), FileType::Directory) => {
            let mut tree = Tree::new(rules, ignored, stat.st_dev);
            tree.remove(&parent, &name, &mut path.as_bytes().to_vec(), 0)?;
            tree.error.map_or(Ok(()), Err)
        }
        (Cleanup::Directory(_), _) => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// The directory that these names lead to, from the root.
fn walk(mut names: VecDeque<&[u8]>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = || openat(CWD, c"/", flags, Mode::empty());
    let mut at = root()?;
    // Components of links' targets, to walk before the rest of the names.
    let mut detours: VecDeque<Vec<u8>> = VecDeque::new();
    let mut links = 0;
    loop {
        let name = match (detours.pop_front(), names.is_empty()) {
            (Some(name), _) => name,
            (None, false) => names.pop_front().unwrap_or_default().to_vec(),
            (None, true) => return Ok(at),
        };
        let next = openat(&at, name.as_slice(), flags, Mode::empty())?;
        let stat = fstat(&next)?;
        match file_type(&stat) {
            FileType::Directory => at = next,
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS || !is_trusted(&fstat(&at)?, &stat) {
                    return Err(Errno::LOOP.into());
                }
                let target = readlinkat(&at, name.as_slice(), Vec::new())?;
                if target.to_bytes().first() == Some(&b'/') {
                    at = root()?;
                }
                let target = self::names(target.to_bytes());
                target.into_iter().rev().for_each(|name| detours.push_front(name.to_vec()));
            }
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
    }
}

/// Whether only root and we can have put this link into this directory.
fn is_trusted(dir: &Stat, link: &Stat) -> bool {
    let by_us = |stat: &Stat| stat.st_uid == 0 || is_ours(stat);
    by_us(dir) && by_us(link) && dir.st_mode & 0o022 == 0
}

/// A directory to remove with its contents.
pub(crate) struct Tree<'a> {
    rules: DirectoryRules,
    ignored: &'a BTreeSet<Text>,
    device: u64,
    /// Removes files of other users, too.
    of_anybody: bool,
    most_depth: u32,
    /// How many have been looked at.
    entries: usize,
    /// The first error. Removal goes on after it.
    error: Option<io::Error>,
}

impl Tree<'_> {
    /// Removes the directory `name` in `parent` with its contents, regardless of their owner. For directories that no other user can have put there.
    /// Returns whether it is gone.
    pub(crate) fn with_everything(parent: &OwnedFd, name: &CStr) -> io::Result<bool> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let rules = DirectoryRules { recursive: true, ..DirectoryRules::default() };
        let nothing = BTreeSet::new();
        let tree = Tree::new(rules, &nothing, stat.st_dev);
        let mut tree = Tree { of_anybody: true, most_depth: OUR_DEPTH, ..tree };
        let gone = tree.remove(parent, name, &mut name.to_bytes().to_vec(), 0)?;
        tree.error.map_or(Ok(gone), Err)
    }

    fn new(rules: DirectoryRules, ignored: &BTreeSet<Text>, device: u64) -> Tree<'_> {
        Tree { rules, ignored, device, of_anybody: false, most_depth: MOST_DEPTH, entries: 0, error: None }
    }

    fn may_take(&self, stat: &Stat) -> bool {
        self.of_anybody || is_ours(stat)
    }

    /// Empties and removes the directory `name` in `parent`; `path` is its path. Returns whether it is gone.
    fn remove(&mut self, parent: &OwnedFd, name: &CStr, path: &mut Vec<u8>, depth: u32) -> io::Result<bool> {
        if depth > self.most_depth {
            return Err(Errno::NAMETOOLONG.into());
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let dir = openat(parent, name, flags, Mode::empty())?;
        let stat = fstat(&dir)?;
        if !self.may_take(&stat) || stat.st_dev != self.device {
            return Ok(false);
        }
        // Removing entries can hide others from a reader of the directory.
        let mut empty = false;
        for _ in 0..PASSES {
            let (gone, left) = self.pass(&dir, path, depth)?;
            empty = left == 0;
            if empty || gone == 0 {
                break;
            }
        }
        if !empty || (depth == 0 && self.rules.leave_top) {
            return Ok(false);
        }
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads the directory once. Returns how many entries were removed and how many stay.
    fn pass(&mut self, dir: &OwnedFd, path: &mut Vec<u8>, depth: u32) -> io::Result<(usize, usize)> {
        let (mut gone, mut left) = (0, 0);
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                return Err(io::Error::other("there is too much in it"));
            }
            let length = path.len();
            path.push(b'/');
            path.extend_from_slice(name.to_bytes());
            let went = self.entry(dir, name, path, depth);
            path.truncate(length);
            match went {
                Ok(true) => gone += 1,
                Ok(false) => left += 1,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => {
                    left += 1;
                    self.error.get_or_insert(e);
                }
            }
        }
        Ok((gone, left))
    }

    fn entry(&mut self, dir: &OwnedFd, name: &CStr, path: &mut Vec<u8>, depth: u32) -> io::Result<bool> {
        if self.ignored.contains(&Text::from_bytes(path))
            || self.ignored.contains(&Text::from_bytes(name.to_bytes()))
        {
            return Ok(false);
        }
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match file_type(&stat) {
            _ if !self.may_take(&stat) => Ok(false),
            FileType::Directory if self.rules.recursive => self.remove(dir, name, path, depth + 1),
            FileType::Directory => Ok(false),
            _ if self.rules.only_empty => Ok(false),
            _ => Ok(unlinkat(dir, name, AtFlags::empty()).map(|()| true)?),
        }
    }
}

fn names(path: &[u8]) -> VecDeque<&[u8]> {
    path.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".").collect()
}

fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == geteuid().as_raw()
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The kernel's own limit on the way to one file.
const MOST_LINKS: u32 = 40;
/// Each level holds two descriptors.
const MOST_DEPTH: u32 = 64;
/// For trees that only we can have made. Descriptors suffice for it even where they are limited to 1024.
const OUR_DEPTH: u32 = 400;
const MOST_ENTRIES: usize = 1 << 20;
const PASSES: u32 = 8;
