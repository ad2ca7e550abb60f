//! Files and directories that processes leave to their daemons to remove.

use std::collections::BTreeSet;

use crate::encoding::encoded;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, Text, Value};

/// What is to become of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cleanup {
    File,
    Directory(DirectoryRules),
    /// It stays, with everything below it, in whatever directory it is. A name without a slash stands for every entry of that
    /// name.
    Ignored,
}

/// How a directory is removed. Without any of these: its files, and itself if nothing is left in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryRules {
    /// Its subdirectories are removed in the same way.
    pub recursive: bool,
    /// Directories are removed only if they are empty, and files stay.
    pub only_empty: bool,
    pub leave_top: bool,
}

/// The paths of one cleanup request, absolute and normalised.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CleanupRequest {
    pub(crate) files: BTreeSet<Text>,
    pub(crate) directories: BTreeSet<Text>,
    pub(crate) ignored: BTreeSet<Text>,
    pub(crate) rules: DirectoryRules,
}

/// The directives that are read here.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::REGISTER_CLEANUP,
    keys::REGISTER_CLEANUP_DIR,
    keys::CLEANUP_RECURSIVE,
    keys::CLEANUP_EMPTY,
    keys::CLEANUP_IGNORE,
    keys::CLEANUP_LEAVE_TOPDIR,
];

impl CleanupRequest {
    /// `None`: the directives are about other things.
    pub(crate) fn read(directives: &[Info]) -> Result<Option<CleanupRequest>, Status> {
        let mut request = CleanupRequest::default();
        let mut any = false;
        for directive in directives.iter().filter(|d| ATTRIBUTES.contains(&d.key.as_str())) {
            any = true;
            let value = &directive.value;
            match directive.key.as_str() {
                keys::REGISTER_CLEANUP => add(&mut request.files, value, path)?,
                keys::REGISTER_CLEANUP_DIR => add(&mut request.directories, value, path)?,
                keys::CLEANUP_IGNORE => add(&mut request.ignored, value, path_or_name)?,
                keys::CLEANUP_RECURSIVE => request.rules.recursive = value.is_true(),
                keys::CLEANUP_EMPTY => request.rules.only_empty = value.is_true(),
                _ => request.rules.leave_top = value.is_true(),
            }
        }
        match any {
            false => Ok(None),
            // Rules without a path.
            true if request.removals().next().is_none() && request.ignored.is_empty() => {
                Err(Status::ERR_BAD_PARAM)
            }
            true => Ok(Some(request)),
        }
    }

    /// The paths to remove.
    pub(crate) fn removals(&self) -> impl Iterator<Item = (&Text, Cleanup)> {
        let files = self.files.iter().map(|path| (path, Cleanup::File));
        files.chain(self.directories.iter().map(|path| (path, Cleanup::Directory(self.rules))))
    }
}

/// The parts of a comma-separated list.
fn add(
    to: &mut BTreeSet<Text>,
    value: &Value,
    read: impl Fn(&[u8]) -> Result<Text, Status>,
) -> Result<(), Status> {
    let Value::String(list) = value else { return Err(Status::ERR_BAD_PARAM) };
    for item in list.as_bytes().split(|b| *b == b',').filter(|item| !item.is_empty()) {
        to.insert(read(item)?);
    }
    Ok(())
}

/// An absolute path without `.`, `..` and needless slashes. Entries of the root directory are refused: a mistake in a program
/// must not cost its user's files.
fn path(bytes: &[u8]) -> Result<Text, Status> {
    if bytes.first() != Some(&b'/') || bytes.len() > LONGEST_PATH {
        return Err(Status::ERR_BAD_PARAM);
    }
    let mut normal = Vec::with_capacity(bytes.len());
    for name in bytes.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".") {
        if name == b".." {
            return Err(Status::ERR_BAD_PARAM);
        }
        normal.push(b'/');
        normal.extend_from_slice(name);
    }
    match normal.iter().filter(|b| **b == b'/').count() {
        0 | 1 => Err(Status::ERR_BAD_PARAM),
        _ => Ok(Text::from_bytes(&normal)),
    }
}

fn path_or_name(bytes: &[u8]) -> Result<Text, Status> {
    let is_name = !bytes.contains(&b'/') && bytes != b"." && bytes != b"..";
    if is_name && bytes.len() <= LONGEST_PATH { Ok(Text::from_bytes(bytes)) } else { path(bytes) }
}

/// PATH_MAX, without the NUL.
const LONGEST_PATH: usize = 4095;

encoded!(enum Cleanup { 0 File, 1 Directory(rules), 2 Ignored });
encoded!(struct DirectoryRules { recursive, only_empty, leave_top });
encoded!(struct CleanupRequest { files, directories, ignored, rules });
