//! Frees what C structures own, and leaves them empty. The structures themselves belong to their owners.

use std::cell::RefCell;

use phalanx_spec::DataType;

use crate::cmem;
use crate::element::{self, Storage};
use crate::hwloc::{hwloc, is_hwloc};
use crate::layout::*;
use crate::pointer::{Data, Opaque, Plain, Ptr, Tag};
use crate::to_c::OURS;

/// A structure that owns memory.
pub(crate) trait Release: Plain {
    /// The content of a new one.
    const EMPTY: Self;

    /// Frees what it owns, recursively.
    fn release(&self);
}

/// Frees what the structure owns, and empties it.
pub(crate) fn destruct<T: Release>(at: Ptr<T>) {
    if let Some(c) = at.read() {
        c.release();
        at.write(T::EMPTY);
    }
}

/// Frees an array and everything that its elements own.
pub(crate) fn free_array<T: Release>(at: Ptr<T>, count: usize) {
    at.items(count).for_each(|c| c.release());
    cmem::free(at);
}

thread_local! {
    /// What is inside of the elements that this thread frees, and comes after them. `None`: it frees nothing.
    static INSIDE: RefCell<Option<Vec<Elements>>> = const { RefCell::new(None) };
}

type Elements = (DataType, Ptr<Opaque>, usize);

/// Frees elements of a type and what they own, however deeply nested it is.
///
/// # Safety
/// `at` points to `count` elements of that type, or is NULL.
unsafe fn free_elements(of: DataType, at: Ptr<Opaque>, count: usize) {
    let starts = INSIDE.with_borrow_mut(|inside| match inside {
        Some(inside) => {
            inside.push((of, at, count));
            false
        }
        None => inside.replace(Vec::new()).is_none(),
    });
    let mut next = starts.then_some((of, at, count));
    while let Some((of, at, count)) = next {
        // SAFETY: the caller guarantees it; nothing else frees them in between.
        unsafe { elements(of, at, count) };
        cmem::free(at);
        next = INSIDE.with_borrow_mut(|inside| inside.as_mut().and_then(Vec::pop));
    }
    if starts {
        INSIDE.set(None);
    }
}

/// Frees what elements of a type own.
///
/// # Safety
/// `at` points to `count` elements of that type, or is NULL.
pub(crate) unsafe fn elements(of: DataType, at: Ptr<Opaque>, count: usize) {
    fn all<T: Release>(at: Ptr<Opaque>, count: usize) {
        // SAFETY: the caller guarantees it.
        unsafe { at.cast::<T>() }.items(count).for_each(|c| c.release());
    }
    match of {
        // SAFETY: the caller guarantees it.
        DataType::STRING => unsafe { at.cast::<Ptr<u8>>() }.items(count).for_each(cmem::free),
        DataType::VALUE => all::<pmix_value_t>(at, count),
        DataType::APP => all::<pmix_app_t>(at, count),
        DataType::INFO => all::<pmix_info_t>(at, count),
        DataType::PDATA => all::<pmix_pdata_t>(at, count),
        DataType::BYTE_OBJECT
        | DataType::COMPRESSED_STRING
        | DataType::COMPRESSED_BYTE_OBJECT
        | DataType::REGEX => all::<pmix_byte_object_t>(at, count),
        DataType::PROC_INFO => all::<pmix_proc_info_t>(at, count),
        DataType::DATA_ARRAY => all::<pmix_data_array_t>(at, count),
        DataType::QUERY => all::<pmix_query_t>(at, count),
        DataType::ENVAR => all::<pmix_envar_t>(at, count),
        DataType::COORD => all::<pmix_coord_t>(at, count),
        DataType::REGATTR => all::<pmix_regattr_t>(at, count),
        DataType::PROC_CPUSET => all::<pmix_cpuset_t>(at, count),
        DataType::TOPO => all::<pmix_topology_t>(at, count),
        DataType::GEOMETRY => all::<pmix_geometry_t>(at, count),
        DataType::DEVICE_DIST => all::<pmix_device_distance_t>(at, count),
        DataType::ENDPOINT => all::<pmix_endpoint_t>(at, count),
        DataType::PROC_STATS => all::<pmix_proc_stats_t>(at, count),
        DataType::DISK_STATS => all::<pmix_disk_stats_t>(at, count),
        DataType::NET_STATS => all::<pmix_net_stats_t>(at, count),
        DataType::NODE_STATS => all::<pmix_node_stats_t>(at, count),
        DataType::DATA_BUFFER => all::<pmix_data_buffer_t>(at, count),
        DataType::DEVICE => all::<pmix_device_t>(at, count),
        DataType::NODE_PID => all::<pmix_node_pid_t>(at, count),
        DataType::REGEX2 => all::<pmix_regex2_t>(at, count),
        // The other types own nothing.
        _ => {}
    }
}

/// Makes zeroed elements empty, where that is something else.
///
/// # Safety
/// There is room for `count` elements of that type.
pub(crate) unsafe fn empty(of: DataType, at: Ptr<Opaque>, count: usize) {
    fn all<T: Release>(at: Ptr<Opaque>, count: usize) {
        // SAFETY: the caller guarantees it.
        let at = unsafe { at.cast::<T>() };
        at.places(count).for_each(|place| place.write(T::EMPTY));
    }
    match of {
        DataType::PROC => all::<pmix_proc_t>(at, count),
        DataType::PROC_INFO => all::<pmix_proc_info_t>(at, count),
        DataType::PDATA => all::<pmix_pdata_t>(at, count),
        DataType::DEVICE_DIST => all::<pmix_device_distance_t>(at, count),
        DataType::NODE_PID => all::<pmix_node_pid_t>(at, count),
        DataType::PROC_STATS => all::<pmix_proc_stats_t>(at, count),
        _ => {}
    }
}

impl Release for pmix_value_t {
    const EMPTY: Self = pmix_value_t { type_: Tag::UNDEF, data: Data::ZERO };

    fn release(&self) {
        let of = self.type_.data_type();
        match element::place(of) {
            Storage::Inside => {
                let mut data = self.data;
                // SAFETY: the type identifies the union's member.
                unsafe { elements(of, Ptr::from_raw(&mut data).erased(), 1) };
            }
            Storage::Behind => {
                let behind = self.data.pointer();
                // SAFETY: the type identifies what it points to.
                unsafe { free_elements(of, behind, 1) };
            }
        }
    }
}

impl Release for pmix_data_array_t {
    const EMPTY: Self = pmix_data_array_t { type_: Tag::UNDEF, size: 0, array: Ptr::NULL };

    fn release(&self) {
        // SAFETY: the array's type identifies its elements.
        unsafe { free_elements(self.type_.data_type(), self.array, self.size) };
    }
}

/// Structures by their members: how each is freed, and the content of an empty one.
macro_rules! releases {
    ($($name:ident { $($field:ident: $empty:expr),+ $(,)? } |$c:ident| $body:block)+) => {$(
        impl Release for $name {
            const EMPTY: Self = $name { $($field: $empty),+ };

            fn release(&self) {
                let $c = self;
                $body
            }
        }
    )+};
}

const NO_PROC: pmix_proc_t = pmix_proc_t { nspace: [0; 256], rank: phalanx_spec::Rank::UNDEF.0 };
const NO_TIME: crate::pointer::Timeval = crate::pointer::Timeval { sec: 0, usec: 0 };

releases! {
    pmix_proc_t { nspace: [0; 256], rank: phalanx_spec::Rank::UNDEF.0 } |_c| {}
    pmix_info_t { key: [0; 512], flags: 0, value: pmix_value_t::EMPTY } |c| {
        // Values of persistent infos have another owner.
        if c.flags & phalanx_wire::InfoFlags::PERSISTENT.bits() == 0 {
            c.value.release();
        }
    }
    pmix_pdata_t { proc: NO_PROC, key: [0; 512], value: pmix_value_t::EMPTY } |c| { c.value.release() }
    pmix_byte_object_t { bytes: Ptr::NULL, size: 0 } |c| { cmem::free(c.bytes) }
    pmix_app_t {
        cmd: Ptr::NULL, argv: Ptr::NULL, env: Ptr::NULL, cwd: Ptr::NULL, maxprocs: 0, info: Ptr::NULL, ninfo: 0
    } |c| {
        cmem::free(c.cmd);
        cmem::free_argv(c.argv);
        cmem::free_argv(c.env);
        cmem::free(c.cwd);
        free_array(c.info, c.ninfo);
    }
    pmix_query_t { keys: Ptr::NULL, qualifiers: Ptr::NULL, nqual: 0 } |c| {
        cmem::free_argv(c.keys);
        free_array(c.qualifiers, c.nqual);
    }
    pmix_proc_info_t {
        proc: NO_PROC, hostname: Ptr::NULL, executable_name: Ptr::NULL, pid: 0, exit_code: 0, state: 0
    } |c| {
        cmem::free(c.hostname);
        cmem::free(c.executable_name);
    }
    pmix_envar_t { envar: Ptr::NULL, value: Ptr::NULL, separator: 0 } |c| {
        cmem::free(c.envar);
        cmem::free(c.value);
    }
    pmix_coord_t { view: 0, coord: Ptr::NULL, dims: 0 } |c| { cmem::free(c.coord) }
    pmix_regattr_t { name: Ptr::NULL, string: [0; 512], type_: 0, description: Ptr::NULL } |c| {
        cmem::free(c.name);
        cmem::free_argv(c.description);
    }
    pmix_cpuset_t { source: Ptr::NULL, bitmap: Ptr::NULL } |c| {
        match c.source.text() {
            Some(source) if source == OURS => cmem::free(c.bitmap),
            // Only hwloc can free what hwloc has allocated.
            Some(source) if is_hwloc(&source) && !c.bitmap.is_null() => {
                if let Some(hwloc) = hwloc() {
                    hwloc.free_bitmap(c.bitmap);
                }
            }
            _ => {}
        }
        cmem::free(c.source);
    }
    pmix_topology_t { source: Ptr::NULL, topology: Ptr::NULL } |c| {
        match c.source.text() {
            Some(source) if source == OURS => cmem::free(c.topology),
            Some(source) if is_hwloc(&source) && !c.topology.is_null() => {
                if let Some(hwloc) = hwloc() {
                    hwloc.destroy_topology(c.topology);
                }
            }
            _ => {}
        }
        cmem::free(c.source);
    }
    pmix_geometry_t { fabric: 0, uuid: Ptr::NULL, osname: Ptr::NULL, coordinates: Ptr::NULL, ncoords: 0 } |c| {
        cmem::free(c.uuid);
        cmem::free(c.osname);
        free_array(c.coordinates, c.ncoords);
    }
    pmix_device_distance_t {
        uuid: Ptr::NULL, osname: Ptr::NULL, type_: 0, mindist: u16::MAX, maxdist: u16::MAX
    } |c| {
        cmem::free(c.uuid);
        cmem::free(c.osname);
    }
    pmix_endpoint_t { uuid: Ptr::NULL, osname: Ptr::NULL, endpt: pmix_byte_object_t::EMPTY } |c| {
        cmem::free(c.uuid);
        cmem::free(c.osname);
        c.endpt.release();
    }
    pmix_device_t { uuid: Ptr::NULL, osname: Ptr::NULL, type_: 0 } |c| {
        cmem::free(c.uuid);
        cmem::free(c.osname);
    }
    pmix_resource_unit_t { type_: 0, count: 0 } |_c| {}
    pmix_node_pid_t { hostname: Ptr::NULL, nodeid: u32::MAX, pid: 0 } |c| { cmem::free(c.hostname) }
    pmix_regex2_t { type_: Ptr::NULL, bytes: Ptr::NULL, len: 0 } |c| {
        cmem::free(c.type_);
        cmem::free(c.bytes);
    }
    pmix_data_buffer_t {
        base_ptr: Ptr::NULL, pack_ptr: Ptr::NULL, unpack_ptr: Ptr::NULL, bytes_allocated: 0, bytes_used: 0
    } |c| { cmem::free(c.base_ptr) }
    pmix_fabric_t { name: Ptr::NULL, index: 0, info: Ptr::NULL, ninfo: 0, module: Ptr::NULL } |c| {
        cmem::free(c.name);
        free_array(c.info, c.ninfo);
    }
    pmix_proc_stats_t {
        node: Ptr::NULL, proc: NO_PROC, pid: 0, cmd: Ptr::NULL, state: 0, time: NO_TIME, priority: 0, num_threads: 0,
        pss: 0.0, vsize: 0.0, rss: 0.0, peak_vsize: 0.0, percent_cpu: 0.0, processor: 0, sample_time: NO_TIME
    } |c| {
        cmem::free(c.node);
        cmem::free(c.cmd);
    }
    pmix_disk_stats_t {
        disk: Ptr::NULL, num_reads_completed: 0, num_reads_merged: 0, num_sectors_read: 0, milliseconds_reading: 0,
        num_writes_completed: 0, num_writes_merged: 0, num_sectors_written: 0, milliseconds_writing: 0,
        num_ios_in_progress: 0, milliseconds_io: 0, weighted_milliseconds_io: 0
    } |c| { cmem::free(c.disk) }
    pmix_net_stats_t {
        net_interface: Ptr::NULL, num_bytes_recvd: 0, num_packets_recvd: 0, num_recv_errs: 0, num_bytes_sent: 0,
        num_packets_sent: 0, num_send_errs: 0
    } |c| { cmem::free(c.net_interface) }
    pmix_node_stats_t {
        node: Ptr::NULL, la: 0.0, la5: 0.0, la15: 0.0, total_mem: 0.0, free_mem: 0.0, buffers: 0.0, cached: 0.0,
        swap_cached: 0.0, swap_total: 0.0, swap_free: 0.0, mapped: 0.0, sample_time: NO_TIME, diskstats: Ptr::NULL,
        ndiskstats: 0, netstats: Ptr::NULL, nnetstats: 0
    } |c| {
        cmem::free(c.node);
        free_array(c.diskstats, c.ndiskstats);
        free_array(c.netstats, c.nnetstats);
    }
}
