//! Common parts of tests with tools: launchers that tools can find, and the tool.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    Job, Library, Outcome, Running, debian_file, eventually, host, libpmix, new_directory, pmix_tool, px,
    px_binary, wheel,
};

/// A long-lasting `px run`, once tools can find it.
pub fn launcher(ranks: u32) -> Running {
    let running = px(["-n", &ranks.to_string(), "sleep", "1000"]).start();
    eventually("the launcher can be found", || running.rendezvous_file().is_some());
    running
}

/// Debian's mpirun 4.1, whose server refuses tools, and the address of that server.
pub fn mpirun_4() -> (Running, String) {
    let place = new_directory();
    let file = place.path().join("uri");
    // Ranks survive when their launcher is killed.
    let script = format!(
        "echo $PMIX_SERVER_URI41 > '{0}.new'; mv '{0}.new' '{0}'; while kill -0 $PPID 2> /dev/null; do sleep 0.1; done",
        file.display()
    );
    let mpirun = Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"))
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "1", "sh", "-c", &script])
        .start();
    eventually("the rank has told its server's address", || file.exists());
    let uri = fs::read_to_string(&file).expect("readable");
    (mpirun, uri.trim().to_owned())
}

/// The C tool on our library, searching in `tmpdir`.
pub fn c_tool(tmpdir: &Path, words: &[&str]) -> Job {
    Job::new(pmix_tool("attach")).args(words).env("TMPDIR", tmpdir).env("LD_LIBRARY_PATH", libpmix())
}

/// Fails the test unless a launcher of Open MPI 5, which is PRRTE's, behaves as `does` requires. Its rank runs the shell's `script`
/// repeatedly, and ends with 3 as soon as the file `over` exists.
///
/// Such launchers leave some calls unanswered, close connections that follow others closely, and sometimes stop answering
/// altogether. So `does` repeats what was not answered, see [`soon`], and a launcher that keeps failing is replaced by another one.
#[track_caller]
pub fn some_prterun(script: &str, does: impl Fn(&Prterun) -> bool) {
    let did = (0..ATTEMPTS).any(|_| {
        let launcher = Prterun::start(script);
        soon(|| launcher.shows(&["ps"], &[&launcher.job])) && does(&launcher)
    });
    assert!(did, "none of {ATTEMPTS} launchers did what it should");
}

/// A launcher of Open MPI 5.
pub struct Prterun {
    pub running: Running,
    /// The name of its job.
    pub job: String,
    /// The file that ends it.
    pub over: PathBuf,
    /// Its ranks end when this is removed.
    _place: TempDir,
}

impl Prterun {
    /// Returns once tools can find it.
    #[track_caller]
    pub fn start(script: &str) -> Prterun {
        let place = new_directory();
        let over = place.path().join("over");
        // Ranks survive when their launcher is killed, but not the removal of the directory.
        let (dir, file) = (place.path().display(), over.display());
        let script =
            format!("while [ -d '{dir}' ] && ! [ -e '{file}' ]; do {script}; sleep 0.05; done; exit 3");
        let running = Job::new(wheel().root.join("bin/mpirun"))
            .args(["--allow-run-as-root", "-n", "1", "--map-by", ":OVERSUBSCRIBE", "sh", "-c", &script])
            .with(Library::OpenMpi5)
            .start();
        eventually("the launcher can be found", || running.rendezvous_file().is_some());
        let job = format!("prterun-{}-{}@1", host(), running.pid());
        Prterun { running, job, over, _place: place }
    }

    /// A px command there. An unanswered one does not take long.
    pub fn command(&self, words: &[&str]) -> Job {
        let (command, rest) = words.split_first().expect("a command");
        let pid = self.running.pid().to_string();
        let job = Job::new(px_binary()).args([*command, "--pid", &pid]).args(rest);
        job.env("TMPDIR", self.running.tmpdir()).deadline(15)
    }

    /// Whether a px command prints all of these parts.
    pub fn shows(&self, words: &[&str], parts: &[&str]) -> bool {
        self.command(words).run().shows(parts)
    }
}

impl Drop for Prterun {
    /// After serving tools it does not always end by itself.
    fn drop(&mut self) {
        self.running.signal(Signal::KILL);
    }
}

/// Whether a condition holds, now or at one of a few more attempts.
pub fn soon(is_so: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(is_so).take(ATTEMPTS).any(|is_so| is_so)
}

const ATTEMPTS: usize = 4;

impl Running {
    /// The rendezvous file with its pid in the name, in one of the sessions in its temporary directory.
    pub fn rendezvous_file(&self) -> Option<PathBuf> {
        let sessions = fs::read_dir(self.tmpdir()).ok()?.flatten().map(|entry| entry.path());
        let name = format!("pmix.{}.tool.{}", host(), self.pid());
        sessions.map(|session| session.join(&name)).find(|file| file.exists())
    }

    /// Ends a `px run` as a user does.
    #[track_caller]
    pub fn end(self) -> Outcome {
        self.signal(Signal::TERM);
        self.wait().expect_code(143).expect_nothing_left()
    }
}
