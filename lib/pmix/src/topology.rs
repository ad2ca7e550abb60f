//! The hardware of this node, and the part that this process may use.

use std::path::Path;

use phalanx_topo::{CpuSet, Topology};
use phalanx_wire::{DeviceDistance, Text};

use crate::error::Error;

/// Packages, caches, cores and devices of this node, as the kernel describes them (`PMIx_Load_topology`).
pub fn topology() -> Result<Topology, Error> {
    Topology::read(Path::new("/")).map_err(|source| Error::Topology { source })
}

/// The CPUs that this process may run on (`PMIx_Get_cpuset`).
pub fn process_cpus() -> Result<CpuSet, Error> {
    cpus_of(Some(rustix::process::getpid()))
}

/// The CPUs that the calling thread may run on.
pub fn thread_cpus() -> Result<CpuSet, Error> {
    cpus_of(None)
}

/// The distances of this node's devices from these CPUs (`PMIx_Compute_distances`); `host` is the node's name.
pub fn device_distances(host: &str, cpus: &CpuSet) -> Result<Vec<DeviceDistance>, Error> {
    let topology = topology()?;
    let told = topology.device_distances(cpus).into_iter().map(|one| DeviceDistance {
        uuid: one.device.uuid(host).map(|uuid| Text::from(uuid.as_str())),
        os_name: Some(Text::from(one.device.name.as_str())),
        device_type: one.device.kind.bit(),
        min: one.nearest,
        max: one.farthest,
    });
    Ok(told.collect())
}

/// These CPUs in the form of `pmix.cpuset` (`PMIx_server_generate_cpuset_string`).
pub fn cpuset_string(cpus: &CpuSet) -> String {
    format!("hwloc:{cpus}")
}

/// The packages, caches, cores ... of this node that contain these CPUs, in the form of `pmix.locstr`
/// (`PMIx_server_generate_locality_string`).
pub fn locality_string(cpus: &CpuSet) -> Result<String, Error> {
    Ok(format!("hwloc:{}", topology()?.locality_string(cpus)))
}

fn cpus_of(process: Option<rustix::process::Pid>) -> Result<CpuSet, Error> {
    let set = rustix::thread::sched_getaffinity(process).map_err(|errno| Error::System {
        doing: "asking on which CPUs this process may run",
        source: errno.into(),
    })?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}
