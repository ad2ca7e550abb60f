//! What tests with tools begin and end with: launchers that tools can find, and the tool.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::{Job, Outcome, Running, debian_file, eventually, host, libpmix, new_directory, pmix_tool, px};

/// `px run` of something that lasts, once tools can find it.
pub fn launcher(ranks: u32) -> Running {
    let running = px(["-n", &ranks.to_string(), "sleep", "1000"]).start();
    eventually("the launcher can be found", || running.rendezvous_file().is_some());
    running
}

/// Debian's mpirun 4.1, whose server serves no tools, and the address of that server.
pub fn mpirun_4() -> (Running, String) {
    let place = new_directory();
    let file = place.path().join("uri");
    let script =
        format!("echo $PMIX_SERVER_URI41 > {0}.new; mv {0}.new {0}; exec sleep 1000", file.display());
    let mpirun = Job::new(debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin"))
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "1", "sh", "-c", &script])
        .start();
    eventually("the rank has told its server's address", || file.exists());
    let uri = fs::read_to_string(&file).expect("readable");
    (mpirun, uri.trim().to_owned())
}

/// The tool in C, on our library, looking where `tmpdir` is.
pub fn c_tool(tmpdir: &Path, words: &[&str]) -> Job {
    Job::new(pmix_tool("attach"))
        .args(words)
        .env("TMPDIR", tmpdir)
        .env("LD_LIBRARY_PATH", libpmix())
        .deadline(100)
}

impl Running {
    /// The rendezvous file that is named after its pid, in one of the sessions in its own temporary directory.
    pub fn rendezvous_file(&self) -> Option<PathBuf> {
        let sessions = fs::read_dir(self.tmpdir()).ok()?.flatten().map(|entry| entry.path());
        let name = format!("pmix.{}.tool.{}", host(), self.pid());
        sessions.map(|session| session.join(&name)).find(|file| file.exists())
    }

    /// Ends a `px run` as its user does.
    #[track_caller]
    pub fn end(self) -> Outcome {
        self.signal(Signal::TERM);
        self.wait().expect_code(143).expect_nothing_left()
    }
}
