//! Registration of jobs and of the local processes that may connect.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use phalanx_core::{JobInfo, ServerCall};
use phalanx_wire::{Info, Nspace, ProcId};

use super::Server;
use super::job::{OwnNode, job};
use crate::error::Error;

/// The host's registration of a job.
#[derive(Default)]
pub(super) struct Registration {
    job: Option<JobInfo>,
    /// Values from its setup, before it was registered.
    early: Vec<Info>,
}

impl Server {
    /// Registers a job, described by the standard's attributes (`PMIx_server_register_nspace`), before any of its processes is
    /// started here. `local`: how many of them are here, if known. A later registration of a job adds to the first.
    pub fn register_nspace(&self, nspace: &Nspace, local: Option<u32>, info: &[Info]) -> Result<(), Error> {
        let job = self.draft(nspace, local, info)?;
        self.register_job(job)
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn register_nspace_then(
        &self,
        nspace: &Nspace,
        local: Option<u32>,
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let job = self.draft(nspace, local, info)?;
        self.register_job_then(job, then)
    }

    /// Registers a job with a table that the host has made itself. A job that is registered again gets new data; its clients
    /// stay.
    pub fn register_job(&self, job: JobInfo) -> Result<(), Error> {
        let operation = registration(&job.nspace);
        self.remember(&job)?;
        self.done(ServerCall::RegisterNspace(Box::new(job)), operation)
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn register_job_then(
        &self,
        job: JobInfo,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = registration(&job.nspace);
        self.remember(&job)?;
        self.done_then(ServerCall::RegisterNspace(Box::new(job)), operation, then)
    }

    /// Forgets a job and everything stored for it (`PMIx_server_deregister_nspace`). Its processes are disconnected.
    pub fn deregister_nspace(&self, nspace: &Nspace) -> Result<(), Error> {
        self.forget(nspace)?;
        self.done(ServerCall::DeregisterNspace(nspace.clone()), || format!("deregistration of {nspace}"))
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn deregister_nspace_then(
        &self,
        nspace: &Nspace,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("deregistration of {nspace}");
        self.forget(nspace)?;
        self.done_then(ServerCall::DeregisterNspace(nspace.clone()), || operation, then)
    }

    /// Allows a process of a registered job to connect, as this user (`PMIx_server_register_client`). The kernel identifies
    /// the user when it connects.
    pub fn register_client(&self, proc: &ProcId, uid: u32, gid: u32) -> Result<(), Error> {
        let call = ServerCall::RegisterClient { proc: proc.clone(), uid, gid };
        self.done(call, || format!("registration of {proc}"))
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn register_client_then(
        &self,
        proc: &ProcId,
        uid: u32,
        gid: u32,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("registration of {proc}");
        self.done_then(ServerCall::RegisterClient { proc: proc.clone(), uid, gid }, || operation, then)
    }

    /// Reports that a process has ended (`PMIx_server_deregister_client`), with rank WILDCARD all local ones of its job: requests
    /// that wait for it are answered. Its committed values stay until its job is deregistered.
    pub fn deregister_client(&self, proc: &ProcId) -> Result<(), Error> {
        self.done(ServerCall::DeregisterClient(proc.clone()), || format!("deregistration of {proc}"))
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn deregister_client_then(
        &self,
        proc: &ProcId,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("deregistration of {proc}");
        self.done_then(ServerCall::DeregisterClient(proc.clone()), || operation, then)
    }

    /// Adds values to a job: at once if it is registered, otherwise when it is.
    pub(super) fn tell_job(&self, nspace: &Nspace, info: Vec<Info>) -> Result<Option<JobInfo>, Error> {
        if info.is_empty() {
            return Ok(None);
        }
        if self.jobs().get(nspace).is_some_and(|told| told.job.is_some()) {
            return self.draft(nspace, None, &info).map(Some);
        }
        self.jobs().entry(nspace.clone()).or_default().early.extend(info);
        Ok(None)
    }

    fn draft(&self, nspace: &Nspace, local: Option<u32>, info: &[Info]) -> Result<JobInfo, Error> {
        self.check_pid()?;
        let place = OwnNode { hostname: self.hostname(), node_id: self.node_id };
        let jobs = self.jobs();
        let told = jobs.get(nspace);
        let early = told.map(|told| &*told.early).unwrap_or_default();
        let all: Vec<Info> = early.iter().chain(info).cloned().collect();
        let drafted = job(nspace, local, &all, &place, told.and_then(|told| told.job.as_ref()));
        drafted.map_err(|status| Error::Failed { operation: registration(nspace)(), status })
    }

    fn remember(&self, job: &JobInfo) -> Result<(), Error> {
        self.check_pid()?;
        let told = Registration { job: Some(job.clone()), early: Vec::new() };
        self.jobs().insert(job.nspace.clone(), told);
        Ok(())
    }

    fn forget(&self, nspace: &Nspace) -> Result<(), Error> {
        self.check_pid()?;
        self.jobs().remove(nspace);
        self.forget_changes(nspace);
        Ok(())
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<Nspace, Registration>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn registration(nspace: &Nspace) -> impl FnOnce() -> String + Send + use<> {
    let nspace = nspace.clone();
    move || format!("registration of {nspace}")
}
