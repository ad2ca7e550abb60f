//! Jobs that go on without their terminal: what `px run --detach` writes is kept in files until `px attach` has shown it.
//!
//! The files are those of the launcher's standard output and error, as they would have been shown, in a directory that only their
//! owner can enter. A record says whose they are, a second one how the job ended. Nothing is lost, whatever the size, and no rank
//! waits for a reader. What nobody comes for is removed in the end. Which bytes are which rank's stands beside them (`ranks.rs`).

mod ranks;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use phalanx_dvm::Ranges;
use phalanx_wire::Nspace;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::failure::{EXIT_FAILURE, EXIT_SIGPIPE, Failure};
use crate::resolve::Run;
pub(crate) use ranks::Noted;
use ranks::Reader;

/// The files of one job, where they are written.
#[derive(Debug)]
pub(crate) struct Keep {
    place: Place,
    command: String,
    /// Held as long as this process lives. The kernel lets go of it, also if the process is killed, and even if nobody asks what
    /// became of it. Ranks do not inherit it.
    _alive: File,
    /// The output and error of whoever has started us, until they are let go.
    waiting: RefCell<Option<(File, File)>>,
    /// Why they cannot be.
    trouble: RefCell<Option<Failure>>,
    /// For whoever writes to standard output and error.
    noted: RefCell<Option<[Noted; 2]>>,
}

/// The files of one launcher.
#[derive(Clone, Debug)]
struct Place {
    dir: PathBuf,
    pid: u32,
}

impl Keep {
    /// Makes the files, and puts them in the place of our standard output and error.
    pub(crate) fn open(run: &Run) -> Result<Keep, Failure> {
        let place = Place { dir: directory(), pid: std::process::id() };
        let cannot = |e: io::Error| {
            Failure::new(format!("cannot keep output in '{}'", place.dir.display())).because(e)
        };
        private(&place.dir).map_err(cannot)?;
        sweep(&place.dir);
        let own = |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(cannot);
        let waiting = (
            own(rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).map_err(io::Error::from))?,
            own(rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3).map_err(io::Error::from))?,
        );
        let alive = place.hold().map_err(cannot)?;
        let (out, err) = (place.make("out").map_err(cannot)?, place.make("err").map_err(cannot)?);
        rustix::stdio::dup2_stdout(&out).map_err(|e| cannot(e.into()))?;
        rustix::stdio::dup2_stderr(&err).map_err(|e| cannot(e.into()))?;
        let noted = match run.output.file_only {
            true => None,
            false => {
                let noted = |end| place.make(end).map(Noted::new).map_err(cannot);
                Some([noted(OUT_RANKS)?, noted(ERR_RANKS)?])
            }
        };
        let words = run.request.apps.iter().flat_map(|app| &app.argv).map(ToString::to_string);
        let command = words.collect::<Vec<_>>().join(" ");
        let (waiting, noted) = (RefCell::new(Some(waiting)), RefCell::new(noted));
        Ok(Keep { place, command, _alive: alive, waiting, trouble: RefCell::new(None), noted })
    }

    /// Where is to be noted which bytes of standard output and of standard error are which rank's, if they have any. Once.
    pub(crate) fn take_noted(&self) -> Option<[Noted; 2]> {
        self.noted.take()
    }

    /// The job runs, in so many ranks: says its name to whoever has started us. Only the first time counts. The error is told by
    /// [`Keep::finish`]: nobody would find the job, so it should end.
    pub(crate) fn let_go(&self, nspace: &Nspace, ranks: usize, as_json: bool) -> Result<(), ()> {
        if self.waiting.borrow().is_none() || self.trouble.borrow().is_some() {
            return Ok(());
        }
        self.hand_over(nspace, ranks, as_json).map_err(|error| drop(self.trouble.replace(Some(error))))
    }

    fn hand_over(&self, nspace: &Nspace, ranks: usize, as_json: bool) -> Result<(), Failure> {
        let name = nspace.as_str();
        let record =
            json!({ "nspace": name, "ranks": ranks, "pid": self.place.pid, "command": self.command });
        let cannot = |e: io::Error| {
            Failure::new(format!("cannot keep what is known of the job in '{}'", self.place.dir.display()))
                .because(e)
        };
        self.place.record("job", &record).map_err(cannot)?;
        let Some((mut stdout, _)) = self.waiting.take() else { return Ok(()) };
        let line = match as_json {
            true => {
                json!({ "type": "detached", "nspace": nspace.as_str(), "pid": self.place.pid }).to_string()
            }
            false => nspace.to_string(),
        };
        writeln!(stdout, "{line}").map_err(|e| Failure::new("cannot let go of the terminal").because(e))
    }

    /// The job has ended. If it never ran, whoever has started us still waits, and is told why.
    pub(crate) fn finish(self, code: &Result<u8, Failure>, as_json: bool) {
        let exit_code = code.as_ref().map_or_else(|failure| failure.exit_code, |code| *code);
        if let Some((stdout, stderr)) = self.waiting.take() {
            let _ = rustix::stdio::dup2_stdout(&stdout);
            let _ = rustix::stdio::dup2_stderr(&stderr);
            let mut said = stderr;
            if let Ok(text) = fs::read(self.place.file("err")) {
                let _ = said.write_all(&text);
            }
            if let Some(trouble) = self.trouble.take() {
                crate::render::hint::say(&crate::render::hint::failure(&trouble, as_json));
            }
            return self.place.remove();
        }
        if let Err(failure) = code {
            crate::render::hint::say(&crate::render::hint::failure(failure, as_json));
        }
        if let Err(error) = self.place.record("end", &json!({ "exit_code": exit_code })) {
            tracing::warn!(%error, "cannot tell how the job has ended");
        }
    }
}

/// A job that was detached, where it is read.
#[derive(Debug)]
pub(crate) struct Kept {
    place: Place,
    /// How many ranks the job has. Of jobs in other launchers' DVMs this is not known.
    pub(crate) ranks: Option<u32>,
}

/// The job of this name, if its output is kept here.
pub(crate) fn find(nspace: &str) -> Option<Kept> {
    let dir = directory();
    let is_own = fs::symlink_metadata(&dir).is_ok_and(|found| is_private(&found));
    if !is_own {
        return None;
    }
    sweep(&dir);
    let files = fs::read_dir(&dir).ok()?.flatten().take(MOST_NAMES);
    let mut jobs =
        files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".job")?.parse::<u32>().ok());
    let place = |pid| Place { dir: dir.clone(), pid };
    jobs.find_map(|pid| {
        let record = place(pid).read("job").filter(|record| record["nspace"] == nspace)?;
        let ranks = record["ranks"].as_u64().and_then(|ranks| u32::try_from(ranks).ok());
        Some(Kept { place: place(pid), ranks: ranks.filter(|ranks| *ranks > 0) })
    })
}

impl Kept {
    /// Whether single ranks can be shown.
    pub(crate) fn tells_ranks(&self) -> bool {
        [OUT_RANKS, ERR_RANKS].iter().all(|end| self.place.file(end).exists())
    }

    /// Shows what is kept, of all ranks or of `only` these, from the start or from now on, until the job has ended. The result is its
    /// exit code. What has been shown to its end is removed, if it was all.
    pub(crate) fn show(&self, since_start: bool, only: Option<&Ranges>) -> Result<u8, Failure> {
        let cannot = |e: io::Error| Failure::new("cannot read what is kept of the job").because(e);
        let over = self.place.read("end").is_some();
        let reader = |end, ranks| -> io::Result<Reader> {
            let file = |end| File::open(self.place.file(end));
            let only = only.map(|only| Ok::<_, io::Error>((only.clone(), file(ranks)?))).transpose()?;
            let mut reader = Reader::new(file(end)?, only);
            if !since_start && !over {
                reader.skip()?;
            }
            Ok(reader)
        };
        let mut out = reader("out", OUT_RANKS).map_err(cannot)?;
        let mut err = reader("err", ERR_RANKS).map_err(cannot)?;
        let shown = || {
            if only.is_none() {
                self.place.remove();
            }
        };
        loop {
            // In this order: whoever has ended has said so before, and what was written before the end is there then.
            let alive = self.place.is_alive();
            let end = self.place.read("end");
            let copied = out
                .copy(&mut io::stdout().lock())
                .and_then(|some| Ok(some | err.copy(&mut io::stderr().lock())?));
            let some = match copied {
                // Whoever reads it has enough. The rest stays for others.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(EXIT_SIGPIPE),
                copied => copied.map_err(cannot)?,
            };
            match end {
                _ if some => {}
                Some(end) => {
                    shown();
                    let code = end["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok());
                    return Ok(code.unwrap_or(EXIT_FAILURE));
                }
                None if !alive => {
                    shown();
                    return Err(Failure::new(format!(
                        "px, pid {}, was killed while it ran the job",
                        self.place.pid
                    )));
                }
                None => thread::sleep(PAUSE),
            }
        }
    }

    /// The launcher.
    pub(crate) fn pid(&self) -> u32 {
        self.place.pid
    }
}

impl Place {
    fn file(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}.{end}", self.pid))
    }

    fn make(&self, end: &str) -> io::Result<File> {
        let path = self.file(end);
        // Of a launcher that had our pid.
        let _ = fs::remove_file(&path);
        OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
    }

    fn record(&self, end: &str, record: &Value) -> io::Result<()> {
        let draft = self.file("draft");
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(record.to_string().as_bytes())?;
        fs::rename(draft, self.file(end))
    }

    fn read(&self, end: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.file(end)).ok()?).ok()
    }

    /// The file that the launcher keeps locked.
    fn hold(&self) -> io::Result<File> {
        let file = self.make("alive")?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    }

    fn is_alive(&self) -> bool {
        let file = File::open(self.file("alive"));
        file.is_ok_and(|file| {
            flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
        })
    }

    fn remove(&self) {
        for end in ["out", OUT_RANKS, "err", ERR_RANKS, "job", "end", "draft", "alive"] {
            let _ = fs::remove_file(self.file(end));
        }
        // Only the last one can.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Removes what jobs have left whose launchers are dead and that nobody has come for.
fn sweep(dir: &Path) {
    let mut last_written = BTreeMap::<u32, SystemTime>::new();
    for file in fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_NAMES) {
        let name = file.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('.')?.0.parse().ok());
        if let (Some(pid), Ok(written)) = (pid, file.metadata().and_then(|file| file.modified())) {
            let last = last_written.entry(pid).or_insert(written);
            *last = written.max(*last);
        }
    }
    for (pid, written) in last_written {
        let place = Place { dir: dir.to_owned(), pid };
        let is_old = SystemTime::now().duration_since(written).is_ok_and(|age| age > KEPT);
        if is_old && !place.is_alive() {
            place.remove();
        }
    }
}

fn directory() -> PathBuf {
    let tmpdir = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let tmpdir = tmpdir.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    tmpdir.join(format!("px.{}.detached", geteuid().as_raw()))
}

/// A directory that nobody else can look into, made if it is not there.
fn private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    match is_private(&fs::symlink_metadata(dir)?) {
        true => Ok(()),
        false => Err(io::Error::other("it is not a directory that only you can enter")),
    }
}

fn is_private(found: &fs::Metadata) -> bool {
    found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0
}

/// How long the files of an ended job wait for somebody: a week.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How soon output is seen.
const PAUSE: Duration = Duration::from_millis(20);
const OUT_RANKS: &str = "out.ranks";
const ERR_RANKS: &str = "err.ranks";
const MOST_NAMES: usize = 10_000;
