//! What tests with tools begin and end with: a launcher that tools can find.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::{Outcome, Running, eventually, host, px};

/// `px run` of something that lasts, once tools can find it.
pub fn launcher(ranks: u32) -> Running {
    let running = px(["-n", &ranks.to_string(), "sleep", "1000"]).start();
    eventually("the launcher can be found", || running.rendezvous_file().is_some());
    running
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
