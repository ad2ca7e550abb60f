//! This process as a server, with what belongs to the C side of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phalanx_core::JobInfo;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, Value};
use pmix::{Server, ServerOptions};

use super::host::{Host, Objects};
use super::job::Place;
use super::module::Module;
use super::upcalls;
use crate::instance::told;

pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(super) objects: Arc<Objects>,
    hostname: String,
    node_id: Option<u32>,
    /// What hosts have told of their jobs: they may tell more later.
    jobs: Mutex<BTreeMap<Nspace, JobInfo>>,
}

impl Serving {
    pub(crate) fn start(module: Module, info: &[Info]) -> Result<Serving, Status> {
        let options = ServerOptions::from_infos(info).map_err(told)?;
        let objects = Arc::<Objects>::default();
        let host = Host { module, objects: objects.clone(), pulls: BTreeMap::new() };
        let server = Server::start(options, host).map_err(told)?;
        let hostname = server.hostname().to_owned();
        let node_id = info.find(keys::NODEID).and_then(Value::as_u32);
        Ok(Serving { server, objects, hostname, node_id, jobs: Mutex::default() })
    }

    /// Ends it for all who share it.
    pub(crate) fn close(&self) {
        self.server.close();
        upcalls::forget_all();
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { hostname: &self.hostname, node_id: self.node_id }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, BTreeMap<Nspace, JobInfo>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
