//! Registration of jobs and of the local processes that may connect.

use phalanx_core::{JobInfo, ServerCall};
use phalanx_wire::{Nspace, ProcId};

use super::Server;
use crate::error::Error;

impl Server {
    /// Makes a job known (`PMIx_server_register_nspace`), before any of its processes is started here. A job that is
    /// registered again has new data; its clients stay.
    pub fn register_job(&self, job: JobInfo) -> Result<(), Error> {
        let operation = registration(&job.nspace);
        self.done(ServerCall::RegisterNspace(Box::new(job)), operation)
    }

    /// The same without waiting. `then` is not run if this fails.
    pub fn register_job_then(
        &self,
        job: JobInfo,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = registration(&job.nspace);
        self.done_then(ServerCall::RegisterNspace(Box::new(job)), operation, then)
    }

    /// Forgets a job and everything that is stored for it (`PMIx_server_deregister_nspace`). Its processes are disconnected.
    pub fn deregister_nspace(&self, nspace: &Nspace) -> Result<(), Error> {
        self.done(ServerCall::DeregisterNspace(nspace.clone()), || format!("deregistration of {nspace}"))
    }

    /// The same without waiting. `then` is not run if this fails.
    pub fn deregister_nspace_then(
        &self,
        nspace: &Nspace,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("deregistration of {nspace}");
        self.done_then(ServerCall::DeregisterNspace(nspace.clone()), || operation, then)
    }

    /// Allows a process of a registered job to connect, as this user (`PMIx_server_register_client`). Who it is when it does
    /// the kernel says.
    pub fn register_client(&self, proc: &ProcId, uid: u32, gid: u32) -> Result<(), Error> {
        let call = ServerCall::RegisterClient { proc: proc.clone(), uid, gid };
        self.done(call, || format!("registration of {proc}"))
    }

    /// The same without waiting. `then` is not run if this fails.
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

    /// Says that a process has ended (`PMIx_server_deregister_client`): whoever waits for it is told. What it committed stays
    /// until its job is deregistered.
    pub fn deregister_client(&self, proc: &ProcId) -> Result<(), Error> {
        self.done(ServerCall::DeregisterClient(proc.clone()), || format!("deregistration of {proc}"))
    }

    /// The same without waiting. `then` is not run if this fails.
    pub fn deregister_client_then(
        &self,
        proc: &ProcId,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let operation = format!("deregistration of {proc}");
        self.done_then(ServerCall::DeregisterClient(proc.clone()), || operation, then)
    }
}

fn registration(nspace: &Nspace) -> impl FnOnce() -> String + Send + use<> {
    let nspace = nspace.clone();
    move || format!("registration of {nspace}")
}
