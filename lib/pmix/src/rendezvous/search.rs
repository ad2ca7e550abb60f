//! Looks for servers: directories from the top down, a bounded number of names, never through a symbolic link to a directory.
//!
//! What was found and what was passed over, with the reason, stays in the [`Search`], so that a tool that finds nothing can
//! say where it looked. Files of servers that are dead (`grave.rs`) are removed on the way if they are ours to remove.

use std::fmt;
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use phalanx_wire::rendezvous::{self, Rendezvous};
use rustix::process::geteuid;

use super::grave::Grave;
use super::{is_no_process, is_seen, read};

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
    /// There were too many names to look at them all.
    pub cut_short: bool,
}

impl Search {
    /// Searches `directories`; for the system server only their top.
    pub fn run(wanted: Wanted, hostname: &str, directories: Vec<PathBuf>) -> Search {
        let name = match &wanted {
            Wanted::Pid(pid) => rendezvous::pid_file(hostname, *pid),
            Wanted::Nspace(nspace) => rendezvous::nspace_file(hostname, nspace),
            Wanted::System => rendezvous::system_file(hostname),
            Wanted::Any => rendezvous::session_file(hostname),
        };
        let mut search =
            Search { wanted, name, directories, found: Vec::new(), passed: Vec::new(), cut_short: false };
        let mut dated: Vec<(SystemTime, Found)> = Vec::new();
        match search.wanted {
            Wanted::System => {
                let all = search.directories.iter().map(|dir| dir.join(&search.name));
                let files = all.filter(|file| fs::symlink_metadata(file).is_ok()).collect();
                search.examine_all(files, &mut dated);
            }
            Wanted::Any => search.walk(search.directories.clone(), &mut dated),
            // Who is named is sought where it is likeliest first, and no further than where it is found.
            Wanted::Pid(_) | Wanted::Nspace(_) => {
                for dir in search.directories.clone() {
                    if dated.is_empty() {
                        search.walk(vec![dir], &mut dated);
                    }
                }
            }
        }
        // The newest is the likeliest to be meant; names decide between those of one moment.
        dated.sort_by(|(a, left), (b, right)| b.cmp(a).then_with(|| left.path.cmp(&right.path)));
        search.found = dated.into_iter().map(|(_, found)| found).collect();
        search
    }

    /// Looks at the files of the wanted name, those of the upper levels first.
    fn walk(&mut self, roots: Vec<PathBuf>, dated: &mut Vec<(SystemTime, Found)>) {
        let mut level = roots;
        let mut seen = 0;
        for _ in 0..DEEPEST {
            let (mut files, mut next) = (Vec::new(), Vec::new());
            for dir in level {
                // What we may not read cannot be meant for us.
                for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                    seen += 1;
                    match entry.file_type() {
                        Ok(kind) if kind.is_dir() => next.push(entry.path()),
                        Ok(_) if self.is_wanted(&entry) => files.push(entry.path()),
                        _ => {}
                    }
                    self.cut_short |= seen > MOST_NAMES;
                    if self.cut_short {
                        break;
                    }
                }
            }
            files.sort();
            self.examine_all(files, dated);
            let found = self.wanted != Wanted::Any && !dated.is_empty();
            if found || self.cut_short {
                return;
            }
            next.sort();
            level = next;
        }
    }

    fn examine_all(&mut self, files: Vec<PathBuf>, dated: &mut Vec<(SystemTime, Found)>) {
        for path in files {
            match self.examine(&path) {
                Ok(rendezvous) if dated.iter().any(|(_, known)| known.rendezvous.uri == rendezvous.uri) => {}
                Ok(rendezvous) => dated.push((age(&path), Found { path, rendezvous })),
                Err(why) => self.passed.push(Passed { path, why }),
            }
        }
    }

    fn is_wanted(&self, entry: &DirEntry) -> bool {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { return false };
        match self.wanted {
            Wanted::Any => name
                .strip_prefix(self.name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
            _ => name == self.name,
        }
    }

    fn examine(&self, path: &Path) -> Result<Rendezvous, String> {
        let rendezvous = read(path)?;
        match self.wanted {
            _ if !is_seen(&rendezvous) => Err(bury(path, &rendezvous)),
            Wanted::Pid(pid) if rendezvous.pid.is_some_and(|written| written != pid) => {
                Err(format!("it is of process {}", rendezvous.pid.unwrap_or_default()))
            }
            _ => Ok(rendezvous),
        }
    }
}

/// Removes the file of a server that is not to be seen from here, if it is ours and the server is dead.
fn bury(path: &Path, of: &Rendezvous) -> String {
    let pid = of.pid.unwrap_or_default();
    if !fs::symlink_metadata(path).is_ok_and(|file| file.uid() == geteuid().as_raw()) {
        return format!("its server, process {pid}, is not to be seen from here");
    }
    match Grave::open(path).map(|grave| grave.map(Grave::remove)) {
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
        if self.passed.is_empty() && self.found.is_empty() {
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
        Ok(())
    }
}

/// Whose process it is, if it is another user's, whose directories are closed to us unless we are root.
fn other_user(pid: u32, me: u32) -> Option<u32> {
    let user = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    Some(user).filter(|user| me != 0 && *user != me)
}

fn age(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Sessions lie one or two levels below a temporary directory.
const DEEPEST: usize = 5;
const MOST_NAMES: usize = 50_000;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    fn file(dir: &Path, name: &str, server: &str, address: &str, pid: u32) {
        let text = format!("{server}.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\nlocked\n");
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(name), text).unwrap();
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
        let run = |wanted| Search::run(wanted, "h", vec![top.path().to_owned()]);
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
        let search = Search::run(Wanted::Any, "h", vec![top.path().to_owned()]);
        assert_eq!(names(&search), ["new", "old"]);
    }

    #[test]
    fn the_system_server_is_only_at_the_top() {
        let top = tempfile::tempdir().unwrap();
        let me = std::process::id();
        file(&top.path().join("deep"), "pmix.sys.h", "hidden", "127.0.0.1:1", me);
        let run = || Search::run(Wanted::System, "h", vec![top.path().to_owned()]);
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
        let search = Search::run(Wanted::Any, "h", vec![top.path().to_owned()]);
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
    fn who_is_not_to_be_seen_may_live_elsewhere_and_keeps_its_file() {
        let top = tempfile::tempdir().unwrap();
        let (pid, address) = dead();
        let (ours, theirs) = (top.path().join("pmix.h.tool.1"), top.path().join("pmix.h.tool.2"));
        file(top.path(), "pmix.h.tool.1", "ours", &address, pid);
        fs::write(&theirs, format!("theirs.0;tcp4://{address}\n5.0.11\n{pid}\n0:0\nnow\n\n")).unwrap();
        let held = fs::File::options().append(true).open(&ours).unwrap();
        assert!(crate::rendezvous::grave::lock(&held));
        let run = || Search::run(Wanted::Any, "h", vec![top.path().to_owned()]);
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
