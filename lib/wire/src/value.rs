//! One value of any PMIx data type (standard: `pmix_value_t`), and the structures that only occur inside values.

use phalanx_spec::{
    AllocDirective, Command, DataType, IofChannel, JobState, LinkState, Persistence, ProcState, Range, Rank,
    Scope, Status,
};

use crate::info::{DataArray, Info, InfoFlags, Kval, Pdata};
use crate::name::{Nspace, ProcId};
use crate::text::{Blob, Text};

/// A typed value. Each variant is one data type of the standard, see [`Value::data_type`].
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    #[default]
    Undef,
    Bool(bool),
    Byte(u8),
    String(Text),
    /// A value of type STRING whose pointer is NULL: not the empty string.
    NullString,
    Size(u64),
    Pid(u32),
    Int(i32),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Uint(u32),
    Uint8(u8),
    Uint16(u16),
    Uint32(u32),
    Uint64(u64),
    Float(f32),
    Double(f64),
    Timeval(Timeval),
    Time(u64),
    Status(Status),
    Value(Box<Value>),
    Proc(ProcId),
    App(Box<App>),
    Info(Box<Info>),
    Pdata(Box<Pdata>),
    Buffer(Buffer),
    ByteObject(Blob),
    Kval(Box<Kval>),
    Persistence(Persistence),
    /// A pointer means nothing to a peer; only its presence is sent.
    Pointer,
    Scope(Scope),
    Range(Range),
    Command(Command),
    InfoFlags(InfoFlags),
    DataType(DataType),
    ProcState(ProcState),
    ProcInfo(Box<ProcInfo>),
    DataArray(Box<DataArray>),
    Rank(Rank),
    Query(Box<Query>),
    CompressedString(Blob),
    AllocDirective(AllocDirective),
    IofChannel(IofChannel),
    Envar(Box<Envar>),
    Coord(Box<Coord>),
    Regattr(Box<Regattr>),
    Regex(Blob),
    JobState(JobState),
    LinkState(LinkState),
    /// hwloc's list form, `0-3,8`; `None` when unbound.
    Cpuset(Option<Text>),
    Geometry(Box<Geometry>),
    DeviceDistance(Box<DeviceDistance>),
    Endpoint(Box<Endpoint>),
    Topology(Box<TopologyBlob>),
    DeviceType(u64),
    Locality(u16),
    CompressedByteObject(Blob),
    ProcNspace(Nspace),
    ProcStats(Box<ProcStats>),
    DiskStats(Box<DiskStats>),
    NetStats(Box<NetStats>),
    NodeStats(Box<NodeStats>),
    DataBuffer(Blob),
    StorageMedium(u64),
    StorageAccess(u64),
    StoragePersistence(u64),
    StorageAccessType(u16),
    Device(Box<Device>),
    ResourceBlockDirective(u8),
    ResourceUnit(ResourceUnit),
    NodePid(Box<NodePid>),
    Regex2(Box<Regex2>),
}

/// Seconds and microseconds since the epoch, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timeval {
    pub sec: i64,
    pub usec: i64,
}

/// A packed buffer inside a message, with its own flag for described items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub described: bool,
    pub bytes: Blob,
}

/// One app context (standard: `pmix_app_t`). `env` entries are `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct App {
    pub cmd: Option<Text>,
    pub argv: Vec<Text>,
    pub env: Vec<Text>,
    pub cwd: Option<Text>,
    pub max_procs: i32,
    pub info: Vec<Info>,
}

/// One query: keys and qualifiers (standard: `pmix_query_t`).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Query {
    pub keys: Vec<Text>,
    pub qualifiers: Vec<Info>,
}

/// One line of a process table. The exit code is never sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcInfo {
    pub proc: ProcId,
    pub hostname: Option<Text>,
    pub executable: Option<Text>,
    pub pid: u32,
    pub state: ProcState,
}

/// A change to one environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envar {
    pub name: Option<Text>,
    pub value: Option<Text>,
    pub separator: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coord {
    pub view: u8,
    pub coord: Vec<u32>,
}

/// The description of one attribute that a function supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regattr {
    pub name: Option<Text>,
    pub key: Option<Text>,
    pub data_type: DataType,
    pub description: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub fabric: u64,
    pub uuid: Option<Text>,
    pub os_name: Option<Text>,
    pub coordinates: Vec<Coord>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDistance {
    pub uuid: Option<Text>,
    pub os_name: Option<Text>,
    pub device_type: u64,
    pub min: u16,
    pub max: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub uuid: Option<Text>,
    pub os_name: Option<Text>,
    pub bytes: Blob,
}

/// A hwloc topology: its XML, then the sender's support bits, which depend on its hwloc release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyBlob {
    pub xml: Option<Text>,
    pub support: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProcStats {
    pub node: Option<Text>,
    pub proc: ProcId,
    pub pid: u32,
    pub cmd: Option<Text>,
    pub state: u8,
    pub time: Timeval,
    pub priority: i32,
    pub threads: i16,
    pub pss: f32,
    pub vsize: f32,
    pub rss: f32,
    pub processor: i16,
    pub sample_time: Timeval,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskStats {
    pub disk: Option<Text>,
    pub counters: [u64; 11],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetStats {
    pub interface: Option<Text>,
    pub counters: [u64; 6],
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeStats {
    pub node: Option<Text>,
    /// Load averages of 1, 5, 15 minutes; memory total, free, buffers, cached; swap cached, total, free; mapped.
    pub gauges: [f32; 11],
    pub sample_time: Timeval,
    pub disks: Vec<DiskStats>,
    pub nets: Vec<NetStats>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub uuid: Option<Text>,
    pub os_name: Option<Text>,
    pub device_type: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePid {
    pub hostname: Option<Text>,
    pub node_id: u32,
    pub pid: u32,
}

/// A number of units of one kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUnit {
    pub device_type: u64,
    pub count: u64,
}

/// A regular expression that names its scheme (6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regex2 {
    pub kind: Option<Text>,
    pub bytes: Blob,
}

impl Value {
    /// Whether a boolean directive is on: true, or given without a value.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Undef => true,
            Value::Bool(b) => *b,
            other => other.as_u64().is_some_and(|n| n != 0),
        }
    }

    /// Any integer type, if it is not negative. Peers disagree about widths (Slurm sends INT where PRRTE sends UINT32).
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|n| u64::try_from(n).ok())
    }

    /// Any integer type.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|n| i64::try_from(n).ok())
    }

    pub fn as_u32(&self) -> Option<u32> {
        self.as_i128().and_then(|n| u32::try_from(n).ok())
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(v) => Some(f64::from(*v)),
            Value::Double(v) => Some(*v),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Value::String(t) => Some(t),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        self.as_text().and_then(Text::as_str)
    }

    pub fn as_rank(&self) -> Option<Rank> {
        match self {
            Value::Rank(r) => Some(*r),
            other => other.as_u32().map(Rank),
        }
    }

    pub fn as_proc(&self) -> Option<&ProcId> {
        match self {
            Value::Proc(p) => Some(p),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&DataArray> {
        match self {
            Value::DataArray(a) => Some(a),
            _ => None,
        }
    }

    fn as_i128(&self) -> Option<i128> {
        Some(match self {
            Value::Byte(n) | Value::Uint8(n) => i128::from(*n),
            Value::Size(n) | Value::Uint64(n) | Value::Time(n) => i128::from(*n),
            Value::Pid(n) | Value::Uint(n) | Value::Uint32(n) => i128::from(*n),
            Value::Int(n) | Value::Int32(n) => i128::from(*n),
            Value::Int8(n) => i128::from(*n),
            Value::Int16(n) => i128::from(*n),
            Value::Int64(n) => i128::from(*n),
            Value::Uint16(n) => i128::from(*n),
            Value::Rank(r) => i128::from(r.0),
            Value::Status(s) => i128::from(s.0),
            _ => return None,
        })
    }

    pub fn data_type(&self) -> DataType {
        match self {
            Value::Undef => DataType::UNDEF,
            Value::Bool(_) => DataType::BOOL,
            Value::Byte(_) => DataType::BYTE,
            Value::String(_) | Value::NullString => DataType::STRING,
            Value::Size(_) => DataType::SIZE,
            Value::Pid(_) => DataType::PID,
            Value::Int(_) => DataType::INT,
            Value::Int8(_) => DataType::INT8,
            Value::Int16(_) => DataType::INT16,
            Value::Int32(_) => DataType::INT32,
            Value::Int64(_) => DataType::INT64,
            Value::Uint(_) => DataType::UINT,
            Value::Uint8(_) => DataType::UINT8,
            Value::Uint16(_) => DataType::UINT16,
            Value::Uint32(_) => DataType::UINT32,
            Value::Uint64(_) => DataType::UINT64,
            Value::Float(_) => DataType::FLOAT,
            Value::Double(_) => DataType::DOUBLE,
            Value::Timeval(_) => DataType::TIMEVAL,
            Value::Time(_) => DataType::TIME,
            Value::Status(_) => DataType::STATUS,
            Value::Value(_) => DataType::VALUE,
            Value::Proc(_) => DataType::PROC,
            Value::App(_) => DataType::APP,
            Value::Info(_) => DataType::INFO,
            Value::Pdata(_) => DataType::PDATA,
            Value::Buffer(_) => DataType::BUFFER,
            Value::ByteObject(_) => DataType::BYTE_OBJECT,
            Value::Kval(_) => DataType::KVAL,
            Value::Persistence(_) => DataType::PERSIST,
            Value::Pointer => DataType::POINTER,
            Value::Scope(_) => DataType::SCOPE,
            Value::Range(_) => DataType::DATA_RANGE,
            Value::Command(_) => DataType::COMMAND,
            Value::InfoFlags(_) => DataType::INFO_DIRECTIVES,
            Value::DataType(_) => DataType::DATA_TYPE,
            Value::ProcState(_) => DataType::PROC_STATE,
            Value::ProcInfo(_) => DataType::PROC_INFO,
            Value::DataArray(_) => DataType::DATA_ARRAY,
            Value::Rank(_) => DataType::PROC_RANK,
            Value::Query(_) => DataType::QUERY,
            Value::CompressedString(_) => DataType::COMPRESSED_STRING,
            Value::AllocDirective(_) => DataType::ALLOC_DIRECTIVE,
            Value::IofChannel(_) => DataType::IOF_CHANNEL,
            Value::Envar(_) => DataType::ENVAR,
            Value::Coord(_) => DataType::COORD,
            Value::Regattr(_) => DataType::REGATTR,
            Value::Regex(_) => DataType::REGEX,
            Value::JobState(_) => DataType::JOB_STATE,
            Value::LinkState(_) => DataType::LINK_STATE,
            Value::Cpuset(_) => DataType::PROC_CPUSET,
            Value::Geometry(_) => DataType::GEOMETRY,
            Value::DeviceDistance(_) => DataType::DEVICE_DIST,
            Value::Endpoint(_) => DataType::ENDPOINT,
            Value::Topology(_) => DataType::TOPO,
            Value::DeviceType(_) => DataType::DEVTYPE,
            Value::Locality(_) => DataType::LOCTYPE,
            Value::CompressedByteObject(_) => DataType::COMPRESSED_BYTE_OBJECT,
            Value::ProcNspace(_) => DataType::PROC_NSPACE,
            Value::ProcStats(_) => DataType::PROC_STATS,
            Value::DiskStats(_) => DataType::DISK_STATS,
            Value::NetStats(_) => DataType::NET_STATS,
            Value::NodeStats(_) => DataType::NODE_STATS,
            Value::DataBuffer(_) => DataType::DATA_BUFFER,
            Value::StorageMedium(_) => DataType::STOR_MEDIUM,
            Value::StorageAccess(_) => DataType::STOR_ACCESS,
            Value::StoragePersistence(_) => DataType::STOR_PERSIST,
            Value::StorageAccessType(_) => DataType::STOR_ACCESS_TYPE,
            Value::Device(_) => DataType::DEVICE,
            Value::ResourceBlockDirective(_) => DataType::RESBLOCK_DIRECTIVE,
            Value::ResourceUnit(_) => DataType::RESOURCE_UNIT,
            Value::NodePid(_) => DataType::NODE_PID,
            Value::Regex2(_) => DataType::REGEX2,
        }
    }
}

macro_rules! values_from {
    ($($from:ty => $variant:ident)+) => {$(
        impl From<$from> for Value {
            fn from(v: $from) -> Value {
                Value::$variant(v.into())
            }
        }
    )+};
}
values_from! {
    bool => Bool
    &str => String
    String => String
    Text => String
    u16 => Uint16
    u32 => Uint32
    u64 => Uint64
    i32 => Int32
    i64 => Int64
    Status => Status
    ProcId => Proc
    Blob => ByteObject
    DataArray => DataArray
    Rank => Rank
    Range => Range
    Scope => Scope
    Persistence => Persistence
    ProcState => ProcState
    JobState => JobState
    IofChannel => IofChannel
    Nspace => ProcNspace
    Timeval => Timeval
}
