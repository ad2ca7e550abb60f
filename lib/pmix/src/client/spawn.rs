//! Spawn: starts another job.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{App, Info, Nspace};

use super::{Client, unexpected};
use crate::error::Error;
use crate::shown::Showing;

impl Client {
    /// Starts another job (`PMIx_Spawn`) and returns its namespace; its data are known here from then on. `job` holds
    /// directives for the whole of it. A tool writes the job's output itself, as it comes, and what its server has to say of the
    /// spawn, unless `pmix.iof.local` is false: here, or when it became a tool.
    pub fn spawn(&self, job: &[Info], apps: &[App]) -> Result<Nspace, Error> {
        let operation = || {
            let programs = apps.iter().filter_map(|app| app.cmd.as_ref()).map(ToString::to_string);
            format!("spawn of {}", programs.collect::<Vec<_>>().join(", "))
        };
        let mut job = job.to_vec();
        let showing = self.show_spawned(&mut job)?;
        let answer = self.call(ClientCall::Spawn(Spawn { job, apps: apps.to_vec() }));
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

    /// What a spawn by [`submit`](Client::submit) says of showing the job's output here: it begins when the job has a name.
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
