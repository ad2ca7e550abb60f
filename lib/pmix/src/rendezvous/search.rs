//! Looks for servers: directories from the top down, a bounded number of names, never through a symbolic link.
//!
//! Only what trusted users have made is entered or read (`trust.rs`): others may put what they like into `/tmp`, and it costs
//! a look at its owner. What was found and what was passed over, with the reason, stays in the [`Search`], so that a tool that
//! finds nothing can say where it looked. Files of servers that are dead (`grave.rs`) are removed on the way if they are ours
//! to remove.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx_wire::rendezvous::{self, Rendezvous};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::process::geteuid;

use super::grave::Grave;
use super::parse;
use super::seen::{all_seen, is_no_process};
use super::spot::{self, Spot};
use crate::trust::Trust;

/// Which server is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Pid(u32),
    Nspace(String),
    /// The one system server of this machine.
    System,
    /// Whichever there is.
    Any,
}

/// A server that may be alive.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub path: PathBuf,
    pub rendezvous: Rendezvous,
}

/// A file that names no server that one could try.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    pub path: PathBuf,
    pub why: String,
}

/// What a search has brought to light.
#[derive(Clone, Debug)]
pub struct Search {
    pub wanted: Wanted,
    /// The file name that was looked for, or its beginning.
    pub name: String,
    pub directories: Vec<PathBuf>,
    /// The newest first; each server once.
    pub found: Vec<Found>,
    pub passed: Vec<Passed>,
    /// Files of users who are not trusted: one of each user, and how many there are.
    pub foreign: BTreeMap<u32, (PathBuf, usize)>,
    /// There were too many names to look at them all.
    pub cut_short: bool,
    trust: Trust,
    /// How many names have been looked at below the directories that were named.
    seen: usize,
    /// What may be a server's, until it is known which of them live.
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
    /// How many of the names of the path lead here from a directory that was named.
    depth: usize,
}

impl Search {
    /// Searches `directories`; for the system server only their top.
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
            // Who is named is sought where it is likeliest first, and no further than where it is found.
            Wanted::Pid(_) | Wanted::Nspace(_) => {
                for dir in search.directories.clone() {
                    if found.is_empty() {
                        search.walk(vec![dir], &mut found);
                    }
                }
            }
        }
        // The newest is the likeliest to be meant; names decide between those of one moment.
        found.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.spot.path().cmp(b.spot.path())));
        let found = found.into_iter();
        search.found = found
            .map(|found| Found { path: found.spot.path().to_owned(), rendezvous: found.rendezvous })
            .collect();
        search
    }

    /// Looks at the files of the wanted name, those of the upper levels first.
    fn walk(&mut self, roots: Vec<PathBuf>, found: &mut Vec<Candidate>) {
        let mut level: Vec<Stop> = roots.into_iter().map(|path| Stop { path, depth: 0 }).collect();
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for stop in level {
                // What we may not read cannot be meant for us.
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

    /// Whoever has named a directory may have named a link. Below it none is followed, and only directories of trusted users
    /// are entered.
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
        // Into a directory that was named anybody may have put what he likes, to hide what we look for.
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
                // Some file systems do not say what it is.
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

    /// Reads what a file says, if it is there and counts.
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
            Err(why) => self.pass(spot.path(), why),
        }
    }

    fn pass_foreign(&mut self, owner: u32, spot: &Spot) {
        if let Some((_, count)) = self.foreign.get_mut(&owner) {
            *count += 1;
        } else if self.foreign.len() < MOST_PASSED {
            self.foreign.insert(owner, (spot.path().to_owned(), 1));
        }
    }

    fn pass(&mut self, path: &Path, why: String) {
        if self.passed.len() < MOST_PASSED {
            self.passed.push(Passed { path: path.to_owned(), why });
        }
    }

    fn examine_all(&mut self, found: &mut Vec<Candidate>) {
        let read = std::mem::take(&mut self.read);
        let seen = all_seen(&read.iter().map(|candidate| &candidate.rendezvous).collect::<Vec<_>>());
        for (candidate, is_seen) in read.into_iter().zip(seen) {
            match self.examine(&candidate, is_seen) {
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

    fn examine(&self, candidate: &Candidate, is_seen: bool) -> Result<(), String> {
        let of = &candidate.rendezvous;
        match self.wanted {
            _ if !is_seen => Err(bury(candidate)),
            Wanted::Pid(pid) if of.pid.is_some_and(|written| written != pid) => {
                Err(format!("it is of process {}", of.pid.unwrap_or_default()))
            }
            _ => Ok(()),
        }
    }
}

/// Removes the file of a server that is not to be seen from here, if it is ours and the server is dead.
fn bury(candidate: &Candidate) -> String {
    let pid = candidate.rendezvous.pid.unwrap_or_default();
    if candidate.owner != geteuid().as_raw() {
        return format!("its server, process {pid}, is not to be seen from here");
    }
    match Grave::open(&candidate.spot).map(|grave| grave.map(Grave::remove)) {
        Ok(Some(Ok(()))) => format!("its server, process {pid}, has ended; removed"),
        Ok(Some(Err(error))) => {
            format!("its server, process {pid}, has ended; it cannot be removed: {error}")
        }
        Ok(None) => "it has just been removed or replaced".to_owned(),
        Err(why) => why,
    }
}

/// Where was looked for what, and what became of each candidate.
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
        for Passed { path, why } in &self.passed {
            write!(f, "\n  {}: {why}", path.display())?;
        }
        for (user, (path, count)) in &self.foreign {
            write!(f, "\n  {}", path.display())?;
            match count - 1 {
                0 => write!(f, ": it belongs")?,
                more => write!(f, " and {more} more: they belong")?,
            }
            write!(f, " to the user {user}, who is not trusted")?;
        }
        Ok(())
    }
}

/// Whose process it is, if it is another user's, whose directories are closed to us unless we are root.
fn other_user(pid: u32, me: u32) -> Option<u32> {
    let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(user).filter(|user| me != 0 && *user != me)
}

/// Sessions lie one or two levels below a temporary directory.
const DEEPEST: usize = 5;
const MOST_NAMES: usize = 50_000;
const MOST_NAMES_AT_THE_TOP: usize = 1_000_000;
/// Files of servers that are read, each in a directory that is held open.
const MOST_FILES: usize = 1024;
/// Reasons that are told.
const MOST_PASSED: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant, SystemTime};

    use super::*;

    fn file(dir: &Path, name: &str, server: &str, address: &str, pid: u32) {
        let text = format!("{server}.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\nlocked\n");
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }

    fn search(wanted: Wanted, top: &Path) -> Search {
        Search::run(wanted, "h", vec![top.to_owned()], &Trust::default())
    }

    fn names(search: &Search) -> Vec<&str> {
        search.found.iter().map(|found| found.rendezvous.uri.server.nspace.as_str()).collect()
    }

    fn dead() -> (u32, String) {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        (child.id(), gone.to_string())
    }

    #[test]
    fn servers_are_found_by_pid_and_namespace_in_whatever_directory() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        file(&top.path().join("a/b"), "pmix.h.tool.77", "one", "127.0.0.1:1", me);
        file(&top.path().join("a/b"), &format!("pmix.h.tool.{me}"), "one", "127.0.0.1:1", me);
        file(&top.path().join("c"), "pmix.h.tool.two", "two", "127.0.0.1:2", me);
        file(&top.path().join("c"), "pmix.h.tool.two.more", "three", "127.0.0.1:3", me);
        let run = |wanted| search(wanted, top.path());
        assert_eq!(names(&run(Wanted::Pid(me))), ["one"]);
        assert_eq!(names(&run(Wanted::Nspace("two".into()))), ["two"]);
        let other = run(Wanted::Pid(77));
        assert_eq!(names(&other), [""; 0]);
        assert!(other.to_string().contains(&format!("it is of process {me}")), "{other}");
        let none = run(Wanted::Nspace("four".into())).to_string();
        assert!(none.contains("pmix.h.tool.four") && none.contains("there is no such file"), "{none}");
    }

    #[test]
    fn processes_of_other_users_are_told() {
        let (pid, me) = (std::process::id(), geteuid().as_raw());
        assert_eq!(other_user(pid, me), None);
        assert_eq!(other_user(pid, me + 1), Some(me));
        assert_eq!(other_user(pid, 0), None);
        assert_eq!(other_user(dead().0, me + 1), None);
    }

    #[test]
    fn each_server_is_found_once_and_the_newest_first() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let old = SystemTime::now() - std::time::Duration::from_secs(100);
        for name in ["pmix.h.tool", "pmix.h.tool.9", "pmix.h.tool.x"] {
            file(&top.path().join("z"), name, "old", "127.0.0.1:1", me);
            let file = fs::File::options().append(true).open(top.path().join("z").join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        file(top.path(), "pmix.h.tool.10", "new", "127.0.0.1:2", me);
        file(top.path(), "pmix.h.toolbox", "no", "127.0.0.1:3", me);
        file(top.path(), "pmix.other.tool", "no", "127.0.0.1:4", me);
        let search = self::search(Wanted::Any, top.path());
        assert_eq!(names(&search), ["new", "old"]);
    }

    #[test]
    fn the_system_server_is_only_at_the_top() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        file(&top.path().join("deep"), "pmix.sys.h", "hidden", "127.0.0.1:1", me);
        let run = || search(Wanted::System, top.path());
        assert_eq!(names(&run()), [""; 0]);
        file(top.path(), "pmix.sys.h", "sys", "127.0.0.1:1", me);
        assert_eq!(names(&run()), ["sys"]);
    }

    #[test]
    fn the_dead_are_skipped_and_buried_and_the_unreadable_are_named() {
        let top = tempfile::tempdir().unwrap();
        let (pid, address) = dead();
        file(top.path(), "pmix.h.tool.1", "dead", &address, pid);
        fs::write(top.path().join("pmix.h.tool.2"), "").unwrap();
        fs::write(top.path().join("pmix.h.tool.3"), "nonsense").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            top.path().join("pmix.h.tool.4"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let search = self::search(Wanted::Any, top.path());
        assert_eq!(names(&search), [""; 0]);
        let said = search.to_string();
        for expected in [
            &format!("pmix.h.tool.1: its server, process {pid}, has ended; removed"),
            "pmix.h.tool.2: it is empty",
            "pmix.h.tool.3: `nonsense` is not a server's address",
            "pmix.h.tool.4: it is not a regular file",
        ] {
            assert!(said.contains(expected), "{said}");
        }
        assert!(!top.path().join("pmix.h.tool.1").exists());
    }

    #[test]
    fn nothing_that_strangers_have_made_counts() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        for n in 0..200 {
            file(top.path(), &format!("pmix.h.tool.{n}"), "foreign", "127.0.0.1:1", me);
        }
        file(&top.path().join("theirs"), "pmix.h.tool.a", "inside", "127.0.0.1:2", me);
        let run = |trust: &Trust| Search::run(Wanted::Any, "h", vec![top.path().to_owned()], trust);
        let search = run(&Trust::nobody());
        assert_eq!(names(&search), [""; 0]);
        let said = search.to_string();
        assert!(said.contains("and 199 more: they belong to the user"), "{said}");
        assert_eq!(names(&run(&Trust::default())).len(), 2);
    }

    #[test]
    fn files_that_everybody_can_write_and_links_do_not_count() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let (open, ours) = (top.path().join("pmix.h.tool.1"), top.path().join("ours"));
        file(top.path(), "pmix.h.tool.1", "open", "127.0.0.1:3", me);
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        file(&ours, "pmix.h.tool.2", "ours", "127.0.0.1:2", me);
        std::os::unix::fs::symlink(&ours, top.path().join("link")).unwrap();
        std::os::unix::fs::symlink(ours.join("pmix.h.tool.2"), top.path().join("pmix.h.tool.3")).unwrap();
        let search = self::search(Wanted::Any, top.path());
        assert_eq!(names(&search), ["ours"]);
        assert_eq!(search.found[0].path, ours.join("pmix.h.tool.2"));
        let said = search.to_string();
        assert!(said.contains("tool.1: everybody can write to it"), "{said}");
        assert!(said.contains("tool.3: it is a symbolic link"), "{said}");
    }

    #[test]
    fn who_is_not_to_be_seen_may_live_elsewhere_and_keeps_its_file() {
        let top = tempfile::tempdir().unwrap();
        let (pid, address) = dead();
        let (ours, theirs) = (top.path().join("pmix.h.tool.1"), top.path().join("pmix.h.tool.2"));
        file(top.path(), "pmix.h.tool.1", "ours", &address, pid);
        fs::write(&theirs, format!("theirs.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\n")).unwrap();
        let held = fs::File::options().append(true).open(&ours).unwrap();
        assert!(crate::rendezvous::grave::lock(&held));
        let run = || search(Wanted::Any, top.path());
        let search = run();
        assert_eq!(names(&search), [""; 0]);
        let said = search.to_string();
        for expected in [
            format!("tool.1: server ours:0, pid {pid} is alive, though not to be seen from here"),
            format!("tool.2: server theirs:0, pid {pid} is not to be seen from here, but may live"),
        ] {
            assert!(said.contains(&expected), "{said}");
        }
        drop(held);
        // A child that another test has just forked may still have it for a moment.
        let begun = Instant::now();
        while ours.exists() {
            let search = run();
            assert!(begun.elapsed() < Duration::from_secs(60), "{search}");
        }
        assert!(theirs.exists());
    }
}
