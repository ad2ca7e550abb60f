//! This process as a server, with the state of its C side.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::Info;
use pmix::{Server, ServerOptions};

use super::host::{Host, Objects};
use super::module::Module;
use super::upcalls;
use crate::instance::told;

pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(super) objects: Arc<Objects>,
}

impl Serving {
    pub(crate) fn start(module: Module, info: &[Info]) -> Result<Serving, Status> {
        let options = ServerOptions::from_infos(info).map_err(told)?;
        let objects = Arc::<Objects>::default();
        let host = Host { module, objects: objects.clone(), pulls: BTreeMap::new() };
        let server = Server::start(options, host).map_err(told)?;
        Ok(Serving { server, objects })
    }

    /// Ends it for all its owners.
    pub(crate) fn close(&self) {
        self.server.close();
        upcalls::forget_all();
    }
}
