//! The hardware of this node: topology, cpusets, localities, distances to devices.
//!
//! Cpusets and topologies are hwloc's objects where hwloc is installed, as MPI libraries expect, otherwise texts of ours.
//! Localities and distances come from our own view of the hardware.

use std::ffi::CString;

use phalanx_spec::{Status, keys};
use phalanx_topo::Topology;
use phalanx_wire::DeviceDistance;
use pmix::{ClientCall, CpuSet, Info, Key, Lookup, LookupRequest, Text, Value};

use super::calls::{ReleaseCallback, submit};
use crate::guard::{BAD, Code, caught, exported};
use crate::held::{hold, take};
use crate::hwloc::{HWLOC, hwloc, is_hwloc};
use crate::instance::{Instance, instance, told};
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::value;
use crate::{cmem, from_c, to_c};

/// `pmix_device_dist_cbfunc_t`
type DistanceCallback = Option<
    extern "C" fn(Code, Ptr<pmix_device_distance_t>, usize, Ptr<Opaque>, ReleaseCallback, Ptr<Opaque>),
>;

exported! {
    /// This node's topology, a new one for each call; `PMIx_Topology_destruct` frees it. A program that names a source gets
    /// hwloc's or none.
    fn PMIx_Load_topology(to: Ptr<pmix_topology_t>) -> Code {
        instance()?;
        let wanted = to.read().ok_or(BAD)?.source.text();
        if wanted.is_some_and(|source| !is_hwloc(&source)) {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        let topology = hwloc().and_then(|hwloc| hwloc.topology(None)).ok_or(Status::ERR_NOT_SUPPORTED)?;
        cmem::free(to.read().map_or(Ptr::NULL, |old| old.source));
        to.write(pmix_topology_t { source: cmem::text(HWLOC), topology });
        Ok(())
    }

    /// The CPUs that this process, or the calling thread, may run on.
    fn PMIx_Get_cpuset(to: Ptr<pmix_cpuset_t>, of: u8) -> Code {
        instance()?;
        let wanted = to.read().ok_or(BAD)?.source;
        if wanted.text().is_some_and(|source| !is_hwloc(&source)) {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        let cpus = match of {
            PROCESS => pmix::process_cpus(),
            THREAD => pmix::thread_cpus(),
            _ => return Err(BAD),
        };
        let cpus = cpus.map_err(told)?;
        cmem::free(wanted);
        to.write(to_c::cpuset(&Some(Text::from(cpus.to_string().as_str()))));
        Ok(())
    }

    /// Takes `hwloc:0-3,8`, the form of `PMIx_server_generate_cpuset_string`.
    fn PMIx_Parse_cpuset_string(text: Ptr<u8>, to: Ptr<pmix_cpuset_t>) -> Code {
        parse(text, to)
    }

    fn PMIx_server_generate_cpuset(text: Ptr<u8>, to: Ptr<pmix_cpuset_t>) -> Code {
        parse(text, to)
    }

    fn PMIx_server_generate_cpuset_string(cpuset: Ptr<pmix_cpuset_t>, to: Ptr<Ptr<u8>>) -> Code {
        let cpus = listed(cpuset, to)?;
        to.write(cmem::text(pmix::cpuset_string(&cpus).as_bytes()));
        Ok(())
    }

    /// The packages, caches, cores ... of this node that contain these CPUs, for `PMIx_Get_relative_locality`.
    fn PMIx_server_generate_locality_string(cpuset: Ptr<pmix_cpuset_t>, to: Ptr<Ptr<u8>>) -> Code {
        let cpus = listed(cpuset, to)?;
        to.write(cmem::text(pmix::locality_string(&cpus).map_err(told)?.as_bytes()));
        Ok(())
    }

    /// What two processes of this node share, from their locality strings.
    fn PMIx_Get_relative_locality(one: Ptr<u8>, other: Ptr<u8>, to: Ptr<u16>) -> Code {
        instance()?;
        let (one, other) = (from_c::name(one)?, from_c::name(other)?);
        if to.is_null() {
            return Err(BAD);
        }
        to.write(Topology::relative_locality(&one, &other).map_err(|_| BAD)?);
        Ok(())
    }

    /// The distances of devices from these CPUs (NULL: this process's); `info` may select types and names of devices.
    fn PMIx_Compute_distances(
        topology: Ptr<pmix_topology_t>, cpuset: Ptr<pmix_cpuset_t>, info: Ptr<pmix_info_t>, count: usize,
        distances: Ptr<Ptr<pmix_device_distance_t>>, ndistances: Ptr<usize>,
    ) -> Code {
        let instance = instance()?;
        if distances.is_null() || ndistances.is_null() {
            return Err(BAD);
        }
        distances.write(Ptr::NULL);
        ndistances.write(0);
        let found = measured(&instance, topology, cpuset, &from_c::infos(info, count)?)?;
        distances.write(in_c(&found));
        ndistances.write(found.len());
        Ok(())
    }

    fn PMIx_Compute_distances_nb(
        topology: Ptr<pmix_topology_t>, cpuset: Ptr<pmix_cpuset_t>, info: Ptr<pmix_info_t>, count: usize,
        callback: DistanceCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        let instance = instance()?;
        let callback = callback.ok_or(BAD)?;
        let found = measured(&instance, topology, cpuset, &from_c::infos(info, count)?)?;
        // For a known value the progress thread answers at once, and the callback runs where all others do.
        let own = LookupRequest::new(instance.client.proc().clone(), None, &[Info::new(keys::OPTIONAL, true)]);
        submit(ClientCall::Get { request: own, info: vec![Info::new(keys::OPTIONAL, true)] }, move |_| {
            let array = in_c(&found);
            let all = hold((array, found.len()));
            callback(Status::SUCCESS.0, array, found.len(), cbdata, Some(release_distances), all);
        })
    }
}

/// `PMIX_TOPOLOGY2` of this process: this node's topology, with which it can be bound.
pub(crate) fn own_value() -> Result<pmix_value_t, Status> {
    let topology = hwloc().and_then(|hwloc| hwloc.topology(None)).ok_or(Status::ERR_NOT_FOUND)?;
    Ok(value::topology(pmix_topology_t { source: cmem::text(HWLOC), topology }))
}

fn parse(text: Ptr<u8>, to: Ptr<pmix_cpuset_t>) -> Result<(), Status> {
    instance()?;
    let text = from_c::name(text)?;
    if to.is_null() {
        return Err(BAD);
    }
    let (source, list) = text.split_once(':').ok_or(BAD)?;
    if !is_hwloc(source.as_bytes()) {
        return Err(Status::ERR_NOT_SUPPORTED);
    }
    let list = Text::from(list);
    cpus_in(&list)?;
    to.write(to_c::cpuset(&Some(list)));
    Ok(())
}

fn listed(cpuset: Ptr<pmix_cpuset_t>, to: Ptr<Ptr<u8>>) -> Result<CpuSet, Status> {
    instance()?;
    if to.is_null() {
        return Err(BAD);
    }
    cpus_in(&from_c::cpuset(&cpuset.read().ok_or(BAD)?)?.ok_or(BAD)?)
}

fn measured(
    instance: &Instance,
    topology: Ptr<pmix_topology_t>,
    cpuset: Ptr<pmix_cpuset_t>,
    info: &[Info],
) -> Result<Vec<DeviceDistance>, Status> {
    let source = topology.read().and_then(|c| c.source.text());
    if source.is_some_and(|source| !is_hwloc(&source) && source != to_c::OURS) {
        return Err(Status::ERR_NOT_SUPPORTED);
    }
    let list = cpuset.read().map(|c| from_c::cpuset(&c)).transpose()?.flatten();
    let cpus = match list {
        Some(list) => cpus_in(&list)?,
        None => pmix::process_cpus().map_err(told)?,
    };
    let name = LookupRequest::new(instance.client.proc().clone(), Some(Key::of(keys::HOSTNAME)), &[]);
    let host = match instance.client.known(&name) {
        Ok(Lookup::Hit(host)) => host.as_str().map(str::to_owned),
        _ => None,
    };
    chosen(pmix::device_distances(&host.unwrap_or_default(), &cpus).map_err(told)?, info)
}

fn cpus_in(list: &Text) -> Result<CpuSet, Status> {
    list.as_str().and_then(|list| CpuSet::from_list(list).ok()).ok_or(BAD)
}

/// The devices with the types and names that the caller selected; all if none was selected.
fn chosen(mut all: Vec<DeviceDistance>, info: &[Info]) -> Result<Vec<DeviceDistance>, Status> {
    let bits = info.iter().filter(|info| info.key == *keys::DEVICE_TYPE).map(|info| match &info.value {
        Value::DeviceType(bits) => *bits,
        other => other.as_u64().unwrap_or(0),
    });
    let bits = bits.fold(0, |all, bits| all | bits);
    let names: Vec<&str> = info
        .iter()
        .filter(|info| info.key == *keys::DEVICE_ID)
        .filter_map(|info| info.value.as_str())
        .collect();
    let is = |text: &Option<Text>, name: &str| {
        text.as_ref().and_then(Text::as_str).is_some_and(|text| text.eq_ignore_ascii_case(name))
    };
    all.retain(|one| bits == 0 || one.device_type & bits != 0);
    all.retain(|one| {
        names.is_empty() || names.iter().any(|name| is(&one.uuid, name) || is(&one.os_name, name))
    });
    if all.is_empty() { Err(Status::ERR_NOT_FOUND) } else { Ok(all) }
}

fn in_c(all: &[DeviceDistance]) -> Ptr<pmix_device_distance_t> {
    let all: Vec<_> = all.iter().map(to_c::device_distance).collect();
    cmem::array_of(&all)
}

extern "C" fn release_distances(all: Ptr<Opaque>) {
    caught(|| {
        if let Some(all) = take::<(Ptr<pmix_device_distance_t>, usize)>(all) {
            free_array(all.0, all.1);
        }
    });
}

/// A text for hwloc.
pub(crate) fn for_hwloc(text: Option<&Text>) -> Option<CString> {
    CString::new(text?.as_bytes()).ok()
}

// `pmix_bind_envelope_t`
const PROCESS: u8 = 0;
const THREAD: u8 = 1;
