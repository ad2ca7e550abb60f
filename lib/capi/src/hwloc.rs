//! hwloc, opened at run time when it is installed: MPI libraries expect its objects in cpusets and topologies.
//!
//! Nothing of ours needs it. It is opened by its soname on first use, so that a copy that the program has loaded is found,
//! and never closed: programs keep objects that only it can free.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::cmem;
use crate::pointer::{Opaque, Ptr};

/// Prefix of the `source` of hwloc's cpusets and topologies.
pub(crate) const HWLOC: &[u8] = b"hwloc";

/// The functions of hwloc that we call.
#[derive(Clone, Copy)]
pub(crate) struct Hwloc {
    bitmap_alloc: extern "C" fn() -> *mut c_void,
    bitmap_free: extern "C" fn(*mut c_void),
    bitmap_list_asprintf: extern "C" fn(*mut *mut c_char, *const c_void) -> c_int,
    bitmap_list_sscanf: extern "C" fn(*mut c_void, *const c_char) -> c_int,
    topology_init: extern "C" fn(*mut *mut c_void) -> c_int,
    topology_set_xmlbuffer: extern "C" fn(*mut c_void, *const c_char, c_int) -> c_int,
    topology_set_io_types_filter: extern "C" fn(*mut c_void, c_int) -> c_int,
    topology_load: extern "C" fn(*mut c_void) -> c_int,
    topology_destroy: extern "C" fn(*mut c_void),
    topology_export_xmlbuffer: extern "C" fn(*mut c_void, *mut *mut c_char, *mut c_int, usize) -> c_int,
    free_xmlbuffer: extern "C" fn(*mut c_void, *mut c_char),
    topology_get_depth: extern "C" fn(*mut c_void) -> c_int,
    get_depth_type: extern "C" fn(*mut c_void, c_int) -> c_int,
    get_nbobjs_by_depth: extern "C" fn(*mut c_void, c_int) -> c_uint,
    obj_type_string: extern "C" fn(c_int) -> *const c_char,
}

/// hwloc 2, if this machine has it.
pub(crate) fn hwloc() -> Option<&'static Hwloc> {
    static FOUND: OnceLock<Option<Hwloc>> = OnceLock::new();
    FOUND.get_or_init(Hwloc::open).as_ref()
}

/// Whether a `source` names hwloc as the producer.
pub(crate) fn is_hwloc(source: &[u8]) -> bool {
    source.get(..HWLOC.len()).is_some_and(|start| start.eq_ignore_ascii_case(HWLOC))
}

impl Hwloc {
    #[expect(clippy::missing_transmute_annotations, reason = "the fields have the types")]
    fn open() -> Option<Hwloc> {
        // SAFETY: a library of the system, with initializers that do not affect us.
        let library = unsafe { libc::dlopen(SONAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: an open library and a C string.
            let at = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!at.is_null()).then_some(at)
        };
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the function of that name has this type in every release with this soname.
                unsafe { std::mem::transmute::<*mut c_void, _>(find($name)?) }
            };
        }
        Some(Hwloc {
            bitmap_alloc: function!(c"hwloc_bitmap_alloc"),
            bitmap_free: function!(c"hwloc_bitmap_free"),
            bitmap_list_asprintf: function!(c"hwloc_bitmap_list_asprintf"),
            bitmap_list_sscanf: function!(c"hwloc_bitmap_list_sscanf"),
            topology_init: function!(c"hwloc_topology_init"),
            topology_set_xmlbuffer: function!(c"hwloc_topology_set_xmlbuffer"),
            topology_set_io_types_filter: function!(c"hwloc_topology_set_io_types_filter"),
            topology_load: function!(c"hwloc_topology_load"),
            topology_destroy: function!(c"hwloc_topology_destroy"),
            topology_export_xmlbuffer: function!(c"hwloc_topology_export_xmlbuffer"),
            free_xmlbuffer: function!(c"hwloc_free_xmlbuffer"),
            topology_get_depth: function!(c"hwloc_topology_get_depth"),
            get_depth_type: function!(c"hwloc_get_depth_type"),
            get_nbobjs_by_depth: function!(c"hwloc_get_nbobjs_by_depth"),
            obj_type_string: function!(c"hwloc_obj_type_string"),
        })
    }

    /// A bitmap of the CPUs in this list (`0-3,8`); the program frees it.
    pub(crate) fn bitmap(&self, list: &CStr) -> Option<Ptr<Opaque>> {
        let bitmap = (self.bitmap_alloc)();
        if bitmap.is_null() {
            return None;
        }
        if (self.bitmap_list_sscanf)(bitmap, list.as_ptr()) < 0 {
            (self.bitmap_free)(bitmap);
            return None;
        }
        // SAFETY: an opaque pointer, which is not followed.
        Some(unsafe { Ptr::from_raw(bitmap.cast()) })
    }

    /// The list form of a bitmap.
    pub(crate) fn list(&self, bitmap: Ptr<Opaque>) -> Option<Vec<u8>> {
        let mut text = std::ptr::null_mut();
        if (self.bitmap_list_asprintf)(&mut text, bitmap.raw().cast()) < 0 {
            return None;
        }
        // SAFETY: a C string that hwloc has just allocated.
        let text: Ptr<u8> = unsafe { Ptr::from_raw(text.cast()) };
        let list = text.text();
        cmem::free(text);
        list
    }

    pub(crate) fn free_bitmap(&self, bitmap: Ptr<Opaque>) {
        (self.bitmap_free)(bitmap.raw().cast());
    }

    /// The topology of this machine, or the one that an XML text describes; the program destroys it.
    pub(crate) fn topology(&self, xml: Option<&CStr>) -> Option<Ptr<Opaque>> {
        let mut topology = std::ptr::null_mut();
        if (self.topology_init)(&mut topology) < 0 {
            return None;
        }
        let described = xml.is_none_or(|xml| {
            let length = c_int::try_from(xml.to_bytes_with_nul().len());
            length.is_ok_and(|length| (self.topology_set_xmlbuffer)(topology, xml.as_ptr(), length) == 0)
        });
        // Without this, devices are left out.
        (self.topology_set_io_types_filter)(topology, KEEP_IMPORTANT);
        if described && (self.topology_load)(topology) == 0 {
            // SAFETY: an opaque pointer, which is not followed.
            return Some(unsafe { Ptr::from_raw(topology.cast()) });
        }
        (self.topology_destroy)(topology);
        None
    }

    pub(crate) fn xml(&self, topology: Ptr<Opaque>) -> Option<Vec<u8>> {
        let (mut text, mut length) = (std::ptr::null_mut(), 0);
        let topology: *mut c_void = topology.raw().cast();
        if (self.topology_export_xmlbuffer)(topology, &mut text, &mut length, 0) < 0 {
            return None;
        }
        // SAFETY: a C string, valid until it is freed.
        let xml = unsafe { Ptr::<u8>::from_raw(text.cast()) }.text();
        (self.free_xmlbuffer)(topology, text);
        xml
    }

    /// The number of objects of each type, from the machine down, as `lstopo --only` and `hwloc-info` count them.
    pub(crate) fn summary(&self, topology: Ptr<Opaque>) -> String {
        let topology: *mut c_void = topology.raw().cast();
        let levels = (0..(self.topology_get_depth)(topology)).chain([NUMA_DEPTH]);
        let count = |depth| {
            let count = (self.get_nbobjs_by_depth)(topology, depth);
            let name = (self.obj_type_string)((self.get_depth_type)(topology, depth)).cast_mut();
            // SAFETY: a C string with static lifetime, or NULL.
            let name = unsafe { Ptr::<u8>::from_raw(name.cast()) }.text()?;
            (count > 0).then(|| format!("{count} {}", String::from_utf8_lossy(&name)))
        };
        levels.filter_map(count).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn destroy_topology(&self, topology: Ptr<Opaque>) {
        (self.topology_destroy)(topology.raw().cast());
    }
}

/// `HWLOC_TYPE_DEPTH_NUMANODE`
const NUMA_DEPTH: c_int = -3;
const SONAME: &CStr = c"libhwloc.so.15";
/// `HWLOC_TYPE_FILTER_KEEP_IMPORTANT`
const KEEP_IMPORTANT: c_int = 3;
