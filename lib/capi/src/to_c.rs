//! Conversion of our values into C structures. What they own comes from the C allocator and belongs to the program.

use phalanx_spec::{DataType, Status};
use phalanx_wire::{
    App, Blob, Coord, DataArray, Device, DeviceDistance, DiskStats, Endpoint, Envar, Geometry, Info,
    NetStats, NodePid, NodeStats, Pdata, ProcId, ProcInfo, ProcStats, Query, Regattr, Regex2, ResourceUnit,
    Text, Timeval, TopologyBlob, Value,
};

use crate::client::topology::for_hwloc;
use crate::cmem;
use crate::element::{self, Storage};
use crate::hwloc::{HWLOC, hwloc};
use crate::layout::*;
use crate::pointer::{self, Data, Opaque, Ptr, Tag};

/// The `source` of cpusets and topologies that are text: the set's list, the topology's XML.
pub(crate) const OURS: &[u8] = b"phalanx";

pub(crate) fn value(value: &Value) -> Result<pmix_value_t, Status> {
    let of = value.data_type();
    let mut data = Data::ZERO;
    match (value, element::place(of)) {
        (Value::Undef, _) => {}
        // SAFETY: the union has room for types that are stored inside.
        (_, Storage::Inside) => unsafe { element::write(value, Ptr::from_raw(&mut data).erased()) }?,
        // SAFETY: it points to an element of the type that is put beside it here.
        (_, Storage::Behind) => data = unsafe { Data::of(boxed(value)?) },
    }
    // SAFETY: the union was just written for this type.
    Ok(pmix_value_t { type_: unsafe { Tag::of(of) }, data })
}

/// The value as a separately allocated element.
pub(crate) fn boxed(value: &Value) -> Result<Ptr<Opaque>, Status> {
    let size = element::size(value.data_type()).ok_or(Status::ERR_UNKNOWN_DATA_TYPE)?;
    let room: Ptr<Opaque> = cmem::array::<u8>(size).erased();
    // SAFETY: it has the size of such an element.
    unsafe { element::write(value, room) }.inspect_err(|_| cmem::free(room))?;
    Ok(room)
}

pub(crate) fn array(array: &DataArray) -> Result<pmix_data_array_t, Status> {
    let size = element::size(array.of).unwrap_or(0);
    let items: Vec<_> = array.items.iter().filter(|item| item.data_type() == array.of && size > 0).collect();
    let room: Ptr<u8> = cmem::array(size * items.len());
    for (index, item) in items.iter().enumerate() {
        // SAFETY: there is room for so many of that type.
        unsafe { element::write(item, room.at(index * size).erased()) }?;
    }
    // SAFETY: so many elements of that type were just written.
    let type_ = unsafe { Tag::of(array.of) };
    Ok(pmix_data_array_t { type_, size: items.len(), array: room.erased() })
}

/// An array of these infos, which it takes ownership of.
pub(crate) fn array_of_infos(infos: &[pmix_info_t]) -> pmix_data_array_t {
    let array = cmem::array_of(infos).erased();
    // SAFETY: the elements are infos.
    pmix_data_array_t { type_: unsafe { Tag::of(DataType::INFO) }, size: infos.len(), array }
}

pub(crate) fn info(info: &Info) -> Result<pmix_info_t, Status> {
    Ok(pmix_info_t { key: name(info.key.as_str()), flags: info.flags.bits(), value: value(&info.value)? })
}

pub(crate) fn infos(infos: &[Info]) -> Result<Ptr<pmix_info_t>, Status> {
    let all = infos.iter().map(info).collect::<Result<Vec<_>, _>>()?;
    Ok(cmem::array_of(&all))
}

pub(crate) fn pdata(pdata: &Pdata) -> Result<pmix_pdata_t, Status> {
    Ok(pmix_pdata_t { proc: proc(&pdata.proc), key: name(pdata.key.as_str()), value: value(&pdata.value)? })
}

pub(crate) fn proc(proc: &ProcId) -> pmix_proc_t {
    pmix_proc_t { nspace: name(proc.nspace.as_str()), rank: proc.rank.0 }
}

/// A name in its fixed array: truncated to what fits, padded with zeroes.
pub(crate) fn name<const N: usize>(name: &str) -> [u8; N] {
    let mut room = [0; N];
    for (to, from) in room.iter_mut().take(N - 1).zip(name.bytes()) {
        *to = from;
    }
    room
}

pub(crate) fn text(text: Option<&Text>) -> Ptr<u8> {
    text.map_or(Ptr::NULL, |text| cmem::text(text.as_bytes()))
}

pub(crate) fn argv(texts: &[Text]) -> Ptr<Ptr<u8>> {
    let texts: Vec<_> = texts.iter().map(Text::as_bytes).collect();
    cmem::argv(&texts)
}

pub(crate) fn size(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

pub(crate) fn blob(blob: &Blob) -> pmix_byte_object_t {
    pmix_byte_object_t { bytes: cmem::bytes(blob.as_bytes()), size: blob.len() }
}

pub(crate) fn data_buffer(blob: &Blob) -> pmix_data_buffer_t {
    let base = cmem::bytes(blob.as_bytes());
    pmix_data_buffer_t {
        base_ptr: base,
        // SAFETY: the end of what was just allocated.
        pack_ptr: unsafe { base.at(blob.len()) },
        unpack_ptr: base,
        bytes_allocated: blob.len(),
        bytes_used: blob.len(),
    }
}

pub(crate) fn timeval(time: Timeval) -> pointer::Timeval {
    pointer::Timeval { sec: time.sec, usec: time.usec }
}

pub(crate) fn app(app: &App) -> Result<pmix_app_t, Status> {
    Ok(pmix_app_t {
        cmd: text(app.cmd.as_ref()),
        argv: argv(&app.argv),
        env: argv(&app.env),
        cwd: text(app.cwd.as_ref()),
        maxprocs: app.max_procs,
        info: infos(&app.info)?,
        ninfo: app.info.len(),
    })
}

pub(crate) fn query(query: &Query) -> Result<pmix_query_t, Status> {
    Ok(pmix_query_t {
        keys: argv(&query.keys),
        qualifiers: infos(&query.qualifiers)?,
        nqual: query.qualifiers.len(),
    })
}

pub(crate) fn proc_info(info: &ProcInfo) -> pmix_proc_info_t {
    pmix_proc_info_t {
        proc: proc(&info.proc),
        hostname: text(info.hostname.as_ref()),
        executable_name: text(info.executable.as_ref()),
        pid: info.pid.cast_signed(),
        exit_code: 0,
        state: info.state.0,
    }
}

pub(crate) fn envar(envar: &Envar) -> pmix_envar_t {
    pmix_envar_t {
        envar: text(envar.name.as_ref()),
        value: text(envar.value.as_ref()),
        separator: envar.separator,
    }
}

pub(crate) fn coord(coord: &Coord) -> pmix_coord_t {
    pmix_coord_t { view: coord.view, coord: cmem::array_of(&coord.coord), dims: coord.coord.len() }
}

pub(crate) fn regattr(attribute: &Regattr) -> pmix_regattr_t {
    let key = attribute.key.as_ref().map_or_else(String::new, Text::to_string_lossy);
    pmix_regattr_t {
        name: text(attribute.name.as_ref()),
        string: name(&key),
        type_: attribute.data_type.0,
        description: argv(&attribute.description),
    }
}

/// A bitmap of hwloc's where there is hwloc, otherwise the set's list.
pub(crate) fn cpuset(list: &Option<Text>) -> pmix_cpuset_t {
    match for_hwloc(list.as_ref()).and_then(|list| hwloc()?.bitmap(&list)) {
        Some(bitmap) => pmix_cpuset_t { source: cmem::text(HWLOC), bitmap },
        None => pmix_cpuset_t { source: cmem::text(OURS), bitmap: text(list.as_ref()).erased() },
    }
}

/// A topology of hwloc's where there is hwloc, otherwise its XML.
pub(crate) fn topology(topology: &TopologyBlob) -> pmix_topology_t {
    match for_hwloc(topology.xml.as_ref()).and_then(|xml| hwloc()?.topology(Some(&xml))) {
        Some(topology) => pmix_topology_t { source: cmem::text(HWLOC), topology },
        None => pmix_topology_t { source: cmem::text(OURS), topology: text(topology.xml.as_ref()).erased() },
    }
}

pub(crate) fn geometry(geometry: &Geometry) -> pmix_geometry_t {
    let coordinates: Vec<_> = geometry.coordinates.iter().map(coord).collect();
    pmix_geometry_t {
        fabric: size(geometry.fabric),
        uuid: text(geometry.uuid.as_ref()),
        osname: text(geometry.os_name.as_ref()),
        coordinates: cmem::array_of(&coordinates),
        ncoords: coordinates.len(),
    }
}

pub(crate) fn device_distance(distance: &DeviceDistance) -> pmix_device_distance_t {
    pmix_device_distance_t {
        uuid: text(distance.uuid.as_ref()),
        osname: text(distance.os_name.as_ref()),
        type_: distance.device_type,
        mindist: distance.min,
        maxdist: distance.max,
    }
}

pub(crate) fn endpoint(endpoint: &Endpoint) -> pmix_endpoint_t {
    pmix_endpoint_t {
        uuid: text(endpoint.uuid.as_ref()),
        osname: text(endpoint.os_name.as_ref()),
        endpt: blob(&endpoint.bytes),
    }
}

pub(crate) fn device(device: &Device) -> pmix_device_t {
    pmix_device_t {
        uuid: text(device.uuid.as_ref()),
        osname: text(device.os_name.as_ref()),
        type_: device.device_type,
    }
}

pub(crate) fn resource_unit(unit: &ResourceUnit) -> pmix_resource_unit_t {
    pmix_resource_unit_t { type_: unit.device_type, count: size(unit.count) }
}

pub(crate) fn node_pid(node: &NodePid) -> pmix_node_pid_t {
    pmix_node_pid_t {
        hostname: text(node.hostname.as_ref()),
        nodeid: node.node_id,
        pid: node.pid.cast_signed(),
    }
}

pub(crate) fn regex2(regex: &Regex2) -> pmix_regex2_t {
    pmix_regex2_t {
        type_: text(regex.kind.as_ref()),
        bytes: cmem::bytes(regex.bytes.as_bytes()),
        len: regex.bytes.len(),
    }
}

pub(crate) fn proc_stats(stats: &ProcStats) -> pmix_proc_stats_t {
    pmix_proc_stats_t {
        node: text(stats.node.as_ref()),
        proc: proc(&stats.proc),
        pid: stats.pid.cast_signed(),
        cmd: text(stats.cmd.as_ref()),
        state: stats.state,
        time: timeval(stats.time),
        priority: stats.priority,
        num_threads: stats.threads.cast_unsigned(),
        pss: stats.pss,
        vsize: stats.vsize,
        rss: stats.rss,
        peak_vsize: 0.0,
        percent_cpu: 0.0,
        processor: stats.processor.cast_unsigned(),
        sample_time: timeval(stats.sample_time),
    }
}

pub(crate) fn disk_stats(stats: &DiskStats) -> pmix_disk_stats_t {
    let [
        num_reads_completed,
        num_reads_merged,
        num_sectors_read,
        milliseconds_reading,
        num_writes_completed,
        num_writes_merged,
        num_sectors_written,
        milliseconds_writing,
        num_ios_in_progress,
        milliseconds_io,
        weighted_milliseconds_io,
    ] = stats.counters;
    pmix_disk_stats_t {
        disk: text(stats.disk.as_ref()),
        num_reads_completed,
        num_reads_merged,
        num_sectors_read,
        milliseconds_reading,
        num_writes_completed,
        num_writes_merged,
        num_sectors_written,
        milliseconds_writing,
        num_ios_in_progress,
        milliseconds_io,
        weighted_milliseconds_io,
    }
}

pub(crate) fn net_stats(stats: &NetStats) -> pmix_net_stats_t {
    let [num_bytes_recvd, num_packets_recvd, num_recv_errs, num_bytes_sent, num_packets_sent, num_send_errs] =
        stats.counters;
    pmix_net_stats_t {
        net_interface: text(stats.interface.as_ref()),
        num_bytes_recvd,
        num_packets_recvd,
        num_recv_errs,
        num_bytes_sent,
        num_packets_sent,
        num_send_errs,
    }
}

pub(crate) fn node_stats(stats: &NodeStats) -> pmix_node_stats_t {
    let [la, la5, la15, total_mem, free_mem, buffers, cached, swap_cached, swap_total, swap_free, mapped] =
        stats.gauges;
    let disks: Vec<_> = stats.disks.iter().map(disk_stats).collect();
    let nets: Vec<_> = stats.nets.iter().map(net_stats).collect();
    pmix_node_stats_t {
        node: text(stats.node.as_ref()),
        la,
        la5,
        la15,
        total_mem,
        free_mem,
        buffers,
        cached,
        swap_cached,
        swap_total,
        swap_free,
        mapped,
        sample_time: timeval(stats.sample_time),
        diskstats: cmem::array_of(&disks),
        ndiskstats: disks.len(),
        netstats: cmem::array_of(&nets),
        nnetstats: nets.len(),
    }
}
