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
        let mut spawn = Spawn { job: job.to_vec(), apps: apps.to_vec() };
        let showing = self.prepare_spawn(&mut spawn)?;
        match self.perform_spawn(spawn, showing)? {
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

    /// Prepares a spawn, for [`perform_spawn`](Client::perform_spawn) or [`submit`](Client::submit): programs for which no directory is
    /// named begin in ours. If the job's output is to be shown here, showing begins when the job has a name.
    pub fn prepare_spawn(&self, spawn: &mut Spawn) -> Result<Option<Showing>, Error> {
        begin_here(&mut spawn.apps);
        let showing = self.shown.prepare(&mut spawn.job)?;
        if showing.is_some() && self.shown.begins_to_listen() {
            self.show_unasked()?;
        }
        Ok(showing)
    }
}

/// Programs for which no directory is named begin in that of the caller.
pub(crate) fn begin_here(apps: &mut [App]) {
    let here = std::env::current_dir().ok().map(|here| Text::from_bytes(here.as_os_str().as_bytes()));
    apps.iter_mut().filter(|app| app.cwd.is_none()).for_each(|app| app.cwd.clone_from(&here));
}
