//! Storage on a bus, and the details of PCI functions.

use std::fs;

use super::{Fact, FunctionDetails, Storage};
use crate::Topology;
use crate::device::PciId;
use crate::sysfs::Source;

/// hwloc's name for a fact of a disk, and the name that udev uses.
const DISK: &[(&str, &str)] = &[
    ("Vendor", "ID_VENDOR"),
    ("Model", "ID_MODEL"),
    ("Revision", "ID_REVISION"),
    ("SerialNumber", "ID_SERIAL_SHORT"),
];

/// Makers of disks by the beginning of the model's name, for disks that do not report their maker.
const MAKERS: &[(&str, &str)] = &[
    ("wd", "Western Digital"),
    ("st", "Seagate"),
    ("samsung", "Samsung"),
    ("sandisk", "SanDisk"),
    ("toshiba", "Toshiba"),
];

impl Source<'_> {
    /// Block devices on PCI, without their partitions.
    pub(super) fn storage(&self, topology: &Topology) -> Vec<Storage> {
        let entries = fs::read_dir(self.path("sys/class/block")).into_iter().flatten().flatten();
        let mut found: Vec<Storage> = entries
            .filter_map(|entry| {
                let target = fs::read_link(entry.path()).ok()?;
                let is_hidden = target.to_str()?.contains("/usb") || entry.path().join("partition").exists();
                let (pci, cpus) = self.bus_place(&target, topology.cpus()).filter(|_| !is_hidden)?;
                let name = entry.file_name().into_string().ok()?;
                let (facts, subtype) = self.block_device(&name);
                Some(Storage { name, pci, cpus, subtype, facts })
            })
            .collect();
        found.sort_by(|a, b| (&a.pci, &a.name).cmp(&(&b.pci, &b.name)));
        found
    }

    fn block_device(&self, name: &str) -> (Vec<Fact>, Option<&'static str>) {
        let text = |file| Some(self.text(&format!("sys/class/block/{name}/{file}"))?.trim().to_owned());
        let number = |file| text(file).and_then(|text| text.parse::<u64>().ok());
        // The kernel counts in units of 512 bytes, whatever the sector size.
        let kilobytes = number("size").map(|sectors| (sectors / 2).to_string());
        let sector = number("queue/hw_sector_size").filter(|size| *size > 0).map(|size| size.to_string());
        let device = text("dev");
        let told =
            device.as_ref().and_then(|id| self.text(&format!("run/udev/data/b{id}"))).unwrap_or_default();
        let told = |key: &str| {
            let mut lines = told.lines().filter_map(|line| line.strip_prefix("E:")?.split_once('='));
            lines.find(|(known, _)| *known == key).map(|(_, value)| value.to_owned())
        };
        let kernel = [("Size", kilobytes), ("SectorSize", sector), ("LinuxDeviceID", device)];
        let manager = DISK.iter().map(|(name, key)| match *name {
            "Vendor" => (*name, vendor(told(key), &told("ID_MODEL").unwrap_or_default())),
            _ => (*name, told(key)),
        });
        let facts = kernel.into_iter().chain(manager);
        let facts =
            facts.filter_map(|(name, value)| Some(Fact { name, value: value.filter(|v| !v.is_empty())? }));
        let subtype = match told("ID_TYPE").as_deref() {
            _ if text("device/devtype").is_some_and(|kind| kind.starts_with("nd_")) => Some("NVM"),
            Some("disk") => Some("Disk"),
            _ if name.starts_with("nvme") => Some("Disk"),
            Some("tape") => Some("Tape"),
            Some("cd" | "floppy" | "optical") => Some("Removable Media Device"),
            _ => None,
        };
        (facts.collect(), subtype)
    }

    /// The bus details of the functions of all devices.
    pub(super) fn functions(
        &self,
        topology: &Topology,
        storage: &[Storage],
    ) -> Vec<(PciId, FunctionDetails)> {
        let mut functions: Vec<&PciId> = topology.devices().iter().map(|device| &device.pci).collect();
        functions.extend(storage.iter().map(|device| &device.pci));
        functions.sort();
        functions.dedup();
        functions.into_iter().map(|pci| (pci.clone(), self.function(pci))).collect()
    }

    fn function(&self, pci: &PciId) -> FunctionDetails {
        let text =
            |name| self.text(&format!("sys/bus/pci/devices/{}/{name}", pci.address())).unwrap_or_default();
        let revision = text("revision");
        let (speed, width) = (text("current_link_speed"), text("current_link_width"));
        let lanes: f64 = width.trim().parse().unwrap_or(0.0);
        FunctionDetails {
            revision: u8::from_str_radix(revision.trim().trim_start_matches("0x"), 16).unwrap_or(0),
            link_speed: lane_speed(&speed) * lanes,
        }
    }
}

/// SATA disks report the bus as their vendor.
fn vendor(told: Option<String>, model: &str) -> Option<String> {
    let model = model.to_ascii_lowercase();
    let maker =
        || MAKERS.iter().find(|(start, _)| model.starts_with(start)).map(|(_, maker)| (*maker).to_owned());
    told.filter(|vendor| !vendor.is_empty() && !vendor.eq_ignore_ascii_case("ata")).or_else(maker)
}

/// Gigabytes of data per second on one lane, from the kernel's text: `8.0 GT/s PCIe`. Early releases of the bus spend two bits of ten on
/// the clock.
fn lane_speed(text: &str) -> f64 {
    let transfers: f64 = text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
    let share = if transfers <= 5.0 { 8.0 / 10.0 } else { 128.0 / 130.0 };
    transfers * share / 8.0
}
