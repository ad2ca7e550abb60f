//! Where a job's processes go: for the user of this process, and as bytes for a user elsewhere.

use std::sync::Arc;

use phalanx_topo::{CpuSet, Topology};

use crate::encoding::{Encode, Malformed, Reader, Writer, encoded};
use crate::hosts::Slots;
use crate::map::{JobMap, NodeResources};
use crate::ranges::Ranges;
use crate::report::sealed::{open, seal};

/// Where a job's processes go, and the nodes that this was decided from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placed {
    pub nodes: Vec<NodeResources>,
    pub map: JobMap,
}

impl Placed {
    /// Encodes it for a `px` of this release.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        seal(self)
    }

    /// Decodes what a server has sent. The error states why it cannot be read.
    pub fn from_bytes(bytes: &[u8]) -> Result<Placed, String> {
        open(bytes)
    }
}

/// A node, and the index of its topology.
struct Row {
    name: String,
    called: Option<Arc<str>>,
    slots: Slots,
    max_slots: Option<u32>,
    numbers: Ranges,
    doubled: u32,
    busy: CpuSet,
    launcher: bool,
    topology: u32,
}

impl Encode for Placed {
    /// Encodes each kind of topology once.
    fn encode(&self, to: &mut Writer) {
        let mut kinds: Vec<&Arc<Topology>> = Vec::new();
        let rows = self.nodes.iter().map(|node| {
            let known = kinds.iter().position(|kind| Arc::ptr_eq(kind, &node.topology));
            let kind = known.unwrap_or_else(|| {
                kinds.push(&node.topology);
                kinds.len() - 1
            });
            Row {
                name: node.name.clone(),
                called: node.called.clone(),
                slots: node.slots,
                max_slots: node.max_slots,
                numbers: node.numbers.clone(),
                doubled: node.doubled,
                busy: node.busy.clone(),
                launcher: node.launcher,
                topology: kind as u32,
            }
        });
        let rows: Vec<Row> = rows.collect();
        kinds.into_iter().cloned().collect::<Vec<_>>().encode(to);
        rows.encode(to);
        self.map.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Placed, Malformed> {
        let kinds: Vec<Arc<Topology>> = Encode::decode(from)?;
        let rows: Vec<Row> = Encode::decode(from)?;
        let node = |row: Row| {
            let topology = kinds.get(row.topology as usize)?.clone();
            let Row { name, called, slots, max_slots, numbers, doubled, busy, launcher, .. } = row;
            Some(NodeResources { name, called, slots, max_slots, topology, numbers, doubled, busy, launcher })
        };
        let nodes: Option<Vec<NodeResources>> = rows.into_iter().map(node).collect();
        let nodes = nodes.ok_or_else(|| from.malformed("a node has a topology that was not sent"))?;
        Ok(Placed { nodes, map: Encode::decode(from)? })
    }
}

encoded!(struct Row { name, called, slots, max_slots, numbers, doubled, busy, launcher, topology });

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::map::{AppRequest, map_job};

    fn placed(map_by: &str) -> Placed {
        let (small, large) = (Topology::synthetic(1, 1, 1, 2, 1), Topology::synthetic(2, 1, 1, 4, 2));
        let topologies = [Arc::new(small), Arc::new(large)];
        let node = |(number, kind): (u32, usize)| NodeResources {
            called: (number == 1).then(|| "10.0.0.1".into()),
            slots: Slots::Stated(8),
            max_slots: (number > 1).then_some(9),
            busy: CpuSet::from_list("1").unwrap(),
            numbers: Ranges::first(number),
            doubled: number / 2,
            launcher: number == 0,
            ..NodeResources::new(format!("n{number}"), topologies[kind].clone())
        };
        let nodes: Vec<NodeResources> = [(0, 0), (1, 1), (2, 1)].map(node).into();
        let app = |procs| AppRequest { procs: Some(procs), ..AppRequest::default() };
        let policy = crate::map::Policy { map: map_by.parse().unwrap(), ..Default::default() };
        let map = map_job(&nodes, &[app(3), app(6)], &policy).unwrap();
        Placed { nodes, map }
    }

    #[test]
    fn placements_survive_being_sent() {
        for map_by in ["slot", "node", "core", "package:span", "ppr:3:node", "hwthread:oversubscribe"] {
            let placed = placed(map_by);
            let read = Placed::from_bytes(&placed.to_bytes()).unwrap();
            assert_eq!(read, placed, "{map_by}");
            assert!(Arc::ptr_eq(&read.nodes[1].topology, &read.nodes[2].topology));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_placement_or_a_reason(at in 0usize..1000, byte: u8, cut in 0usize..1000) {
            let mut bytes = placed("core").to_bytes();
            let (at, cut) = (at % bytes.len(), cut % bytes.len());
            bytes[at] = byte;
            let _ = Placed::from_bytes(&bytes);
            let _ = Placed::from_bytes(&bytes[..cut]);
        }
    }
}
