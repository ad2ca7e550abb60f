//! The nodes of the DVM: state, slots, load, and how their daemons are linked.

use std::collections::BTreeMap;

use phalanx_spec::keys;
use phalanx_wire::{DataArray, Info, Value};

use super::inquiry::Inquiry;
use super::job::slots;
use super::names;
use super::procs::megabytes;
use crate::id::NodeId;
use crate::msg::{NodeUsage, Subject};
use crate::root::dvm::Dvm;
use crate::root::placing;

/// Nodes whose daemons did not answer the survey are reported without load and link.
pub(super) fn all_nodes(dvm: &Dvm, asked: &Inquiry<'_>) -> Option<DataArray> {
    let usage: BTreeMap<NodeId, &NodeUsage> =
        asked.found.get(&Subject::Nodes)?.nodes.iter().map(|(node, usage)| (*node, usage)).collect();
    let (ids, resources) = placing::resources(dvm);
    let resources: BTreeMap<_, _> = ids.into_iter().zip(resources).collect();
    let nodes = dvm.nodes.all();
    Some(DataArray::of_infos(nodes.iter().map(NodeId).map(|node| {
        let state = match (dvm.nodes.is_lost(node), dvm.nodes.has_reported(node)) {
            (true, _) => "lost",
            (false, false) => "starting",
            (false, true) => "up",
        };
        let mut about = vec![
            Info::new(keys::HOSTNAME, &*dvm.nodes.name(node)),
            Info::new(keys::NODEID, node.0),
            Info::new(names::STATE, state),
        ];
        if let Some(node) = resources.get(&node) {
            about.push(Info::new(keys::MAX_PROCS, slots(&node.slots, node.topology.cpus().count())));
            about.push(Info::new(names::IN_USE, node.in_use()));
        }
        if let Some(usage) = usage.get(&node) {
            about.push(Info::new(keys::NODE_LOAD_AVG, Value::Float(usage.load[0])));
            about.push(megabytes(keys::NODE_MEM_FREE, usage.free as f64));
            about.extend(usage.link.as_deref().map(|link| Info::new(names::LINK, link)));
        }
        Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(about))
    })))
}
