//! Spawn: starts another job.

use std::os::unix::ffi::OsStrExt;

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, Nspace, Text};

use super::{Client, unexpected};
use crate::error::Error;
use crate::shown::Showing;

impl Client {
    /// Starts another job (`PMIx_Spawn`) and returns its namespace; its data are known here from then on. `job` holds
    /// directives for the whole of it. A tool writes the job's output itself, and its server's notes on the spawn, unless `pmix.iof.local` is
    /// false: here, or when the process became a tool.
    pub fn spawn(&self, job: &[Info], apps: &[App]) -> Result<Nspace, Error> {
        let operation = || {
            let programs = apps.iter().filter_map(|app| app.cmd.as_ref()).map(ToString::to_string);
            format!("spawn of {}", programs.collect::<Vec<_>>().join(", "))
        };
        let (mut job, mut apps) = (job.to_vec(), apps.to_vec());
        begin_here(&mut apps);
        let showing = self.show_spawned(&mut job)?;
        match self.perform_spawn(Spawn { job, apps }, showing)? {
            ClientReturn::Spawned(Ok(job)) => Ok(job.nspace),
            ClientReturn::Spawned(Err(status)) => Err(Error::Failed { operation: operation(), status }),
            other => Err(unexpected(&operation(), &other)),
        }
    }

    /// Makes the spawn and waits for its answer. The output of the job is shown in its form from the first byte on: the end of a short job
    /// may arrive together with the answer. The server's notes on the spawn are written when this returns, unless their reader is slow.
    pub fn perform_spawn(&self, spawn: Spawn, showing: Option<Showing>) -> Result<ClientReturn, Error> {
        self.check_pid()?;
        let begin = |answer: &ClientReturn| {
            if let (ClientReturn::Spawned(Ok(job)), Some(showing)) = (answer, showing) {
                showing.begin(job);
            }
        };
        let answer = self.engine.call_after(ClientCall::Spawn(spawn), begin);
        self.shown.settle();
        answer
    }

    /// Prepares to show the job's output here, for a spawn by [`submit`](Client::submit): showing begins when the job has a
    /// name.
    pub fn show_spawned(&self, job: &mut Vec<Info>) -> Result<Option<Showing>, Error> {
        let showing = self.shown.prepare(job)?;
        if showing.is_some() && self.shown.begins_to_listen() {
            self.show_unasked()?;
        }
        Ok(showing)
    }
}

/// Programs for which no directory is named begin in that of the caller.
pub fn begin_here(apps: &mut [App]) {
    let here = std::env::current_dir().ok().map(|here| Text::from_bytes(here.as_os_str().as_bytes()));
    apps.iter_mut().filter(|app| app.cwd.is_none()).for_each(|app| app.cwd.clone_from(&here));
}
