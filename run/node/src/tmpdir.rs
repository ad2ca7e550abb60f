//! The directory for temporary files: `TMPDIR`, unless others can interfere there, else `/tmp`.
//!
//! The path is walked by the rules of `shell/walk.rs`; the directory is then used through its descriptor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use phalanx_shell::walk::{OPENED, walk};
use rustix::fs::{Mode, open};

/// A directory for temporary files, open.
#[derive(Debug)]
pub struct TmpDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl TmpDir {
    /// Calls `make` with the `TMPDIR` of the environment. If that fails or is not safe, calls it with `/tmp` and adds a note for the user.
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

    /// All directories that [`TmpDir::choose`] may have chosen.
    pub fn all() -> Vec<TmpDir> {
        let named = named().map(|path| TmpDir::checked(&path));
        named.into_iter().chain([TmpDir::open(FALLBACK.as_ref())]).flatten().collect()
    }

    /// Opens one that the user has named, at the user's own risk.
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

/// `TMPDIR`, if it is set to anything but the fallback.
fn named() -> Option<PathBuf> {
    std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty() && dir != FALLBACK).map(PathBuf::from)
}

const FALLBACK: &str = "/tmp";
