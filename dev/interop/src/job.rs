//! Starts `px` as a user does, under a deadline.
//!
//! Each job gets a temporary directory of its own as `TMPDIR` and a marking variable in its environment, so that parallel
//! tests do not see each other's leftovers. The result of the job is returned as an [`Outcome`].

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use phalanx_cluster::{Host, NEEDS_ROOT, workspace};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::program::locked;
use crate::watch::{PATIENCE, eventually, host, rss_kib, survivors};
use crate::{Ended, Library, Outcome};

/// Receives output, piece by piece.
type Take = Box<dyn FnMut(&[u8]) + Send>;
/// Writes input.
type Feed = Box<dyn FnOnce(ChildStdin) + Send>;

/// One command under test. Created by [`px`] or [`Job::new`].
pub struct Job {
    command: Command,
    input: Feed,
    reader: Option<Take>,
    deadline: Duration,
    mark: String,
    tmpdir: TempDir,
    /// Processes that it starts are meant to survive it.
    is_outlived: bool,
}

/// `px run` with these arguments.
pub fn px<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Job {
    Job::new(px_binary()).arg("run").args(arguments)
}

impl Job {
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let job = Self::of(Command::new(program));
        let tmpdir = job.tmpdir.path().to_owned();
        job.env("TMPDIR", tmpdir)
    }

    /// On a host of a cluster, which has its own `/tmp`.
    pub fn on(host: &Host, program: impl AsRef<OsStr>) -> Self {
        Self::of(host.command(program))
    }

    fn of(mut command: Command) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("PHALANX_TEST_JOB={}-{number}", std::process::id());
        let tmpdir = new_directory();
        let (name, value) = mark.split_once('=').unwrap_or_default();
        command.env(name, value);
        let deadline = Duration::from_secs(300);
        Self { command, input: Box::new(drop), reader: None, deadline, mark, tmpdir, is_outlived: false }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the variables that the programs of a library need.
    pub fn with(mut self, library: Library) -> Self {
        self.command.envs(library.environment(self.tmpdir.path()));
        self
    }

    pub fn input(self, bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        // A program that does not read its input must not block us.
        self.feeding(move |mut pipe| drop(pipe.write_all(&bytes)))
    }

    /// `feed` writes its standard input, on a thread of its own.
    pub fn feeding(mut self, feed: impl FnOnce(ChildStdin) + Send + 'static) -> Self {
        self.input = Box::new(feed);
        self
    }

    /// `take` gets its standard output piece by piece, instead of the outcome.
    pub fn reading(mut self, take: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.reader = Some(Box::new(take));
        self
    }

    pub fn dir(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    pub fn deadline(mut self, seconds: u64) -> Self {
        self.deadline = Duration::from_secs(seconds);
        self
    }

    /// Processes that it starts survive it: the outcome does not wait for their end.
    pub fn outlived(mut self) -> Self {
        self.is_outlived = true;
        self
    }

    /// The temporary directory of the job. It lives as long as the job, or as its [`Running`].
    pub fn tmpdir(&self) -> &Path {
        self.tmpdir.path()
    }

    /// The assignment in the environment of everything that the job starts.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Runs to its end, or to the deadline.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.start().wait()
    }

    /// Starts the command and returns at once.
    #[track_caller]
    pub fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let line = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("starting {line}: {error}"));
        let input = std::mem::replace(&mut self.input, Box::new(drop));
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || input(stdin));
        }
        let stdout = match self.reader.take() {
            Some(reader) => Stream::handed_over(child.stdout.take(), reader),
            None => Stream::collected(child.stdout.take()),
        };
        let stderr = Stream::collected(child.stderr.take());
        Running {
            line,
            child,
            stdout,
            stderr,
            started: Instant::now(),
            peak_rss_kib: 0,
            has_ended: false,
            job: self,
        }
    }
}

/// A command that has been started.
pub struct Running {
    line: String,
    child: Child,
    stdout: Stream,
    stderr: Stream,
    started: Instant,
    peak_rss_kib: u64,
    /// It has been waited for.
    has_ended: bool,
    job: Job,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn mark(&self) -> &str {
        &self.job.mark
    }

    pub fn tmpdir(&self) -> &Path {
        self.job.tmpdir.path()
    }

    /// The name of its job, as soon as tools can find the launcher.
    pub fn job_name(&self) -> String {
        let (pid, host) = (self.pid(), host());
        let name = format!("pmix.{host}.tool.{pid}");
        eventually("the launcher can be found", || {
            let sessions = fs::read_dir(self.tmpdir()).into_iter().flatten().flatten();
            sessions.map(|session| session.path().join(&name)).any(|file| file.exists())
        });
        format!("px-{host}-{pid}@{}", pid & 0xffff)
    }

    /// Waits until it has written this text. Not for commands that use [`Job::reading`].
    #[track_caller]
    pub fn until_said(&self, text: &str) {
        eventually(&format!("it says {text:?}"), || {
            [&self.stdout, &self.stderr].iter().any(|stream| stream.text().contains(text))
        });
    }

    /// Its standard output so far.
    pub fn said(&self) -> String {
        self.stdout.text()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("sending a signal to the launcher");
    }

    /// Waits for the end, or for the deadline.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let ended = loop {
            if let Some((_, peak)) = rss_kib(self.child.id()) {
                self.peak_rss_kib = self.peak_rss_kib.max(peak);
            }
            if let Some(status) = self.child.try_wait().expect("waiting for the command") {
                break match (status.code(), status.signal()) {
                    (Some(code), _) => Ended::Code(code),
                    (None, signal) => Ended::Signal(signal.unwrap_or_default()),
                };
            }
            if self.started.elapsed() > self.job.deadline {
                self.kill_everything();
                self.child.wait().expect("waiting for the killed command");
                break Ended::TooLate;
            }
            thread::sleep(Duration::from_millis(3));
        };
        self.has_ended = true;
        let took = self.started.elapsed();
        let ended = if self.output_is_complete() { ended } else { Ended::TooLate };
        Outcome {
            left_behind: left_behind(&self.job),
            command: self.line.clone(),
            ended,
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            took,
            peak_rss_kib: self.peak_rss_kib,
        }
    }

    /// Waits until our pipes are closed: a rank that outlives its launcher would keep them open forever.
    fn output_is_complete(&self) -> bool {
        let complete = || self.stdout.reader.is_finished() && self.stderr.reader.is_finished();
        while !complete() && self.started.elapsed() < self.job.deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let in_time = complete();
        if !in_time {
            self.kill_everything();
        }
        in_time
    }

    fn kill_everything(&self) {
        self.kill_group();
        self.kill_survivors();
    }

    fn kill_group(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    fn kill_survivors(&self) {
        for (pid, _) in survivors(&self.job.mark) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Running {
    /// A failing test leaves nothing to later ones.
    fn drop(&mut self) {
        if !self.has_ended {
            if !self.job.is_outlived {
                self.kill_survivors();
            }
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}

/// The content of a pipe, read by a thread that ends with it.
struct Stream {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn collected(pipe: Option<impl Read + Send + 'static>) -> Stream {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let into = bytes.clone();
        let take = move |piece: &[u8]| into.lock().expect("nobody fails with it").extend_from_slice(piece);
        Stream { bytes, ..Stream::handed_over(pipe, Box::new(take)) }
    }

    fn handed_over(pipe: Option<impl Read + Send + 'static>, mut take: Take) -> Stream {
        let reader = thread::spawn(move || {
            let mut piece = vec![0; 64 << 10];
            let mut pipe = pipe;
            while let Some(Ok(count @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut piece)) {
                take(&piece[..count]);
            }
        });
        Stream { bytes: Arc::default(), reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("nobody fails with it")).into_owned()
    }
}

/// Files in the job's temporary directory, and processes of the job that still live.
fn left_behind(job: &Job) -> Vec<String> {
    let patience = Instant::now() + PATIENCE;
    let alive = loop {
        let alive = survivors(&job.mark);
        if alive.is_empty() || job.is_outlived || Instant::now() > patience {
            break alive;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let files = fs::read_dir(job.tmpdir.path()).into_iter().flatten().flatten();
    let files = files.map(|entry| format!("file {}", entry.path().display()));
    let mut all: Vec<String> = files.collect();
    all.extend(alive.into_iter().map(|(pid, line)| format!("process {pid}: {line}")));
    all
}

/// Ends the test unless it runs as root. The test runner then lists it as left out.
#[track_caller]
pub fn needs_root(why: &str) {
    assert!(rustix::process::geteuid().is_root(), "{NEEDS_ROOT}{why}");
}

/// An empty directory that is removed when dropped.
pub fn new_directory() -> TempDir {
    tempfile::Builder::new().prefix("interop-").tempdir().expect("a temporary directory")
}

/// The same with a path without blanks, whatever TMPDIR is.
pub fn new_plain_directory() -> TempDir {
    tempfile::Builder::new().prefix("interop-").tempdir_in("/tmp").expect("a temporary directory")
}

/// The same in a place that all hosts of a cluster see.
pub fn new_shared_directory() -> TempDir {
    let place = target().join("interop");
    fs::create_dir_all(&place).expect("making the directory of the tests");
    tempfile::Builder::new().prefix("shared-").tempdir_in(place).expect("a temporary directory")
}

/// `PHALANX_PX` if it is set, else this workspace's `px`, built now.
pub fn px_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("PHALANX_PX") {
        Some(path) => PathBuf::from(path),
        None => built("px"),
    })
}

/// The example of this name of our native library, built now.
pub fn rust_tool(name: &str) -> PathBuf {
    built("examples").join(name)
}

/// The directory of the `libpmix.so.2` that `PHALANX_LIBPMIX` names, else of this workspace's, built now.
pub fn libpmix() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| match std::env::var_os("PHALANX_LIBPMIX") {
        Some(path) => linked("libpmix-given", Path::new(&path)),
        None => linked("libpmix", &built("libpmix.so")),
    })
}

/// A file that cargo builds from this workspace.
pub(crate) fn built(name: &str) -> PathBuf {
    phalanx_cluster::built().unwrap_or_else(|error| panic!("{error:#}")).join(name)
}

/// A directory that has the library under the names that the linker and programs look for.
fn linked(directory: &str, library: &Path) -> PathBuf {
    let directory = target().join("interop").join(directory);
    fs::create_dir_all(&directory).expect("making the directory for libpmix");
    let _one_at_a_time = locked(&directory.join("lock"));
    for name in ["libpmix.so.2", "libpmix.so"] {
        let (link, new) = (directory.join(name), directory.join("new"));
        // Programs of other tests may load it at any moment.
        if fs::read_link(&link).is_ok_and(|target| target == library) {
            continue;
        }
        let _ = fs::remove_file(&new);
        std::os::unix::fs::symlink(library, &new).expect("linking libpmix");
        fs::rename(new, link).expect("putting the link to libpmix in its place");
    }
    directory
}

/// cargo's output directory.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => workspace().join(path),
        None => workspace().join("target"),
    }
}
