//! Conversion of C structures into our values. Everything is copied; no pointer of the program's is kept.
//!
//! Names that are not UTF-8 or too long, and values that are nested too deeply, are refused with `PMIX_ERR_BAD_PARAM`; other
//! text is accepted unchanged.

use phalanx_spec::{DataType, ProcState, Rank, Status};
use phalanx_wire::{
    App, Blob, Coord, DataArray, Device, DeviceDistance, DiskStats, Endpoint, Envar, Geometry, Info,
    InfoFlags, Key, NetStats, NodePid, NodeStats, Nspace, Pdata, ProcId, ProcInfo, ProcStats, Query, Regattr,
    Regex2, ResourceUnit, Text, Timeval, TopologyBlob, Value,
};

use crate::cmem;
use crate::element::{self, Storage};
use crate::guard::BAD;
use crate::hwloc::{hwloc, is_hwloc};
use crate::layout::*;
use crate::nesting::deeper;
use crate::pointer::{self, Opaque, Ptr};
use crate::to_c::OURS;

pub(crate) fn value(c: &pmix_value_t) -> Result<Value, Status> {
    deeper(|| content(c))
}

fn content(c: &pmix_value_t) -> Result<Value, Status> {
    let of = c.type_.data_type();
    match element::place(of) {
        _ if of == DataType::UNDEF => Ok(Value::Undef),
        Storage::Inside => {
            let mut data = c.data;
            // SAFETY: the type identifies the union's member.
            unsafe { element::read(of, Ptr::from_raw(&mut data).erased()) }
        }
        Storage::Behind => {
            let behind = c.data.pointer();
            // A NULL in place of a structure means no value.
            // SAFETY: the type identifies what it points to.
            if behind.is_null() { Ok(Value::Undef) } else { unsafe { element::read(of, behind) } }
        }
    }
}

pub(crate) fn array(c: &pmix_data_array_t) -> Result<DataArray, Status> {
    let of = c.type_.data_type();
    // SAFETY: the array's type identifies its elements.
    Ok(DataArray { of, items: unsafe { elements(of, c.array, c.size) }? })
}

/// Reads consecutive elements of one type.
///
/// # Safety
/// `at` points to `count` elements of type `of`, or is NULL.
pub(crate) unsafe fn elements(of: DataType, at: Ptr<Opaque>, count: usize) -> Result<Vec<Value>, Status> {
    if at.is_null() || of == DataType::UNDEF {
        return Ok(Vec::new());
    }
    let size = element::size(of).ok_or(Status::ERR_UNKNOWN_DATA_TYPE)?;
    // SAFETY: the caller guarantees it.
    let one = |index| deeper(|| unsafe { element::read(of, at.cast::<u8>().at(index * size).erased()) });
    (0..count).map(one).collect()
}

pub(crate) fn info(c: &pmix_info_t) -> Result<Info, Status> {
    Ok(Info { key: key_of(&c.key)?, flags: InfoFlags::from_bits_retain(c.flags), value: value(&c.value)? })
}

/// An array of infos, up to `count` or to the one that is marked as the end.
pub(crate) fn infos(at: Ptr<pmix_info_t>, count: usize) -> Result<Vec<Info>, Status> {
    at.items(count).map(|c| info(&c)).collect()
}

/// Like [`infos`], but skips infos that cannot be read and are not required: hosts pass pointers of their own among the
/// rest.
pub(crate) fn readable_infos(at: Ptr<pmix_info_t>, count: usize) -> Result<Vec<Info>, Status> {
    let required = |c: &pmix_info_t| c.flags & InfoFlags::REQUIRED.bits() != 0;
    let readable = |c: pmix_info_t| match info(&c) {
        Err(_) if !required(&c) => None,
        result => Some(result),
    };
    at.items(count).filter_map(readable).collect()
}

pub(crate) fn pdata(c: &pmix_pdata_t) -> Result<Pdata, Status> {
    Ok(Pdata { proc: proc(&c.proc)?, key: key_of(&c.key)?, value: value(&c.value)? })
}

pub(crate) fn proc(c: &pmix_proc_t) -> Result<ProcId, Status> {
    Ok(ProcId { nspace: nspace(&c.nspace)?, rank: Rank(c.rank) })
}

pub(crate) fn procs(at: Ptr<pmix_proc_t>, count: usize) -> Result<Vec<ProcId>, Status> {
    at.items(count).map(|c| proc(&c)).collect()
}

/// A namespace from its fixed array.
pub(crate) fn nspace(c: &[u8]) -> Result<Nspace, Status> {
    text_until_nul(c).and_then(|name| Nspace::new(name).ok()).ok_or(BAD)
}

fn key_of(c: &[u8]) -> Result<Key, Status> {
    text_until_nul(c).and_then(|name| Key::new(name).ok()).ok_or(BAD)
}

/// A string that cannot be absent, such as a key.
pub(crate) fn name(c: Ptr<u8>) -> Result<String, Status> {
    String::from_utf8(c.text().ok_or(BAD)?).map_err(|_| BAD)
}

pub(crate) fn key(c: Ptr<u8>) -> Result<Key, Status> {
    Key::new(&name(c)?).map_err(|_| BAD)
}

pub(crate) fn text(c: Ptr<u8>) -> Option<Text> {
    c.text().map(|bytes| Text::from_bytes(&bytes))
}

/// A NULL-terminated array of strings.
pub(crate) fn argv(c: Ptr<Ptr<u8>>) -> Vec<Text> {
    cmem::strings(c).into_iter().filter_map(text).collect()
}

/// A NULL-terminated array of keys.
pub(crate) fn keys(c: Ptr<Ptr<u8>>) -> Result<Vec<Key>, Status> {
    cmem::strings(c).into_iter().map(key).collect()
}

pub(crate) fn blob(c: pmix_byte_object_t) -> Blob {
    Blob::from(c.bytes.bytes(c.size))
}

pub(crate) fn data_buffer(c: &pmix_data_buffer_t) -> Blob {
    Blob::from(c.base_ptr.bytes(c.bytes_used))
}

pub(crate) fn timeval(c: pointer::Timeval) -> Timeval {
    Timeval { sec: c.sec, usec: c.usec }
}

pub(crate) fn app(c: &pmix_app_t) -> Result<App, Status> {
    Ok(App {
        cmd: text(c.cmd),
        argv: argv(c.argv),
        env: argv(c.env),
        cwd: text(c.cwd),
        max_procs: c.maxprocs,
        info: infos(c.info, c.ninfo)?,
    })
}

pub(crate) fn query(c: &pmix_query_t) -> Result<Query, Status> {
    Ok(Query { keys: argv(c.keys), qualifiers: infos(c.qualifiers, c.nqual)? })
}

pub(crate) fn proc_info(c: &pmix_proc_info_t) -> Result<ProcInfo, Status> {
    Ok(ProcInfo {
        proc: proc(&c.proc)?,
        hostname: text(c.hostname),
        executable: text(c.executable_name),
        pid: c.pid.cast_unsigned(),
        state: ProcState(c.state),
    })
}

pub(crate) fn envar(c: &pmix_envar_t) -> Envar {
    Envar { name: text(c.envar), value: text(c.value), separator: c.separator }
}

pub(crate) fn coord(c: &pmix_coord_t) -> Coord {
    Coord { view: c.view, coord: c.coord.items(c.dims).collect() }
}

pub(crate) fn regattr(c: &pmix_regattr_t) -> Regattr {
    Regattr {
        name: text(c.name),
        key: Some(Text::from_bytes(&c.string)),
        data_type: DataType(c.type_),
        description: argv(c.description),
    }
}

/// The list form of a cpuset of hwloc's or of ours.
pub(crate) fn cpuset(c: &pmix_cpuset_t) -> Result<Option<Text>, Status> {
    match c.source.text() {
        _ if c.bitmap.is_null() => Ok(None),
        // SAFETY: a cpuset of ours is text.
        Some(source) if source == OURS => Ok(text(unsafe { c.bitmap.cast() })),
        Some(source) if is_hwloc(&source) => {
            let list = hwloc().and_then(|hwloc| hwloc.list(c.bitmap)).ok_or(Status::ERR_NOT_SUPPORTED)?;
            Ok(Some(Text::from_bytes(&list)))
        }
        _ => Err(Status::ERR_NOT_SUPPORTED),
    }
}

/// The XML of a topology, see [`cpuset`].
pub(crate) fn topology(c: &pmix_topology_t) -> Result<TopologyBlob, Status> {
    let xml = match c.source.text() {
        // SAFETY: a topology of ours is text.
        Some(source) if source == OURS => text(unsafe { c.topology.cast() }),
        Some(source) if is_hwloc(&source) && !c.topology.is_null() => {
            let xml = hwloc().and_then(|hwloc| hwloc.xml(c.topology)).ok_or(Status::ERR_NOT_SUPPORTED)?;
            Some(Text::from_bytes(&xml))
        }
        _ => return Err(Status::ERR_NOT_SUPPORTED),
    };
    Ok(TopologyBlob { xml, support: Vec::new() })
}

pub(crate) fn geometry(c: &pmix_geometry_t) -> Geometry {
    Geometry {
        fabric: c.fabric as u64,
        uuid: text(c.uuid),
        os_name: text(c.osname),
        coordinates: c.coordinates.items(c.ncoords).map(|one| coord(&one)).collect(),
    }
}

pub(crate) fn device_distance(c: &pmix_device_distance_t) -> DeviceDistance {
    DeviceDistance {
        uuid: text(c.uuid),
        os_name: text(c.osname),
        device_type: c.type_,
        min: c.mindist,
        max: c.maxdist,
    }
}

pub(crate) fn endpoint(c: &pmix_endpoint_t) -> Endpoint {
    Endpoint { uuid: text(c.uuid), os_name: text(c.osname), bytes: blob(c.endpt) }
}

pub(crate) fn device(c: &pmix_device_t) -> Device {
    Device { uuid: text(c.uuid), os_name: text(c.osname), device_type: c.type_ }
}

pub(crate) fn resource_unit(c: &pmix_resource_unit_t) -> ResourceUnit {
    ResourceUnit { device_type: c.type_, count: c.count as u64 }
}

pub(crate) fn node_pid(c: &pmix_node_pid_t) -> NodePid {
    NodePid { hostname: text(c.hostname), node_id: c.nodeid, pid: c.pid.cast_unsigned() }
}

pub(crate) fn regex2(c: &pmix_regex2_t) -> Regex2 {
    Regex2 { kind: text(c.type_), bytes: Blob::from(c.bytes.bytes(c.len)) }
}

pub(crate) fn proc_stats(c: &pmix_proc_stats_t) -> Result<ProcStats, Status> {
    Ok(ProcStats {
        node: text(c.node),
        proc: proc(&c.proc)?,
        pid: c.pid.cast_unsigned(),
        cmd: text(c.cmd),
        state: c.state,
        time: timeval(c.time),
        priority: c.priority,
        threads: c.num_threads.cast_signed(),
        pss: c.pss,
        vsize: c.vsize,
        rss: c.rss,
        processor: c.processor.cast_signed(),
        sample_time: timeval(c.sample_time),
    })
}

pub(crate) fn disk_stats(c: &pmix_disk_stats_t) -> DiskStats {
    DiskStats {
        disk: text(c.disk),
        counters: [
            c.num_reads_completed,
            c.num_reads_merged,
            c.num_sectors_read,
            c.milliseconds_reading,
            c.num_writes_completed,
            c.num_writes_merged,
            c.num_sectors_written,
            c.milliseconds_writing,
            c.num_ios_in_progress,
            c.milliseconds_io,
            c.weighted_milliseconds_io,
        ],
    }
}

pub(crate) fn net_stats(c: &pmix_net_stats_t) -> NetStats {
    NetStats {
        interface: text(c.net_interface),
        counters: [
            c.num_bytes_recvd,
            c.num_packets_recvd,
            c.num_recv_errs,
            c.num_bytes_sent,
            c.num_packets_sent,
            c.num_send_errs,
        ],
    }
}

pub(crate) fn node_stats(c: &pmix_node_stats_t) -> NodeStats {
    NodeStats {
        node: text(c.node),
        gauges: [
            c.la,
            c.la5,
            c.la15,
            c.total_mem,
            c.free_mem,
            c.buffers,
            c.cached,
            c.swap_cached,
            c.swap_total,
            c.swap_free,
            c.mapped,
        ],
        sample_time: timeval(c.sample_time),
        disks: c.diskstats.items(c.ndiskstats).map(|one| disk_stats(&one)).collect(),
        nets: c.netstats.items(c.nnetstats).map(|one| net_stats(&one)).collect(),
    }
}

pub(crate) fn text_until_nul(c: &[u8]) -> Option<&str> {
    let text = std::ffi::CStr::from_bytes_until_nul(c).map_or(c, std::ffi::CStr::to_bytes);
    std::str::from_utf8(text).ok()
}
