//! Jobs that go on without their terminal: the output of `px run --detach` is kept in files until `px attach` has shown it.
//!
//! The files hold the launcher's standard output and error, as they would have been shown. They lie in a directory that only their owner can enter,
//! and that is opened once (`place.rs`). One record names the job, a second one how it ended; `ranks.rs` records which bytes are from which rank. No
//! rank waits for a reader, and nothing is lost as long as there is room. Bytes without room are counted, and the job goes on. Files that are never
//! fetched are removed in the end.

mod place;
mod ranks;

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use phalanx_dvm::Ranges;
use phalanx_wire::Nspace;
use serde_json::{Value, json};

use crate::args::tools::ServerArgs;
use crate::failure::{EXIT_FAILURE, EXIT_SIGPIPE, Failure};
use crate::render::hint;
use crate::resolve::Run;
use place::{LauncherDir, Reserved, Store};
pub(crate) use ranks::Noted;
use ranks::{Reader, Uncopied};

/// The files of one job, on the side of their writer.
#[derive(Debug)]
pub(crate) struct Keep {
    /// The directory of all these files.
    dir: PathBuf,
    place: LauncherDir,
    command: String,
    /// Held as long as this process lives. The kernel releases it even if the process is killed and never reaped. Ranks do not inherit it.
    _alive: File,
    /// The output and error of the process that started us, until it is released.
    waiting: RefCell<Option<(File, File)>>,
    /// Why it cannot be released.
    trouble: RefCell<Option<Failure>>,
    /// For the writers of standard output and error.
    noted: RefCell<Option<[Noted; 2]>>,
    /// Output that could not be kept, if any.
    missing: RefCell<Option<Missing>>,
    /// Space for the record of the job's end.
    end: Reserved,
}

#[derive(Debug)]
struct Missing {
    because: String,
    bytes: u64,
}

impl Keep {
    /// Makes the files, and redirects our standard output and error to them.
    pub(crate) fn open(run: &Run) -> Result<Keep, Failure> {
        let (store, remark) = Store::choose()?;
        if let Some(remark) = remark.filter(|_| !run.voice.quiet) {
            hint::say(&hint::note(&remark, run.voice.json));
        }
        store.sweep();
        let dir = store.tmpdir().to_owned();
        let cannot = |e: io::Error| cannot_keep(&dir, e);
        let place = store.new_place(std::process::id()).map_err(cannot)?;
        let own = |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(cannot);
        let waiting = (
            own(rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).map_err(io::Error::from))?,
            own(rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3).map_err(io::Error::from))?,
        );
        let made =
            Made::new(&place, !run.output.file_only).inspect_err(|_| place.remove()).map_err(cannot)?;
        let Made { alive, out, err, noted, end } = made;
        // Only now: earlier errors go to the process that started us.
        rustix::stdio::dup2_stdout(&out).map_err(|e| cannot(e.into()))?;
        rustix::stdio::dup2_stderr(&err).map_err(|e| cannot(e.into()))?;
        let words = run.request.apps.iter().flat_map(|app| &app.argv).map(ToString::to_string);
        let command = words.collect::<Vec<_>>().join(" ");
        let (waiting, noted) = (RefCell::new(Some(waiting)), RefCell::new(noted));
        let (trouble, missing) = (RefCell::default(), RefCell::default());
        Ok(Keep { dir, place, command, _alive: alive, waiting, trouble, noted, missing, end })
    }

    /// Output cannot be kept any longer. The first reason is recorded.
    pub(crate) fn cannot_go_on(&self, error: &io::Error) {
        self.missing.borrow_mut().get_or_insert_with(|| Missing { because: error.to_string(), bytes: 0 });
    }

    /// Records how many bytes were not kept in the end.
    pub(crate) fn misses(&self, bytes: u64) {
        if let Some(missing) = &mut *self.missing.borrow_mut() {
            missing.bytes = bytes;
        }
    }

    /// Where to record the ranks of bytes of standard output and error, if they are kept. Returned once.
    pub(crate) fn take_noted(&self) -> Option<[Noted; 2]> {
        self.noted.take()
    }

    /// The job runs, with this many ranks: prints its name for the process that started us. `server`: the address of its server, if that is not in
    /// this process. Only the first call counts. [`Keep::finish`] reports an error: without the name the job could not be found, so it should end.
    pub(crate) fn let_go(
        &self,
        nspace: &Nspace,
        ranks: usize,
        server: Option<String>,
        as_json: bool,
    ) -> Result<(), ()> {
        if self.waiting.borrow().is_none() || self.trouble.borrow().is_some() {
            return Ok(());
        }
        let handed_over = self.hand_over(nspace, ranks, server, as_json);
        handed_over.map_err(|error| drop(self.trouble.replace(Some(error))))
    }

    fn hand_over(
        &self,
        nspace: &Nspace,
        ranks: usize,
        server: Option<String>,
        as_json: bool,
    ) -> Result<(), Failure> {
        let record = json!({
            "nspace": nspace.as_str(),
            "ranks": ranks,
            "pid": self.place.pid(),
            "server": server,
            "command": self.command,
        });
        let cannot = |e: io::Error| {
            Failure::new(format!("cannot keep what is known of the job in '{}'", self.dir.display()))
                .because(e)
        };
        self.place.record("job", &record).map_err(cannot)?;
        let Some((mut stdout, _)) = self.waiting.take() else { return Ok(()) };
        let line = match as_json {
            true => {
                json!({ "type": "detached", "nspace": nspace.as_str(), "pid": self.place.pid() }).to_string()
            }
            false => nspace.to_string(),
        };
        writeln!(stdout, "{line}").map_err(|e| Failure::new("cannot let go of the terminal").because(e))
    }

    /// The job has ended. If it never ran, the process that started us still waits, and gets the reason.
    pub(crate) fn finish(self, code: &Result<u8, Failure>, as_json: bool) {
        let exit_code = code.as_ref().map_or_else(|failure| failure.exit_code, |code| *code);
        if let Some((stdout, stderr)) = self.waiting.take() {
            let _ = rustix::stdio::dup2_stdout(&stdout);
            let _ = rustix::stdio::dup2_stderr(&stderr);
            let mut said = stderr;
            let mut text = Vec::new();
            if self.place.open("err").and_then(|mut file| file.read_to_end(&mut text)).is_ok() {
                let _ = said.write_all(&text);
            }
            let unkept = self.missing.take().map(|missing| cannot_keep(&self.dir, missing.because));
            for trouble in self.trouble.take().into_iter().chain(unkept) {
                hint::say(&hint::failure(&trouble, as_json));
            }
            return self.place.remove();
        }
        if let Err(failure) = code {
            hint::say(&hint::failure(failure, as_json));
        }
        let mut record = json!({ "exit_code": exit_code });
        if let Some(missing) = self.missing.take() {
            record["missing"] = missing.bytes.into();
            record["because"] = cannot_keep(&self.dir, missing.because).to_string().into();
        }
        if let Err(error) = self.place.record_reserved(self.end, &record) {
            tracing::warn!(%error, "cannot tell how the job has ended");
        }
    }
}

/// Everything that one job needs, made at once.
struct Made {
    alive: File,
    out: File,
    err: File,
    noted: Option<[Noted; 2]>,
    end: Reserved,
}

impl Made {
    fn new(place: &LauncherDir, is_shown: bool) -> io::Result<Made> {
        let (alive, out, err) = (place.hold()?, place.make("out")?, place.make("err")?);
        let noted = |end| place.make(end).map(Noted::new);
        let noted = match is_shown {
            true => Some([noted(OUT_RANKS)?, noted(ERR_RANKS)?]),
            false => None,
        };
        Ok(Made { alive, out, err, noted, end: place.reserve("end")? })
    }
}

/// A detached job, on the side of its reader.
#[derive(Debug)]
pub(crate) struct Kept {
    place: LauncherDir,
    /// How many ranks the job has. Not known for jobs in other launchers' DVMs.
    pub(crate) ranks: Option<u32>,
    /// The address of the job's server. None: it is the launcher.
    server: Option<String>,
}

/// The job of this name, if its output is kept here.
pub(crate) fn find(nspace: &str) -> Option<Kept> {
    let stores = Store::all();
    stores.iter().for_each(Store::sweep);
    let places = stores.iter().flat_map(Store::jobs);
    let found = places.filter_map(|(begun, place)| {
        let record = place.read("job").filter(|record| record["nspace"] == nspace)?;
        let ranks = record["ranks"].as_u64().and_then(|ranks| u32::try_from(ranks).ok());
        let server = record["server"].as_str().map(str::to_owned);
        Some((begun, Kept { place, ranks: ranks.filter(|ranks| *ranks > 0), server }))
    });
    // A launcher with the pid of an earlier one may give its job the same name: then the later job is meant.
    let latest = found.max_by_key(|(begun, kept)| (kept.place.is_alive(), *begun));
    latest.map(|(_, kept)| kept)
}

impl Kept {
    /// Whether single ranks can be shown.
    pub(crate) fn tells_ranks(&self) -> bool {
        [OUT_RANKS, ERR_RANKS].iter().all(|end| self.place.has(end))
    }

    /// Shows the kept output, of all ranks or of `only` these, from the start or from now on, until the job has ended. Returns its exit code. Removes
    /// the files if everything was shown to the end.
    pub(crate) fn show(
        &self,
        since_start: bool,
        only: Option<&Ranges>,
        as_json: bool,
    ) -> Result<u8, Failure> {
        let cannot = |e: io::Error| Failure::new("cannot read what is kept of the job").because(e);
        let over = self.place.read("end").is_some();
        let reader = |end, ranks| -> io::Result<Reader> {
            let file = |end| self.place.open(end);
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
            // In this order: a launcher records its end before it dies, and everything it wrote before the end is visible then.
            let alive = self.place.is_alive();
            let end = self.place.read("end");
            let copied = out
                .copy(&mut io::stdout().lock())
                .and_then(|some| Ok(some | err.copy(&mut io::stderr().lock())?));
            let some = match copied {
                // The reader has enough. The rest stays for others.
                Err(Uncopied::Unwritten(error)) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(EXIT_SIGPIPE);
                }
                Err(Uncopied::Unwritten(error)) => {
                    return Err(Failure::new("cannot write output").because(error));
                }
                Err(Uncopied::Unread(error)) => return Err(cannot(error)),
                Ok(some) => some,
            };
            match end {
                _ if some => {}
                Some(end) => {
                    shown();
                    if let Some(text) = missing(&end) {
                        hint::say(&hint::note(&text, as_json));
                    }
                    return Ok(exit_code(&end));
                }
                None if !alive => {
                    shown();
                    return Err(self.killed());
                }
                None => thread::sleep(PAUSE),
            }
        }
    }

    /// The exit code, once the job has ended.
    pub(crate) fn ended(&self) -> Result<Option<u8>, Failure> {
        // In this order, as above.
        let alive = self.place.is_alive();
        match self.place.read("end") {
            Some(end) => Ok(Some(exit_code(&end))),
            None if alive => Ok(None),
            None => Err(self.killed()),
        }
    }

    fn killed(&self) -> Failure {
        Failure::new(format!("px, pid {}, was killed while it ran the job", self.place.pid()))
    }

    /// The job's server, as the options of a command would name it.
    pub(crate) fn server(&self, options: &ServerArgs) -> ServerArgs {
        let pid = self.server.is_none().then(|| self.place.pid());
        ServerArgs { pid, uri: self.server.clone(), ..options.clone() }
    }

    /// Whether the job has ended, or its launcher, or does within `patience`.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while matches!(self.ended(), Ok(None)) {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }
}

fn exit_code(end: &Value) -> u8 {
    end["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_FAILURE)
}

/// A message on output that was not kept, from the end's record.
fn missing(end: &Value) -> Option<String> {
    let (bytes, because) = (end["missing"].as_u64()?, end["because"].as_str()?);
    Some(format!("the last {bytes} bytes of the job's output are missing: {because}"))
}

fn cannot_keep(dir: &Path, because: impl fmt::Display) -> Failure {
    Failure::new(format!("cannot keep output in '{}'", dir.display())).because(because)
}

/// How often the files are checked for new output.
const PAUSE: Duration = Duration::from_millis(20);
const OUT_RANKS: &str = "out.ranks";
const ERR_RANKS: &str = "err.ranks";
