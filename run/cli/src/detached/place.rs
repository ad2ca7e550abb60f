//! Where the output of detached jobs is kept: a directory of this user's below `TMPDIR`, with the files of each launcher.
//!
//! The directory's name can be guessed, so another user may have taken it. Then we take a different name, and search all candidates. The directory is
//! opened once and checked, and everything in it is reached from there, never through links.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use phalanx_node::TmpDir;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::Value;

use super::{ERR_RANKS, OUT_RANKS};
use crate::failure::Failure;

/// A directory with the files of launchers.
#[derive(Debug)]
pub(super) struct Store {
    above: Rc<TmpDir>,
    name: OsString,
    dir: Rc<OwnedFd>,
}

/// The files of one launcher.
#[derive(Clone, Debug)]
pub(super) struct LauncherDir {
    above: Rc<TmpDir>,
    name: OsString,
    dir: Rc<OwnedFd>,
    /// The prefix of its file names, unique because pids are reused.
    launcher: String,
}

/// A record that can be written without further space.
#[derive(Debug)]
pub(super) struct Reserved {
    file: File,
    end: &'static str,
}

impl Store {
    /// The store of this user, made if it is missing, and a note if it is not at the requested place.
    pub(super) fn choose() -> Result<(Store, Option<String>), Failure> {
        let make = |dir: TmpDir| {
            let path = dir.path().to_owned();
            Store::make(dir).with_context(|| format!("cannot keep output in '{}'", path.display()))
        };
        TmpDir::choose(make).map_err(Failure::from)
    }

    fn make(dir: TmpDir) -> io::Result<Store> {
        let above = Rc::new(dir);
        let usual = usual_name();
        match Store::make_as(&above, &usual) {
            // It is another user's, or no directory.
            Err(_) if statat(above.fd(), &usual, AtFlags::SYMLINK_NOFOLLOW).is_ok() => {}
            made => return made,
        }
        if let Some(other) = Store::all_in(&above).into_iter().next() {
            return Ok(other);
        }
        let mut name = usual;
        name.push(format!(".{:016x}", random()?));
        Store::make_as(&above, &name)
    }

    /// All stores of this user, wherever they may have been made.
    pub(super) fn all() -> Vec<Store> {
        TmpDir::all().into_iter().flat_map(|dir| Store::all_in(&Rc::new(dir))).collect()
    }

    fn all_in(above: &Rc<TmpDir>) -> Vec<Store> {
        let usual = usual_name();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(above.fd(), c".", flags, Mode::empty()).and_then(Dir::new);
        let mut names: Vec<OsString> = vec![usual.clone()];
        for entry in entries.into_iter().flatten().flatten().take(MOST_NEIGHBOURS) {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != usual && name.as_bytes().starts_with(usual.as_bytes()) {
                names.push(name.to_owned());
            }
        }
        names.iter().filter_map(|name| Store::open(above, name).ok()).take(MOST_STORES).collect()
    }

    fn make_as(above: &Rc<TmpDir>, name: &OsStr) -> io::Result<Store> {
        match mkdirat(above.fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Store::open(above, name),
            Err(error) => Err(error.into()),
        }
    }

    fn open(above: &Rc<TmpDir>, name: &OsStr) -> io::Result<Store> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = openat(above.fd(), name, flags, Mode::empty())?;
        let stat = fstat(&dir)?;
        match stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o077 == 0 {
            true => Ok(Store { above: above.clone(), name: name.to_owned(), dir: Rc::new(dir) }),
            false => Err(io::Error::other("it is not a directory that only you can enter")),
        }
    }

    /// The directory for temporary files that contains it.
    pub(super) fn tmpdir(&self) -> &Path {
        self.above.path()
    }

    /// A place for a new launcher.
    pub(super) fn new_place(&self, pid: u32) -> io::Result<LauncherDir> {
        Ok(self.place(format!("{pid}-{:016x}", random()?)))
    }

    fn place(&self, launcher: String) -> LauncherDir {
        LauncherDir { above: self.above.clone(), name: self.name.clone(), dir: self.dir.clone(), launcher }
    }

    /// The places of launchers that have detached a job, each with the time of that.
    pub(super) fn jobs(&self) -> Vec<(SystemTime, LauncherDir)> {
        let of_job = |name: OsString| {
            let launcher = name.to_str()?.strip_suffix(".job")?.to_owned();
            let stat = statat(&self.dir, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((modified(&stat), self.place(launcher)))
        };
        self.names().into_iter().filter_map(of_job).collect()
    }

    /// Removes the files of dead launchers that were not fetched in time.
    pub(super) fn sweep(&self) {
        let mut last_written = BTreeMap::<String, SystemTime>::new();
        for name in self.names() {
            let launcher = name.to_str().and_then(|name| Some(name.split_once('.')?.0.to_owned()));
            let stat = statat(&self.dir, &name, AtFlags::SYMLINK_NOFOLLOW);
            if let (Some(launcher), Ok(stat)) = (launcher, stat) {
                let written = modified(&stat);
                let last = last_written.entry(launcher).or_insert(written);
                *last = written.max(*last);
            }
        }
        for (launcher, written) in last_written {
            let place = self.place(launcher);
            let is_old = SystemTime::now().duration_since(written).is_ok_and(|age| age > KEPT);
            if is_old && !place.is_alive() {
                place.remove();
            }
        }
    }

    fn names(&self) -> Vec<OsString> {
        let entries = Dir::read_from(&self.dir);
        let entries = entries.into_iter().flatten().flatten().take(MOST_NAMES);
        entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()).collect()
    }
}

impl LauncherDir {
    fn name_of(&self, end: &str) -> String {
        format!("{}.{end}", self.launcher)
    }

    /// The launcher's pid.
    pub(super) fn pid(&self) -> u32 {
        self.launcher.split('-').next().and_then(|pid| pid.parse().ok()).unwrap_or_default()
    }

    pub(super) fn has(&self, end: &str) -> bool {
        let stat = statat(&self.dir, self.name_of(end), AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    pub(super) fn open(&self, end: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.dir, self.name_of(end), flags, Mode::empty())?.into())
    }

    pub(super) fn make(&self, end: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.dir, self.name_of(end), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    pub(super) fn record(&self, end: &str, record: &Value) -> io::Result<()> {
        self.make(DRAFT)?.write_all(record.to_string().as_bytes())?;
        Ok(renameat(&self.dir, self.name_of(DRAFT), &self.dir, self.name_of(end))?)
    }

    /// Reserves space for a record, so that it can be written when the file system is full.
    pub(super) fn reserve(&self, end: &'static str) -> io::Result<Reserved> {
        let mut file = self.make(RESERVED)?;
        file.write_all(&[b' '; MOST_RESERVED])?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Not the descriptor for appending.
        let file = openat(&self.dir, self.name_of(RESERVED), flags, Mode::empty())?.into();
        Ok(Reserved { file, end })
    }

    pub(super) fn record_reserved(&self, reserved: Reserved, record: &Value) -> io::Result<()> {
        reserved.file.write_all_at(record.to_string().as_bytes(), 0)?;
        Ok(renameat(&self.dir, self.name_of(RESERVED), &self.dir, self.name_of(reserved.end))?)
    }

    pub(super) fn read(&self, end: &str) -> Option<Value> {
        serde_json::from_reader(io::BufReader::new(self.open(end).ok()?)).ok()
    }

    /// The file that the launcher keeps locked.
    pub(super) fn hold(&self) -> io::Result<File> {
        let file = self.make(ALIVE)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.open(ALIVE)
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
    }

    pub(super) fn remove(&self) {
        for end in ["out", OUT_RANKS, "err", ERR_RANKS, "job", "end", DRAFT, RESERVED, ALIVE] {
            self.remove_one(end);
        }
        // Succeeds only for the last launcher.
        let _ = unlinkat(self.above.fd(), &self.name, AtFlags::REMOVEDIR);
    }

    fn remove_one(&self, end: &str) {
        let _ = unlinkat(&self.dir, self.name_of(end), AtFlags::empty());
    }
}

fn modified(stat: &Stat) -> SystemTime {
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    UNIX_EPOCH + Duration::new(u64::try_from(stat.st_mtime).unwrap_or_default(), nanos)
}

fn random() -> io::Result<u64> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(random))
}

fn usual_name() -> OsString {
    format!("px.{}.detached", geteuid().as_raw()).into()
}

/// How long the files of an ended job are kept: a week.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const DRAFT: &str = "draft";
const RESERVED: &str = "reserved";
const MOST_RESERVED: usize = 4096;
const ALIVE: &str = "alive";
const MOST_NAMES: usize = 10_000;
const MOST_NEIGHBOURS: usize = 1_000_000;
const MOST_STORES: usize = 16;
