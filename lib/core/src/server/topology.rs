//! The topology of this node as hwloc XML, so that ranks need not discover it themselves: discovery takes hwloc a hundred
//! times as long as reading. There are two forms, for hwloc 2 and for programs that are linked with hwloc 1.
//!
//! Clients of OpenPMIx from 4.2.3 on get it without asking: they load a topology in PMIx_Init and look for the XML in their
//! job data only. All others get it on request. MPI libraries ask for rank WILDCARD with PMIX_IMMEDIATE: Open MPI first for
//! `pmix.hwlocxml2`.
//!
//! The daemon does not open hwloc for this: its plug-ins open displays and drivers. Our own reader's view is written as XML.

use std::cell::OnceCell;
use std::sync::Arc;

use phalanx_spec::keys;
use phalanx_topo::Topology;
use phalanx_wire::codec::Release;
use phalanx_wire::{Key, Kval, Text, Value};

use super::peer::{Peer, PeerKind};

/// The XML in both forms, each written on first use.
#[derive(Debug)]
pub(super) struct NodeTopology {
    hardware: Option<Arc<Topology>>,
    v2: OnceCell<Option<Text>>,
    v1: OnceCell<Option<Text>>,
}

impl NodeTopology {
    pub(super) fn new(hardware: Option<Arc<Topology>>) -> NodeTopology {
        NodeTopology { hardware, v2: OnceCell::new(), v1: OnceCell::new() }
    }

    /// The value of one of the topology keys.
    pub(super) fn value(&self, key: &Key) -> Option<Kval> {
        let (form, written): (_, fn(&Topology) -> String) = match key {
            // The oldest name means the newest form that the server has.
            _ if *key == keys::HWLOC_XML_V2 || *key == keys::LOCAL_TOPO => (&self.v2, Topology::to_hwloc_xml),
            _ if *key == keys::HWLOC_XML_V1 => (&self.v1, Topology::to_hwloc1_xml),
            _ => return None,
        };
        let hardware = self.hardware.as_ref();
        let xml = form.get_or_init(|| hardware.map(|hardware| Text::from(written(hardware).as_str())));
        Some(Kval { key: key.clone(), value: Value::String(xml.clone()?) })
    }

    /// The topology, if this peer looks for it in its job data.
    pub(super) fn for_peer(&self, peer: &Peer) -> Option<Kval> {
        let loads_in_init = peer.role() == PeerKind::Client
            && !peer.reads_files()
            && peer.dialect().release >= LOADS_TOPOLOGY_IN_INIT;
        if loads_in_init { self.value(&Key::of(keys::HWLOC_XML_V2)) } else { None }
    }
}

/// The first release of OpenPMIx with clients that load a topology in PMIx_Init.
const LOADS_TOPOLOGY_IN_INIT: Release = Release::new(4, 2, 3);
