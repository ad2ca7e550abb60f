//! Spawn: starts another job. Its data come with the answer, so that the parent can speak of it without asking again.

use phalanx_spec::Status;
use phalanx_wire::cmd::spawn::{Reply, Spawn};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{App, Info};

use super::pending::{Awaited, list};
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_spawn(&mut self, now: Time, id: CallId, job: Vec<Info>, apps: Vec<App>, out: &mut Out) {
        let programs: Vec<_> = apps.iter().filter_map(|app| app.cmd.as_ref()).collect();
        let awaited = Awaited::Spawned { programs: list(&programs) };
        self.ask(now, Some(id), &Request::Spawn(Spawn { job: job.clone(), apps }), awaited, &job, out);
    }

    pub(super) fn spawned(&mut self, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
        let Reply { status, job } = Reply::decode(payload, self.config.dialect)?;
        let nspace = match job {
            Some(job) if status.is_success() => {
                let nspace = job.nspace.clone();
                self.store.load_job(job);
                Ok(nspace)
            }
            _ if status.is_success() => Err(Status::ERR_SERVER_FAILED_REQUEST),
            _ => Err(status),
        };
        Ok(ClientReturn::Spawned(nspace))
    }
}
