//! The C layout of each data type: as an element of an array, and inside a `pmix_value_t`.
//!
//! One table, from which reading, writing and sizes are derived. `from_c.rs` and `to_c.rs` convert structures; `release.rs`
//! frees what they own.

use phalanx_spec::{
    AllocDirective, Command, DataType, IofChannel, JobState, LinkState, Persistence, ProcState, Range, Rank,
    Scope, Status,
};
use phalanx_wire::{InfoFlags, Value};

use crate::layout::*;
use crate::pointer::{Opaque, Ptr, Timeval};
use crate::{from_c, to_c};

/// Where a value keeps data of this type: in its union, or in memory that the union points to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Inside,
    Behind,
}

macro_rules! elements {
    ($($name:ident $place:ident $ctype:ty : $read:expr, $pattern:pat => $write:expr;)+) => {
        /// The size of one element; `None` for types without a C form.
        pub(crate) fn size(of: DataType) -> Option<usize> {
            Some(match of {
                $(DataType::$name => size_of::<$ctype>(),)+
                _ => return None,
            })
        }

        pub(crate) fn place(of: DataType) -> Storage {
            match of {
                $(DataType::$name => Storage::$place,)+
                _ => Storage::Inside,
            }
        }

        /// Reads the element at `at`, which is not NULL.
        ///
        /// # Safety
        /// `at` points to an element of type `of`.
        pub(crate) unsafe fn read(of: DataType, at: Ptr<Opaque>) -> Result<Value, Status> {
            match of {
                $(DataType::$name => {
                    let read: fn($ctype) -> Result<Value, Status> = $read;
                    // SAFETY: the caller guarantees it.
                    read(unsafe { at.cast::<$ctype>() }.read().ok_or(Status::ERR_BAD_PARAM)?)
                })+
                _ => Err(Status::ERR_UNKNOWN_DATA_TYPE),
            }
        }

        /// Writes a value where an element of its type belongs.
        ///
        /// # Safety
        /// There is room for one.
        pub(crate) unsafe fn write(value: &Value, at: Ptr<Opaque>) -> Result<(), Status> {
            match value {
                // SAFETY: the caller guarantees it.
                $($pattern => unsafe { at.cast::<$ctype>() }.write($write),)+
                _ => return Err(Status::ERR_UNKNOWN_DATA_TYPE),
            }
            Ok(())
        }
    };
}

elements! {
    BOOL Inside u8: |c| Ok(Value::Bool(c != 0)), Value::Bool(v) => u8::from(*v);
    BYTE Inside u8: |c| Ok(Value::Byte(c)), Value::Byte(v) => *v;
    STRING Inside Ptr<u8>: |c| Ok(from_c::text(c).map_or(Value::NullString, Value::String)),
        v @ (Value::String(_) | Value::NullString) => to_c::text(v.as_text());
    SIZE Inside usize: |c| Ok(Value::Size(c as u64)), Value::Size(v) => to_c::size(*v);
    PID Inside i32: |c| Ok(Value::Pid(c.cast_unsigned())), Value::Pid(v) => v.cast_signed();
    INT Inside i32: |c| Ok(Value::Int(c)), Value::Int(v) => *v;
    INT8 Inside i8: |c| Ok(Value::Int8(c)), Value::Int8(v) => *v;
    INT16 Inside i16: |c| Ok(Value::Int16(c)), Value::Int16(v) => *v;
    INT32 Inside i32: |c| Ok(Value::Int32(c)), Value::Int32(v) => *v;
    INT64 Inside i64: |c| Ok(Value::Int64(c)), Value::Int64(v) => *v;
    UINT Inside u32: |c| Ok(Value::Uint(c)), Value::Uint(v) => *v;
    UINT8 Inside u8: |c| Ok(Value::Uint8(c)), Value::Uint8(v) => *v;
    UINT16 Inside u16: |c| Ok(Value::Uint16(c)), Value::Uint16(v) => *v;
    UINT32 Inside u32: |c| Ok(Value::Uint32(c)), Value::Uint32(v) => *v;
    UINT64 Inside u64: |c| Ok(Value::Uint64(c)), Value::Uint64(v) => *v;
    FLOAT Inside f32: |c| Ok(Value::Float(c)), Value::Float(v) => *v;
    DOUBLE Inside f64: |c| Ok(Value::Double(c)), Value::Double(v) => *v;
    TIMEVAL Inside Timeval: |c| Ok(Value::Timeval(from_c::timeval(c))), Value::Timeval(v) => to_c::timeval(*v);
    TIME Inside i64: |c| Ok(Value::Time(c.cast_unsigned())), Value::Time(v) => v.cast_signed();
    STATUS Inside i32: |c| Ok(Value::Status(Status(c))), Value::Status(v) => v.0;
    VALUE Behind pmix_value_t: |c| Ok(Value::Value(Box::new(from_c::value(&c)?))), Value::Value(v) => to_c::value(v)?;
    PROC Behind pmix_proc_t: |c| Ok(Value::Proc(from_c::proc(&c)?)), Value::Proc(v) => to_c::proc(v);
    APP Behind pmix_app_t: |c| Ok(Value::App(Box::new(from_c::app(&c)?))), Value::App(v) => to_c::app(v)?;
    INFO Behind pmix_info_t: |c| Ok(Value::Info(Box::new(from_c::info(&c)?))), Value::Info(v) => to_c::info(v)?;
    PDATA Behind pmix_pdata_t: |c| Ok(Value::Pdata(Box::new(from_c::pdata(&c)?))), Value::Pdata(v) => to_c::pdata(v)?;
    BYTE_OBJECT Inside pmix_byte_object_t: |c| Ok(Value::ByteObject(from_c::blob(c))), Value::ByteObject(v) => to_c::blob(v);
    PERSIST Inside u8: |c| Ok(Value::Persistence(Persistence(c))), Value::Persistence(v) => v.0;
    POINTER Inside Ptr<Opaque>: |_| Ok(Value::Pointer), Value::Pointer => Ptr::NULL;
    SCOPE Inside u8: |c| Ok(Value::Scope(Scope(c))), Value::Scope(v) => v.0;
    DATA_RANGE Inside u8: |c| Ok(Value::Range(Range(c))), Value::Range(v) => v.0;
    COMMAND Inside u8: |c| Ok(Value::Command(Command(c))), Value::Command(v) => v.0;
    INFO_DIRECTIVES Inside u32: |c| Ok(Value::InfoFlags(InfoFlags::from_bits_retain(c))), Value::InfoFlags(v) => v.bits();
    DATA_TYPE Inside u16: |c| Ok(Value::DataType(DataType(c))), Value::DataType(v) => v.0;
    PROC_STATE Inside u8: |c| Ok(Value::ProcState(ProcState(c))), Value::ProcState(v) => v.0;
    PROC_INFO Behind pmix_proc_info_t: |c| Ok(Value::ProcInfo(Box::new(from_c::proc_info(&c)?))),
        Value::ProcInfo(v) => to_c::proc_info(v);
    DATA_ARRAY Behind pmix_data_array_t: |c| Ok(Value::DataArray(Box::new(from_c::array(&c)?))),
        Value::DataArray(v) => to_c::array(v)?;
    PROC_RANK Inside u32: |c| Ok(Value::Rank(Rank(c))), Value::Rank(v) => v.0;
    QUERY Behind pmix_query_t: |c| Ok(Value::Query(Box::new(from_c::query(&c)?))), Value::Query(v) => to_c::query(v)?;
    COMPRESSED_STRING Inside pmix_byte_object_t: |c| Ok(Value::CompressedString(from_c::blob(c))),
        Value::CompressedString(v) => to_c::blob(v);
    ALLOC_DIRECTIVE Inside u8: |c| Ok(Value::AllocDirective(AllocDirective(c))), Value::AllocDirective(v) => v.0;
    IOF_CHANNEL Inside u16: |c| Ok(Value::IofChannel(IofChannel(c))), Value::IofChannel(v) => v.0;
    ENVAR Inside pmix_envar_t: |c| Ok(Value::Envar(Box::new(from_c::envar(&c)))), Value::Envar(v) => to_c::envar(v);
    COORD Behind pmix_coord_t: |c| Ok(Value::Coord(Box::new(from_c::coord(&c)))), Value::Coord(v) => to_c::coord(v);
    REGATTR Behind pmix_regattr_t: |c| Ok(Value::Regattr(Box::new(from_c::regattr(&c)))), Value::Regattr(v) => to_c::regattr(v);
    REGEX Inside pmix_byte_object_t: |c| Ok(Value::Regex(from_c::blob(c))), Value::Regex(v) => to_c::blob(v);
    JOB_STATE Inside u8: |c| Ok(Value::JobState(JobState(c))), Value::JobState(v) => v.0;
    LINK_STATE Inside u8: |c| Ok(Value::LinkState(LinkState(c))), Value::LinkState(v) => v.0;
    PROC_CPUSET Behind pmix_cpuset_t: |c| Ok(Value::Cpuset(from_c::cpuset(&c)?)), Value::Cpuset(v) => to_c::cpuset(v);
    TOPO Behind pmix_topology_t: |c| Ok(Value::Topology(Box::new(from_c::topology(&c)?))), Value::Topology(v) => to_c::topology(v);
    GEOMETRY Behind pmix_geometry_t: |c| Ok(Value::Geometry(Box::new(from_c::geometry(&c)))), Value::Geometry(v) => to_c::geometry(v);
    DEVICE_DIST Behind pmix_device_distance_t: |c| Ok(Value::DeviceDistance(Box::new(from_c::device_distance(&c)))),
        Value::DeviceDistance(v) => to_c::device_distance(v);
    ENDPOINT Behind pmix_endpoint_t: |c| Ok(Value::Endpoint(Box::new(from_c::endpoint(&c)))), Value::Endpoint(v) => to_c::endpoint(v);
    DEVTYPE Inside u64: |c| Ok(Value::DeviceType(c)), Value::DeviceType(v) => *v;
    LOCTYPE Inside u16: |c| Ok(Value::Locality(c)), Value::Locality(v) => *v;
    COMPRESSED_BYTE_OBJECT Inside pmix_byte_object_t: |c| Ok(Value::CompressedByteObject(from_c::blob(c))),
        Value::CompressedByteObject(v) => to_c::blob(v);
    PROC_NSPACE Behind [u8; 256]: |c| Ok(Value::ProcNspace(from_c::nspace(&c)?)), Value::ProcNspace(v) => to_c::name(v.as_str());
    PROC_STATS Behind pmix_proc_stats_t: |c| Ok(Value::ProcStats(Box::new(from_c::proc_stats(&c)?))), Value::ProcStats(v) => to_c::proc_stats(v);
    DISK_STATS Behind pmix_disk_stats_t: |c| Ok(Value::DiskStats(Box::new(from_c::disk_stats(&c)))), Value::DiskStats(v) => to_c::disk_stats(v);
    NET_STATS Behind pmix_net_stats_t: |c| Ok(Value::NetStats(Box::new(from_c::net_stats(&c)))), Value::NetStats(v) => to_c::net_stats(v);
    NODE_STATS Behind pmix_node_stats_t: |c| Ok(Value::NodeStats(Box::new(from_c::node_stats(&c)))), Value::NodeStats(v) => to_c::node_stats(v);
    DATA_BUFFER Behind pmix_data_buffer_t: |c| Ok(Value::DataBuffer(from_c::data_buffer(&c))), Value::DataBuffer(v) => to_c::data_buffer(v);
    STOR_MEDIUM Inside u64: |c| Ok(Value::StorageMedium(c)), Value::StorageMedium(v) => *v;
    STOR_ACCESS Inside u64: |c| Ok(Value::StorageAccess(c)), Value::StorageAccess(v) => *v;
    STOR_PERSIST Inside u64: |c| Ok(Value::StoragePersistence(c)), Value::StoragePersistence(v) => *v;
    STOR_ACCESS_TYPE Inside u16: |c| Ok(Value::StorageAccessType(c)), Value::StorageAccessType(v) => *v;
    DEVICE Behind pmix_device_t: |c| Ok(Value::Device(Box::new(from_c::device(&c)))), Value::Device(v) => to_c::device(v);
    RESBLOCK_DIRECTIVE Inside u8: |c| Ok(Value::ResourceBlockDirective(c)), Value::ResourceBlockDirective(v) => *v;
    RESOURCE_UNIT Behind pmix_resource_unit_t: |c| Ok(Value::ResourceUnit(from_c::resource_unit(&c))), Value::ResourceUnit(v) => to_c::resource_unit(v);
    NODE_PID Behind pmix_node_pid_t: |c| Ok(Value::NodePid(Box::new(from_c::node_pid(&c)))), Value::NodePid(v) => to_c::node_pid(v);
    REGEX2 Behind pmix_regex2_t: |c| Ok(Value::Regex2(Box::new(from_c::regex2(&c)))), Value::Regex2(v) => to_c::regex2(v);
}
