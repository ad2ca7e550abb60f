//! What the host registers about the machine rather than a job, and about itself.

use phalanx_core::{ServerCall, ServerReturn};
use phalanx_spec::Status;
use phalanx_wire::codec::{Format, Generation};
use phalanx_wire::{Blob, Info, ProcId};

use super::{Server, unexpected};
use crate::error::Error;

impl Server {
    /// Registers resources of the machine (`PMIx_server_register_resources`): every job gets them unless it has its own
    /// values, and running processes when they ask. Values of a node are in a `pmix.node.arr` that names it.
    pub fn register_resources(&self, info: &[Info]) -> Result<(), Error> {
        self.done(ServerCall::RegisterResources(info.to_vec()), || REGISTRATION.into())
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn register_resources_then(
        &self,
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.done_then(ServerCall::RegisterResources(info.to_vec()), || REGISTRATION.into(), then)
    }

    /// Removes resources by key (`PMIx_server_deregister_resources`): of values only those that name a node matter.
    pub fn deregister_resources(&self, info: &[Info]) -> Result<(), Error> {
        self.done(ServerCall::DeregisterResources(info.to_vec()), || DEREGISTRATION.into())
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn deregister_resources_then(
        &self,
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.done_then(ServerCall::DeregisterResources(info.to_vec()), || DEREGISTRATION.into(), then)
    }

    /// Registers the attributes that the host honours in one of its functions (`PMIx_Register_attributes`), once for each: for
    /// queries of attribute support. Functions are named as entries of the standard's table of upcalls (`allocate`), or as users
    /// call them (`PMIx_Allocation_request`); attributes by name or key.
    pub fn register_attributes(&self, function: &str, attributes: &[&str]) -> Result<(), Error> {
        let call = ServerCall::RegisterAttributes {
            function: function.to_owned(),
            attributes: attributes.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.done(call, || format!("registration of attributes of {function}"))
    }

    /// All that is known of the jobs of these processes (`PMIx_server_collect_job_info`), packed for other servers: one
    /// object per job, in the form of OpenPMIx.
    pub fn collect_job_info(&self, procs: &[ProcId]) -> Result<Vec<Blob>, Error> {
        let mut nspaces = Vec::new();
        for proc in procs {
            if !nspaces.contains(&proc.nspace) {
                nspaces.push(proc.nspace.clone());
            }
        }
        let operation = "collection of what is known of jobs";
        match self.call(ServerCall::CollectJobInfo { nspaces, format: FORMAT })? {
            ServerReturn::JobInfo(jobs) if jobs.is_empty() => {
                Err(Error::Failed { operation: operation.into(), status: Status::ERR_NOT_FOUND })
            }
            ServerReturn::JobInfo(jobs) => Ok(jobs),
            other => Err(unexpected(operation, &other)),
        }
    }
}

const REGISTRATION: &str = "registration of resources";
const DEREGISTRATION: &str = "deregistration of resources";

/// All releases since 4.1 read it.
const FORMAT: Format = Format { generation: Generation::V41, described: false };
