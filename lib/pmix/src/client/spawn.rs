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
        let answer = self.call(ClientCall::Spawn(Spawn { job, apps }));
        self.settle_shown();
        match answer? {
            ClientReturn::Spawned(result) => {
                let job = result.map_err(|status| Error::Failed { operation: operation(), status })?;
                if let Some(showing) = showing {
                    showing.begin(&job);
                }
                Ok(job.nspace)
            }
            other => Err(unexpected(&operation(), &other)),
        }
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

    /// What was said of a spawn before it was answered is written when this returns, unless whoever reads it is slow.
    pub fn settle_shown(&self) {
        self.shown.settle();
    }
}

/// Programs for which no directory is named begin in that of the caller.
pub fn begin_here(apps: &mut [App]) {
    let here = std::env::current_dir().ok().map(|here| Text::from_bytes(here.as_os_str().as_bytes()));
    apps.iter_mut().filter(|app| app.cwd.is_none()).for_each(|app| app.cwd.clone_from(&here));
}
