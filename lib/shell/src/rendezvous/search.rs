//! Looks for servers: searches directories from the top down, up to a maximum number of names, never through a symbolic link.
//!
//! Only files and directories of trusted users are read or entered (`trust.rs`): others may put anything into `/tmp`, which costs
//! one look at its owner. The [`Search`] keeps what was found and what was passed over, with the reason, so that a tool that
//! finds nothing can report where it looked. Files of dead servers (`stale.rs`) are removed on the way if they are ours
//! to remove.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx_wire::rendezvous::{self, Rendezvous};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::process::geteuid;

use super::parse;
use super::seen::{all_seen, is_no_process};
use super::spot::{self, Spot};
use super::stale::Stale;
use crate::identity::Identity;
use crate::trust::Trust;
use crate::unmapped::STRANGER;

/// Which server to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Pid(u32),
    Nspace(String),
    /// The one system server of this machine.
    System,
    /// Any server.
    Any,
}

/// A server that may be alive.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub path: PathBuf,
    pub rendezvous: Rendezvous,
}

/// A file that leads to no usable server.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    pub path: PathBuf,
    pub why: String,
    /// Its server may live, although it cannot be asked.
    pub may_live: bool,
}

/// The results of a search.
#[derive(Clone, Debug)]
pub struct Search {
    pub wanted: Wanted,
    /// The file name to look for, or its prefix.
    pub name: String,
    pub directories: Vec<PathBuf>,
    /// The newest first; each server once.
    pub found: Vec<Found>,
    pub passed: Vec<Passed>,
    /// Files of users that are not trusted: for each user one file, and how many there are.
    pub foreign: BTreeMap<u32, (PathBuf, usize)>,
    /// There were too many names to examine all of them.
    pub cut_short: bool,
    trust: Trust,
    /// How many names have been examined below the given directories.
    seen: usize,
    /// Candidates, until it is known which of their servers live.
    read: Vec<Candidate>,
}

#[derive(Clone, Debug)]
struct Candidate {
    spot: Spot,
    owner: u32,
    /// Seconds and nanoseconds.
    written: (i64, i64),
    rendezvous: Rendezvous,
}

/// A directory on the way down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stop {
    path: PathBuf,
    /// How many trailing names of the path lie below the given directory.
    depth: usize,
}

impl Search {
    /// Searches `directories`; for the system server only their top level.
    pub fn run(wanted: Wanted, hostname: &str, directories: Vec<PathBuf>, trust: &Trust) -> Search {
        let name = match &wanted {
            Wanted::Pid(pid) => rendezvous::pid_file(hostname, *pid),
            Wanted::Nspace(nspace) => rendezvous::nspace_file(hostname, nspace),
            Wanted::System => rendezvous::system_file(hostname),
            Wanted::Any => rendezvous::session_file(hostname),
        };
        let mut search = Search {
            wanted,
            name,
            directories,
            found: Vec::new(),
            passed: Vec::new(),
            foreign: BTreeMap::new(),
            cut_short: false,
            trust: trust.clone(),
            seen: 0,
            read: Vec::new(),
        };
        let mut found: Vec<Candidate> = Vec::new();
        match search.wanted {
            Wanted::System => {
                for dir in search.directories.clone() {
                    if let Ok(spot) = Spot::of(&dir.join(&search.name)) {
                        search.read_one(spot);
                    }
                }
                search.examine_all(&mut found);
            }
            Wanted::Any => search.walk(search.directories.clone(), &mut found),
            // A named server is looked for in the likeliest directory first, and no further than where it is found.
            Wanted::Pid(_) | Wanted::Nspace(_) => {
                for dir in search.directories.clone() {
                    if found.is_empty() {
                        search.walk(vec![dir], &mut found);
                    }
                }
            }
        }
        // The newest is most likely the one meant; paths decide between files of the same moment.
        found.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.spot.path().cmp(b.spot.path())));
        let found = found.into_iter();
        search.found = found
            .map(|found| Found { path: found.spot.path().to_owned(), rendezvous: found.rendezvous })
            .collect();
        search
    }

    /// Examines the files of the wanted name, those of the upper levels first.
    fn walk(&mut self, roots: Vec<PathBuf>, found: &mut Vec<Candidate>) {
        let mut level: Vec<Stop> = roots.into_iter().map(|path| Stop { path, depth: 0 }).collect();
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for stop in level {
                // A directory that we cannot read is not meant for us.
                if let Some(dir) = self.open(&stop) {
                    self.read_all(&Arc::new(dir), &stop, &mut next);
                }
            }
            self.examine_all(found);
            let is_done = self.wanted != Wanted::Any && !found.is_empty();
            if is_done || self.cut_short {
                return;
            }
            next.sort();
            level = next;
        }
    }

    /// A given directory may be a link. Below it no link is followed, and only directories of trusted users are entered.
    fn open(&self, stop: &Stop) -> Option<OwnedFd> {
        let mut names: Vec<&OsStr> = stop.path.iter().rev().take(stop.depth).collect();
        names.reverse();
        let root = stop.path.ancestors().nth(stop.depth)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = openat(CWD, root, flags, Mode::empty()).ok()?;
        for name in names {
            dir = openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty()).ok()?;
            if !self.trust.includes(fstat(&dir).ok()?.st_uid) {
                return None;
            }
        }
        Some(dir)
    }

    fn read_all(&mut self, dir: &Arc<OwnedFd>, stop: &Stop, next: &mut Vec<Stop>) {
        let Ok(entries) = Dir::read_from(dir) else { return };
        let mut files: Vec<OsString> = Vec::new();
        // Any user may have filled a given directory (such as /tmp) to hide what we look for.
        let most = if stop.depth == 0 { MOST_NAMES_AT_THE_TOP } else { MOST_NAMES };
        for (at, entry) in entries.flatten().enumerate() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.seen += usize::from(stop.depth > 0);
            self.cut_short |= self.seen > MOST_NAMES || at > most;
            if self.cut_short {
                break;
            }
            let owner = |stat: Stat| stat.st_uid;
            match entry.file_type() {
                FileType::Directory => {
                    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                    if stat.is_ok_and(|stat| self.trust.includes(owner(stat))) {
                        next.push(Stop { path: stop.path.join(name), depth: stop.depth + 1 });
                    }
                }
                _ if self.is_wanted(name) => files.push(name.to_owned()),
                // Some file systems do not report the type.
                FileType::Unknown => {
                    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                    let is_dir = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                    if stat.is_ok_and(|stat| is_dir(&stat) && self.trust.includes(owner(stat))) {
                        next.push(Stop { path: stop.path.join(name), depth: stop.depth + 1 });
                    }
                }
                _ => {}
            }
        }
        files.sort();
        for name in files {
            self.read_one(Spot::within(dir, &stop.path, &name));
        }
    }

    /// Each file that leads to no accepted server, and why.
    pub fn passed_over(&self) -> Vec<String> {
        self.passed_over_if(|_| true)
    }

    /// The same for servers that may live.
    pub fn unasked(&self) -> Vec<String> {
        self.passed_over_if(|passed| passed.may_live)
    }

    fn passed_over_if(&self, is_shown: impl Fn(&Passed) -> bool) -> Vec<String> {
        let passed = self.passed.iter().filter(|passed| is_shown(passed));
        let passed = passed.map(|Passed { path, why, .. }| format!("{}: {why}", path.display()));
        let foreign = self.foreign.iter().map(|(user, (path, count))| {
            let whose = match count - 1 {
                0 => "it belongs".to_owned(),
                more => format!("and {more} more: they belong"),
            };
            let colon = if *count == 1 { ":" } else { "" };
            format!("{}{colon} {whose} to the user {user}, who is not trusted", path.display())
        });
        passed.chain(foreign).collect()
    }

    /// Reads a file, if it exists and its owner is trusted.
    fn read_one(&mut self, spot: Spot) {
        if self.read.len() >= MOST_FILES {
            self.cut_short = true;
            return;
        }
        let Some(owner) = spot.owner() else { return };
        let read = match self.trust.includes(owner) {
            true => spot.open(OFlags::RDONLY).map_err(|error| match spot.is_link() {
                true => "it is a symbolic link".to_owned(),
                false => error.to_string(),
            }),
            false => return self.pass_foreign(owner, &spot),
        };
        let read = read.and_then(|mut file| {
            let stat = spot::check(&file, &self.trust)?;
            Ok((stat, parse(&mut file)?))
        });
        match read {
            Ok((stat, rendezvous)) => self.read.push(Candidate {
                owner: stat.st_uid,
                written: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
                spot,
                rendezvous,
            }),
            Err(why) => self.pass(spot.path(), Unusable { why, may_live: false }),
        }
    }

    fn pass_foreign(&mut self, owner: u32, spot: &Spot) {
        if let Some((_, count)) = self.foreign.get_mut(&owner) {
            *count += 1;
        } else if self.foreign.len() < MOST_PASSED {
            self.foreign.insert(owner, (spot.path().to_owned(), 1));
        }
    }

    fn pass(&mut self, path: &Path, Unusable { why, may_live }: Unusable) {
        if self.passed.len() < MOST_PASSED {
            self.passed.push(Passed { path: path.to_owned(), why, may_live });
        }
    }

    fn examine_all(&mut self, found: &mut Vec<Candidate>) {
        let read = std::mem::take(&mut self.read);
        let seen = all_seen(&read.iter().map(|candidate| &candidate.rendezvous).collect::<Vec<_>>());
        let mut kernel = Identity::default();
        for (candidate, is_seen) in read.into_iter().zip(seen) {
            let stranger = self.stranger_at(candidate.rendezvous.uri.address, &mut kernel);
            match self.examine(&candidate, is_seen, stranger) {
                Ok(()) if found.iter().any(|known| known.rendezvous.uri == candidate.rendezvous.uri) => {}
                Ok(()) => found.push(candidate),
                Err(why) => self.pass(candidate.spot.path(), why),
            }
        }
    }

    fn is_wanted(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        match self.wanted {
            Wanted::Any => name
                .strip_prefix(self.name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
            _ => name == self.name,
        }
    }

    /// The untrusted owner of what listens at this address, if it is here: the port of a server that has ended may have been reused.
    fn stranger_at(&self, address: SocketAddr, kernel: &mut Identity) -> Option<u32> {
        let is_here = address.ip().to_canonical().is_loopback();
        kernel.of_listener(address).filter(|user| is_here && !self.trust.includes(*user))
    }

    fn examine(&self, candidate: &Candidate, is_seen: bool, stranger: Option<u32>) -> Result<(), Unusable> {
        let of = &candidate.rendezvous;
        match stranger.filter(|_| is_seen) {
            Some(STRANGER) => {
                return Err(Unusable { why: OF_ANOTHER_NAMESPACE.to_owned(), may_live: true });
            }
            Some(user) => {
                let why =
                    format!("its server has ended; its port is that of the user {user}, who is not trusted");
                return Err(Unusable { why, may_live: false });
            }
            None => {}
        }
        match self.wanted {
            _ if !is_seen => Err(bury(candidate)),
            Wanted::Pid(pid) if of.pid.is_some_and(|written| written != pid) => {
                let why = format!("it is of process {}", of.pid.unwrap_or_default());
                Err(Unusable { why, may_live: true })
            }
            _ => Ok(()),
        }
    }
}

/// Why a file leads to no server that can be used, and whether there may be one.
struct Unusable {
    why: String,
    may_live: bool,
}

/// Removes the file of a server that cannot be seen from here, if it is ours and the server is dead.
fn bury(candidate: &Candidate) -> Unusable {
    let pid = candidate.rendezvous.pid.unwrap_or_default();
    if candidate.owner != geteuid().as_raw() {
        let why = format!("its server, process {pid}, is not to be seen from here");
        return Unusable { why, may_live: true };
    }
    let (why, may_live) = match Stale::open(&candidate.spot).map(|stale| stale.map(Stale::remove)) {
        Ok(Some(Ok(()))) => (format!("its server, process {pid}, has ended; removed"), false),
        Ok(Some(Err(error))) => {
            (format!("its server, process {pid}, has ended; it cannot be removed: {error}"), false)
        }
        Ok(None) => ("it has just been removed or replaced".to_owned(), false),
        Err(why) => (why, true),
    };
    Unusable { why, may_live }
}

/// Where the search looked for what, and what became of each candidate.
impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, below) = match self.wanted {
            Wanted::System => (self.name.clone(), "in"),
            Wanted::Any => (format!("{}*", self.name), "below"),
            _ => (self.name.clone(), "below"),
        };
        let dirs: Vec<_> = self.directories.iter().map(|dir| dir.display().to_string()).collect();
        write!(f, "looked for {shown} {below} {}", dirs.join(", "))?;
        if self.cut_short {
            write!(f, " (only among the first {MOST_NAMES} names)")?;
        }
        if self.passed.is_empty() && self.found.is_empty() && self.foreign.is_empty() {
            f.write_str(": there is no such file")?;
            match &self.wanted {
                Wanted::Pid(pid) if is_no_process(*pid) => f.write_str(", nor such a process")?,
                Wanted::Pid(pid) => {
                    if let Some(user) = other_user(*pid, geteuid().as_raw()) {
                        write!(f, " that we may see: process {pid} is of the user {user}")?;
                    }
                }
                _ => {}
            }
        }
        self.passed_over().iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// The owner of a process, if it is another user. Unless we are root, that user's directories are closed to us.
fn other_user(pid: u32, me: u32) -> Option<u32> {
    let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(user).filter(|user| me != 0 && *user != me)
}

/// Sessions lie one or two levels below a temporary directory.
const DEEPEST: usize = 5;
const MOST_NAMES: usize = 50_000;
const MOST_NAMES_AT_THE_TOP: usize = 1_000_000;
/// Most server files that are read; each keeps its directory open.
const MOST_FILES: usize = 1024;
/// Where our own user has the number of all users of other user namespaces.
const OF_ANOTHER_NAMESPACE: &str = "a process outside of this user namespace listens at its port, and its user cannot be \
    identified from here: if it is the server, use it in the user namespace in which it was started";
/// Most reasons that are reported.
const MOST_PASSED: usize = 64;

#[cfg(test)]
mod tests;
