//! Network and compute devices on a bus: their names and the CPUs near them.
//!
//! Owns the device's description and its PMIx identifier. Devices without a bus address (loopback, bridges,
//! virtual functions of software) are near no CPU and never appear.
//!
//! Read by [`crate::sysfs`]; next stop are [`crate::DeviceDistance`] and the XML.

use crate::CpuSet;

/// The kinds of device that are read, with PMIx's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A graphics or compute processor with a render node.
    Gpu,
    /// A network interface of the kernel (`eth0`, `ib0`).
    Network,
    /// A verbs device (`mlx5_0`).
    OpenFabrics,
}

impl DeviceKind {
    /// All kinds, by their bit.
    pub const ALL: [DeviceKind; 3] = [DeviceKind::Gpu, DeviceKind::Network, DeviceKind::OpenFabrics];

    /// The bit of the kind in a `pmix_device_type_t` (`PMIX_DEVTYPE_*`).
    pub const fn bit(self) -> u64 {
        match self {
            DeviceKind::Gpu => 2,
            DeviceKind::Network => 4,
            DeviceKind::OpenFabrics => 8,
        }
    }
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The kind of the device.
    pub kind: DeviceKind,
    /// The kernel's name: `eth0`, `mlx5_0`, `renderD128`.
    pub name: String,
    /// Its place on the bus and the ids that the bus reports.
    pub pci: PciId,
    /// The CPUs near it; all CPUs of the node if the kernel does not know.
    pub cpus: CpuSet,
    /// The hardware address of a network interface, or the two GUIDs of a verbs device (node, system image).
    pub address: Vec<String>,
}

/// A PCI function.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PciId {
    /// Domain, bus, device and function, as in `0000:3b:00.0`.
    pub domain: u32,
    /// See `domain`.
    pub bus: u8,
    /// See `domain`.
    pub slot: u8,
    /// See `domain`.
    pub function: u8,
    /// Base class and subclass, e.g. 0x0200 for Ethernet.
    pub class: u16,
    /// Vendor, device, subsystem vendor, subsystem device.
    pub ids: [u16; 4],
}

impl PciId {
    /// Reads the address part, e.g. `0000:3b:00.0`.
    pub fn from_address(text: &str) -> Option<PciId> {
        let (rest, function) = text.rsplit_once('.')?;
        let mut parts = rest.split(':');
        let (domain, bus, slot) = (parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
            let good = digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
            good.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        Some(PciId {
            domain: hex(domain, 4..=8)?,
            bus: hex(bus, 2..=2)? as u8,
            slot: hex(slot, 2..=2)? as u8,
            function: hex(function, 1..=1)? as u8,
            ..PciId::default()
        })
        .filter(|_| parts.next().is_none())
    }

    /// The address part as text.
    pub fn address(&self) -> String {
        format!("{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.slot, self.function)
    }
}

impl Device {
    /// The identifier that PMIx reports (`PMIX_DEVICE_ID`), in the reference implementation's form. A GPU's
    /// contains the name of its node. `None` if the kernel did not report the address.
    pub fn uuid(&self, hostname: &str) -> Option<String> {
        match (self.kind, self.address.as_slice()) {
            (DeviceKind::Gpu, _) => Some(format!("gpu://{hostname}::{}", self.name)),
            // The scheme follows the length of the address: 6 bytes, or the 20 of IP over InfiniBand.
            (DeviceKind::Network, [address, ..]) => match address.split(':').count() {
                6 => Some(format!("ipv4://{address}")),
                20 => Some(format!("ipv6://{address}")),
                _ => None,
            },
            (DeviceKind::OpenFabrics, [node, system]) => Some(format!("fab://{node}::{system}")),
            _ => None,
        }
    }

    /// Removes what is specific to this machine.
    pub(crate) fn forget_identity(&mut self) {
        self.address.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_addresses() {
        let pci = PciId::from_address("0000:3b:0a.1").unwrap();
        assert_eq!((pci.domain, pci.bus, pci.slot, pci.function), (0, 0x3b, 10, 1));
        assert_eq!(pci.address(), "0000:3b:0a.1");
        assert_eq!(PciId::from_address("10000:01:00.0").unwrap().domain, 0x10000);
        for bad in ["virtio1", "pci0000:00", "0000:3b:0a", "0000:3b:0a.x", "0:3b:0a.1", "0000:3b:0a:1.0"] {
            assert_eq!(PciId::from_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn identifiers() {
        let mut device = Device {
            kind: DeviceKind::Network,
            name: "eth0".into(),
            pci: PciId::default(),
            cpus: CpuSet::single(0),
            address: vec!["02:fc:00:00:00:01".into()],
        };
        assert_eq!(device.uuid("n1").as_deref(), Some("ipv4://02:fc:00:00:00:01"));
        device.address.clear();
        assert_eq!(device.uuid("n1"), None);
        device.kind = DeviceKind::OpenFabrics;
        device.address = vec!["a:b".into(), "c:d".into()];
        assert_eq!(device.uuid("n1").as_deref(), Some("fab://a:b::c:d"));
        device.kind = DeviceKind::Gpu;
        device.name = "renderD128".into();
        assert_eq!(device.uuid("n1").as_deref(), Some("gpu://n1::renderD128"));
    }
}
