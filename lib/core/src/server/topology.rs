//! The topology of this node as hwloc XML, so that ranks need not look for it themselves: finding it takes hwloc a hundred
//! times as long as reading it.
//!
//! Who is told without having asked: clients of OpenPMIx from 4.2.3 on. They load a topology in PMIx_Init, and look for the
//! XML among their job data only. All others are told when they ask. MPI libraries do, for rank WILDCARD, with
//! PMIX_IMMEDIATE: Open MPI first for `pmix.hwlocxml2`.

use std::cell::OnceCell;

use phalanx_spec::keys;
use phalanx_wire::codec::Release;
use phalanx_wire::{Key, Kval, Text, Value};

use super::Server;
use super::peer::{Peer, Role};

/// The XML, written when somebody wants it for the first time.
#[derive(Debug, Default)]
pub(super) struct NodeTopology(OnceCell<Option<Text>>);

impl Server {
    /// One of the keys under which this node's topology is known.
    pub(super) fn topology_value(&self, key: &Key) -> Option<Kval> {
        // The older name means whatever form the server has; there is no XML of hwloc 1.
        let is_known = *key == keys::HWLOC_XML_V2 || *key == keys::LOCAL_TOPO;
        let xml = if is_known { self.topology_xml()? } else { return None };
        Some(Kval { key: key.clone(), value: Value::String(xml.clone()) })
    }

    /// What this peer looks for among its job data.
    pub(super) fn topology_for(&self, peer: &Peer) -> Option<Kval> {
        let loads_in_init =
            peer.role == Role::Client && !peer.reads_files && peer.dialect.release >= LOADS_TOPOLOGY_IN_INIT;
        if loads_in_init { self.topology_value(&Key::of(keys::HWLOC_XML_V2)) } else { None }
    }

    fn topology_xml(&self) -> Option<&Text> {
        let xml =
            || self.config.topology.as_ref().map(|topology| Text::from(topology.to_hwloc_xml().as_str()));
        self.topology.0.get_or_init(xml).as_ref()
    }
}

/// The first release of OpenPMIx whose clients load a topology in PMIx_Init.
const LOADS_TOPOLOGY_IN_INIT: Release = Release::new(4, 2, 3);
