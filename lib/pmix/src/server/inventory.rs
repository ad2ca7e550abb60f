//! Inventories: the hardware of a node, collected on that node and delivered to the scheduler.

use phalanx_core::{ServerCall, ServerReturn};
use phalanx_spec::{Status, keys};
use phalanx_topo::{Device, DeviceKind, Topology};
use phalanx_wire::{DataArray, Info, InfoList, Value};

use super::{Server, unexpected};
use crate::error::Error;
use crate::topology::topology;

impl Server {
    /// The inventory of this node (`PMIx_server_collect_inventory`): one `pmix.node.arr` with its name, its memory in bytes,
    /// its topology, its fabric devices, and the host's values of it. With `pmix.hname` in `directives` that of another
    /// node, as far as the host has provided it.
    pub fn collect_inventory(&self, directives: &[Info]) -> Result<Vec<Info>, Error> {
        let (own, call) = self.collection(directives)?;
        collected(own, self.call(call)?)
    }

    /// The same without waiting for the server. `then` does not run if this call fails.
    pub fn collect_inventory_then(
        &self,
        directives: &[Info],
        then: impl FnOnce(Result<Vec<Info>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let (own, call) = self.collection(directives)?;
        self.call_then(call, move |result| then(result.and_then(|result| collected(own, result))))
    }

    /// Stores what was collected, here or on another node (`PMIx_server_deliver_inventory`), for gets of values of a node,
    /// for queries that name a node, and for the setup of jobs. `directives` may name the node of values outside of arrays;
    /// the default is this one.
    pub fn deliver_inventory(&self, info: &[Info], directives: &[Info]) -> Result<(), Error> {
        self.done(delivery(info, directives), || DELIVERY.into())
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn deliver_inventory_then(
        &self,
        info: &[Info],
        directives: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.done_then(delivery(info, directives), || DELIVERY.into(), then)
    }

    /// The kernel's values, if this is about our own node; and the call that asks for the host's.
    fn collection(&self, directives: &[Info]) -> Result<(Vec<Info>, ServerCall), Error> {
        if let Some(unknown) =
            directives.iter().find(|one| one.is_required() && !ATTRIBUTES.contains(&one.key.as_str()))
        {
            return Err(Error::Failed {
                operation: format!("{COLLECTION} with the required attribute {}", unknown.key),
                status: Status::ERR_NOT_SUPPORTED,
            });
        }
        let host = directives.find(keys::HOSTNAME).and_then(Value::as_str).unwrap_or(self.hostname());
        let own = match host == self.hostname() {
            true => self.own_inventory()?,
            false => Vec::new(),
        };
        Ok((own, ServerCall::Inventory { hosts: vec![host.to_owned()] }))
    }

    fn own_inventory(&self) -> Result<Vec<Info>, Error> {
        let topology = topology()?;
        let memory: u64 = topology.memories().iter().map(|memory| memory.bytes).sum();
        let mut values = vec![Info::new(keys::HOSTNAME, self.hostname())];
        values.extend(self.node_id.map(|id| Info::new(keys::NODEID, id)));
        values.push(Info::new(keys::AVAIL_PHYS_MEMORY, memory));
        values.push(Info::new(keys::TOPOLOGY_XML, topology.to_hwloc_xml()));
        let devices: Vec<Info> = fabric_devices(&topology).collect();
        if !devices.is_empty() {
            values.push(Info::new(keys::FABRIC_DEVICES, DataArray::of_infos(devices)));
        }
        Ok(values)
    }
}

fn delivery(info: &[Info], directives: &[Info]) -> ServerCall {
    ServerCall::DeliverInventory { info: info.to_vec(), directives: directives.to_vec() }
}

fn collected(own: Vec<Info>, known: ServerReturn) -> Result<Vec<Info>, Error> {
    let mut arrays = match known {
        ServerReturn::Infos(arrays) => arrays,
        other => return Err(unexpected(COLLECTION, &other)),
    };
    if own.is_empty() {
        return Ok(arrays);
    }
    let told = arrays.pop().and_then(|info| info.value.as_array().cloned());
    let told: Vec<Info> = told.iter().flat_map(|array| array.infos().cloned()).collect();
    // The host's values override the kernel's.
    let unsaid = own.into_iter().filter(|one| told.as_slice().find(one.key.as_str()).is_none());
    let all: Vec<Info> = unsaid.chain(told.iter().cloned()).collect();
    Ok(vec![Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(all))])
}

/// One `pmix.fabdev` per network interface and verbs device on a bus.
fn fabric_devices(topology: &Topology) -> impl Iterator<Item = Info> {
    topology.devices().iter().filter_map(|device| {
        let kind = match device.kind {
            DeviceKind::Network => "Ethernet",
            DeviceKind::OpenFabrics => "OpenFabrics",
            DeviceKind::Gpu => return None,
        };
        Some(Info::new(keys::FABRIC_DEVICE, DataArray::of_infos(described(device, kind))))
    })
}

fn described(device: &Device, kind: &str) -> Vec<Info> {
    let [vendor, product, ..] = device.pci.ids;
    let mut values = vec![
        Info::new(keys::FABRIC_DEVICE_NAME, device.name.as_str()),
        Info::new(keys::FABRIC_DEVICE_TYPE, kind),
        Info::new(keys::FABRIC_DEVICE_BUS_TYPE, "PCI"),
        Info::new(keys::FABRIC_DEVICE_PCI_DEVID, device.pci.address()),
        Info::new(keys::FABRIC_DEVICE_VENDORID, format!("{vendor:04x}:{product:04x}")),
    ];
    values.extend(device.address.first().map(|address| Info::new(keys::FABRIC_DEVICE_ADDRESS, &**address)));
    values
}

/// The directives of `PMIx_server_collect_inventory` that are honoured.
pub const ATTRIBUTES: &[&str] = &[keys::HOSTNAME];

const COLLECTION: &str = "collection of the inventory";
const DELIVERY: &str = "delivery of an inventory";
