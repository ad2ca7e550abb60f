//! Creating and freeing structures, which the macros of the older headers did inside programs.
//!
//! `construct` empties a structure without looking at its content, `create` allocates an array of empty ones, `destruct`
//! frees what one owns, `free` an array and everything that its elements own.

use phalanx_spec::DataType;
use phalanx_wire::InfoFlags;

use crate::guard::exported;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr, Tag};
use crate::release::{self, Release, destruct, free_array};
use crate::{cmem, element};

macro_rules! lives {
    ($($type:ty: $construct:ident $create:ident $destruct:ident $free:ident)+) => {$(
        lives! { construct $type: $construct }
        lives! { create $type: $create }
        lives! { destruct $type: $destruct }
        lives! { free $type: $free }
    )+};
    (construct $type:ty: $name:ident) => {
        exported! {
            fn $name(at: Ptr<$type>) {
                at.write(<$type>::EMPTY);
            }
        }
    };
    (create $type:ty: $name:ident) => {
        exported! {
            fn $name(count: usize) -> Ptr<$type> {
                created(count)
            }
        }
    };
    (destruct $type:ty: $name:ident) => {
        exported! {
            fn $name(at: Ptr<$type>) {
                destruct(at);
            }
        }
    };
    (free $type:ty: $name:ident) => {
        exported! {
            fn $name(at: Ptr<$type>, count: usize) {
                free_array(at, count);
            }
        }
    };
}

lives! {
    pmix_app_t: PMIx_App_construct PMIx_App_create PMIx_App_destruct PMIx_App_free
    pmix_byte_object_t:
        PMIx_Byte_object_construct PMIx_Byte_object_create PMIx_Byte_object_destruct PMIx_Byte_object_free
    pmix_cpuset_t: PMIx_Cpuset_construct PMIx_Cpuset_create PMIx_Cpuset_destruct PMIx_Cpuset_free
    pmix_device_t: PMIx_Device_construct PMIx_Device_create PMIx_Device_destruct PMIx_Device_free
    pmix_device_distance_t: PMIx_Device_distance_construct PMIx_Device_distance_create
        PMIx_Device_distance_destruct PMIx_Device_distance_free
    pmix_disk_stats_t:
        PMIx_Disk_stats_construct PMIx_Disk_stats_create PMIx_Disk_stats_destruct PMIx_Disk_stats_free
    pmix_endpoint_t: PMIx_Endpoint_construct PMIx_Endpoint_create PMIx_Endpoint_destruct PMIx_Endpoint_free
    pmix_envar_t: PMIx_Envar_construct PMIx_Envar_create PMIx_Envar_destruct PMIx_Envar_free
    pmix_geometry_t: PMIx_Geometry_construct PMIx_Geometry_create PMIx_Geometry_destruct PMIx_Geometry_free
    pmix_net_stats_t: PMIx_Net_stats_construct PMIx_Net_stats_create PMIx_Net_stats_destruct PMIx_Net_stats_free
    pmix_node_pid_t: PMIx_Node_pid_construct PMIx_Node_pid_create PMIx_Node_pid_destruct PMIx_Node_pid_free
    pmix_node_stats_t:
        PMIx_Node_stats_construct PMIx_Node_stats_create PMIx_Node_stats_destruct PMIx_Node_stats_free
    pmix_pdata_t: PMIx_Pdata_construct PMIx_Pdata_create PMIx_Pdata_destruct PMIx_Pdata_free
    pmix_proc_t: PMIx_Proc_construct PMIx_Proc_create PMIx_Proc_destruct PMIx_Proc_free
    pmix_proc_info_t: PMIx_Proc_info_construct PMIx_Proc_info_create PMIx_Proc_info_destruct PMIx_Proc_info_free
    pmix_proc_stats_t:
        PMIx_Proc_stats_construct PMIx_Proc_stats_create PMIx_Proc_stats_destruct PMIx_Proc_stats_free
    pmix_query_t: PMIx_Query_construct PMIx_Query_create PMIx_Query_destruct PMIx_Query_free
    pmix_regattr_t: PMIx_Regattr_construct PMIx_Regattr_create PMIx_Regattr_destruct PMIx_Regattr_free
    pmix_regex2_t: PMIx_Regex2_construct PMIx_Regex2_create PMIx_Regex2_destruct PMIx_Regex2_free
    pmix_resource_unit_t: PMIx_Resource_unit_construct PMIx_Resource_unit_create
        PMIx_Resource_unit_destruct PMIx_Resource_unit_free
    pmix_topology_t: PMIx_Topology_construct PMIx_Topology_create PMIx_Topology_destruct PMIx_Topology_free
    pmix_value_t: PMIx_Value_construct PMIx_Value_create PMIx_Value_destruct PMIx_Value_free
}

lives! { construct pmix_info_t: PMIx_Info_construct }
lives! { destruct pmix_info_t: PMIx_Info_destruct }
lives! { free pmix_info_t: PMIx_Info_free }
lives! { construct pmix_coord_t: PMIx_Coord_construct }
lives! { destruct pmix_coord_t: PMIx_Coord_destruct }
lives! { free pmix_coord_t: PMIx_Coord_free }
lives! { construct pmix_fabric_t: PMIx_Fabric_construct }
lives! { construct pmix_data_buffer_t: PMIx_Data_buffer_construct }
lives! { destruct pmix_data_buffer_t: PMIx_Data_buffer_destruct }
lives! { destruct pmix_data_array_t: PMIx_Data_array_destruct }

exported! {
    /// The last element is marked as the end of the array.
    fn PMIx_Info_create(count: usize) -> Ptr<pmix_info_t> {
        infos(count)
    }

    fn PMIx_Coord_create(dims: usize, number: usize) -> Ptr<pmix_coord_t> {
        let room = created::<pmix_coord_t>(number);
        for place in room.places(number) {
            place.write(pmix_coord_t { view: 0, coord: cmem::array(dims), dims });
        }
        room
    }

    fn PMIx_App_info_create(at: Ptr<pmix_app_t>, count: usize) {
        if let Some(app) = at.read() {
            at.write(pmix_app_t { info: infos(count), ninfo: count, ..app });
        }
    }

    fn PMIx_App_release(at: Ptr<pmix_app_t>) {
        free_array(at, 1);
    }

    fn PMIx_Query_qualifiers_create(at: Ptr<pmix_query_t>, count: usize) {
        if let Some(query) = at.read() {
            at.write(pmix_query_t { qualifiers: infos(count), nqual: count, ..query });
        }
    }

    fn PMIx_Query_release(at: Ptr<pmix_query_t>) {
        free_array(at, 1);
    }

    /// The object takes ownership of the bytes.
    fn PMIx_Byte_object_load(at: Ptr<pmix_byte_object_t>, bytes: Ptr<u8>, size: usize) {
        at.write(pmix_byte_object_t { bytes, size });
    }

    fn PMIx_Envar_load(at: Ptr<pmix_envar_t>, name: Ptr<u8>, value: Ptr<u8>, separator: u8) {
        at.write(pmix_envar_t { envar: copied(name), value: copied(value), separator });
    }

    /// The description's lines are separated by line feeds.
    fn PMIx_Regattr_load(
        at: Ptr<pmix_regattr_t>, name: Ptr<u8>, key: Ptr<u8>, data_type: u16, description: Ptr<u8>,
    ) {
        let lines = description.text().unwrap_or_default();
        let lines: Vec<&[u8]> = if lines.is_empty() { Vec::new() } else { lines.split(|b| *b == b'\n').collect() };
        at.write(pmix_regattr_t {
            name: copied(name),
            string: crate::names::fixed(key),
            type_: data_type,
            description: cmem::argv(&lines),
        });
    }

    fn PMIx_Regattr_xfer(to: Ptr<pmix_regattr_t>, from: Ptr<pmix_regattr_t>) {
        if let Some(c) = from.read() {
            to.write(crate::to_c::regattr(&crate::from_c::regattr(&c)));
        }
    }

    fn PMIx_Data_array_init(at: Ptr<pmix_data_array_t>, of: u16) {
        // SAFETY: it is empty; the program determines the type of its elements.
        at.write(pmix_data_array_t { type_: unsafe { Tag::of(DataType(of)) }, size: 0, array: Ptr::NULL });
    }

    fn PMIx_Data_array_construct(at: Ptr<pmix_data_array_t>, count: usize, of: u16) {
        at.write(array(count, DataType(of)));
    }

    fn PMIx_Data_array_create(count: usize, of: u16) -> Ptr<pmix_data_array_t> {
        cmem::one(array(count, DataType(of)))
    }

    fn PMIx_Data_array_free(at: Ptr<pmix_data_array_t>) {
        free_array(at, 1);
    }
}

fn created<T: Release>(count: usize) -> Ptr<T> {
    let room = cmem::array(count);
    room.places(count).for_each(|place| place.write(T::EMPTY));
    room
}

fn infos(count: usize) -> Ptr<pmix_info_t> {
    let room = created::<pmix_info_t>(count);
    if let Some(last) = room.places(count).last() {
        last.write(pmix_info_t { flags: InfoFlags::ARRAY_END.bits(), ..pmix_info_t::EMPTY });
    }
    room
}

/// Has no elements if the type has no C form.
fn array(count: usize, of: DataType) -> pmix_data_array_t {
    let size = element::size(of).unwrap_or(0);
    let room: Ptr<Opaque> = cmem::array::<u8>(count.saturating_mul(size)).erased();
    if size > 0 {
        // SAFETY: there is room for so many of that type, or none at all, which is NULL.
        unsafe { release::empty(of, room, count) };
    }
    // SAFETY: as above.
    let type_ = unsafe { Tag::of(of) };
    pmix_data_array_t { type_, size: if size == 0 { 0 } else { count }, array: room }
}

fn copied(text: Ptr<u8>) -> Ptr<u8> {
    text.text().map_or(Ptr::NULL, |text| cmem::text(&text))
}
