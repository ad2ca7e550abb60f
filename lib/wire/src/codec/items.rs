//! The composite types: one table per structure, from which both directions are generated.

use phalanx_spec::{
    AllocDirective, Command, DataType, IofChannel, JobState, LinkState, Persistence, ProcState, Range, Rank,
    Scope, Status,
};

use super::pack::Packer;
use super::unpack::Unpacker;
use super::{DecodeError, Item};
use crate::info::{Info, InfoFlags, Kval, Pdata};
use crate::name::{Key, NameError, Nspace, ProcId};
use crate::text::{Blob, Text};
use crate::value::{
    App, Buffer, Coord, Device, DeviceDistance, DiskStats, Endpoint, Envar, Geometry, NetStats, NodePid,
    NodeStats, ProcInfo, ProcStats, Query, Regattr, Regex2, ResourceUnit, Timeval, TopologyBlob, Value,
};

/// A count (data type SIZE), as opposed to a 64-bit number (UINT64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// Seconds since the epoch (data type TIME).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub u64);

/// A cpuset in hwloc's list form (data type PROC_CPUSET).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpuset(pub Option<Text>);

/// The purpose of a resource block (data type RESBLOCK_DIRECTIVE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockDirective(pub u8);

/// Types that consist of one primitive: how to write it, how to read it.
macro_rules! primitives {
    ($($type:ty = $code:ident { $pack:expr, $unpack:expr })+) => {$(
        impl Item for $type {
            const TYPE: DataType = DataType::$code;
            fn pack(&self, to: &mut Packer) {
                let pack: fn(&$type, &mut Packer) = $pack;
                pack(self, to);
            }
            fn unpack(from: &mut Unpacker<'_>) -> Result<Self, DecodeError> {
                let unpack: fn(&mut Unpacker<'_>) -> Result<$type, DecodeError> = $unpack;
                unpack(from)
            }
        }
    )+};
}

primitives! {
    bool = BOOL { |v, to| to.byte(&u8::from(*v)), |from| Ok(from.byte()? != 0) }
    u8 = BYTE { |v, to| to.byte(v), |from| from.byte() }
    u16 = UINT16 { |v, to| to.uint16(v), |from| from.uint16() }
    u32 = UINT32 { |v, to| to.uint32(v), |from| from.uint32() }
    u64 = UINT64 { |v, to| to.uint64(v), |from| from.uint64() }
    Size = SIZE { |v, to| to.size(&v.0), |from| from.size().map(Size) }
    Time = TIME { |v, to| to.uint64(&v.0), |from| from.uint64().map(Time) }
    Status = STATUS { |v, to| to.int32(&v.0), |from| from.int32().map(Status) }
    Rank = PROC_RANK { |v, to| to.uint32(&v.0), |from| from.uint32().map(Rank) }
    DataType = DATA_TYPE { |v, to| to.data_type(v), |from| from.data_type() }
    InfoFlags = INFO_DIRECTIVES { |v, to| to.uint32(&v.bits()), |from| from.uint32().map(InfoFlags::from_bits_retain) }
    Scope = SCOPE { |v, to| to.byte(&v.0), |from| from.byte().map(Scope) }
    Range = DATA_RANGE { |v, to| to.byte(&v.0), |from| from.byte().map(Range) }
    Persistence = PERSIST { |v, to| to.byte(&v.0), |from| from.byte().map(Persistence) }
    Command = COMMAND { |v, to| to.byte(&v.0), |from| from.byte().map(Command) }
    ProcState = PROC_STATE { |v, to| to.byte(&v.0), |from| from.byte().map(ProcState) }
    JobState = JOB_STATE { |v, to| to.byte(&v.0), |from| from.byte().map(JobState) }
    LinkState = LINK_STATE { |v, to| to.byte(&v.0), |from| from.byte().map(LinkState) }
    AllocDirective = ALLOC_DIRECTIVE { |v, to| to.byte(&v.0), |from| from.byte().map(AllocDirective) }
    BlockDirective = RESBLOCK_DIRECTIVE { |v, to| to.byte(&v.0), |from| from.byte().map(BlockDirective) }
    IofChannel = IOF_CHANNEL { |v, to| to.uint16(&v.0), |from| from.uint16().map(IofChannel) }
    Text = STRING {
        |v, to| to.string(Some(v.as_bytes())),
        |from| from.string()?.map(Text::from_bytes).ok_or(DecodeError::Malformed { what: "a string that is NULL" })
    }
    Option<Text> = STRING { |v, to| to.string(v.as_ref().map(Text::as_bytes)), |from| Ok(from.string()?.map(Text::from_bytes)) }
    Cpuset = PROC_CPUSET { |v, to| v.0.pack(to), |from| Item::unpack(from).map(Cpuset) }
    Key = STRING {
        |v, to| to.string(Some(v.as_str().as_bytes())),
        |from| {
            let bytes = from.string()?.ok_or(DecodeError::Malformed { what: "a key that is NULL" })?;
            name(bytes, "a key", Key::new)
        }
    }
    Nspace = STRING {
        |v, to| to.string(Some(v.as_str().as_bytes())),
        |from| match from.string()? {
            Some(bytes) => name(bytes, "a namespace", Nspace::new),
            None => Ok(Nspace::none()),
        }
    }
    Blob = BYTE_OBJECT {
        |v, to| { to.size(&(v.len() as u64)); to.raw(v.as_bytes()); },
        |from| from.sized_bytes().map(Blob::from)
    }
    Buffer = BUFFER {
        |v, to| { to.byte(if v.described { &DESCRIBED } else { &NOT_DESCRIBED }); v.bytes.pack(to); },
        |from| {
            let described = match from.byte()? {
                DESCRIBED => true,
                NOT_DESCRIBED => false,
                _ => return Err(DecodeError::Malformed { what: "a buffer type" }),
            };
            Ok(Buffer { described, bytes: Blob::unpack(from)? })
        }
    }
    TopologyBlob = TOPO {
        |v, to| {
            v.xml.pack(to);
            if v.xml.is_some() {
                let mut support = [0; TOPOLOGY_SUPPORT];
                support.iter_mut().zip(&v.support).for_each(|(to, from)| *to = *from);
                to.raw(&support);
            }
        },
        |from| {
            let xml = Option::<Text>::unpack(from)?;
            let support = if xml.is_some() { from.take(TOPOLOGY_SUPPORT, "a topology's support bits")?.to_vec() } else { Vec::new() };
            Ok(TopologyBlob { xml, support })
        }
    }
}

pub(crate) const NOT_DESCRIBED: u8 = 1;
pub(crate) const DESCRIBED: u8 = 2;

/// Three hwloc structures are copied as they are in memory; this is their size in hwloc 2.4 and later.
const TOPOLOGY_SUPPORT: usize = 6 + 11 + 15;

/// Types made of others, member by member in wire order, each with the primitive that carries it.
macro_rules! composites {
    ($($type:ident = $code:ident { $($member:ident: $how:ident),+ })+) => {$(
        impl Item for $type {
            const TYPE: DataType = DataType::$code;
            fn pack(&self, to: &mut Packer) {
                $(to.$how(&self.$member);)+
            }
            fn unpack(from: &mut Unpacker<'_>) -> Result<Self, DecodeError> {
                Ok($type { $($member: from.$how()?),+ })
            }
        }
    )+};
}

composites! {
    Timeval = TIMEVAL { sec: int64, usec: int64 }
    ProcId = PROC { nspace: item, rank: item }
    Info = INFO { key: item, flags: item, value: item }
    Kval = KVAL { key: item, value: item }
    Pdata = PDATA { proc: item, key: item, value: item }
    App = APP {
        cmd: item, argv: texts_after_int, env: texts_after_int32, cwd: item, max_procs: int, info: items
    }
    Query = QUERY { keys: texts_after_int32, qualifiers: items }
    ProcInfo = PROC_INFO { proc: item, hostname: item, executable: item, pid: pid, state: item }
    Envar = ENVAR { name: item, value: item, separator: byte }
    Coord = COORD { view: byte, coord: items }
    Regattr = REGATTR { name: item, key: item, data_type: item, description: texts_after_int32 }
    Geometry = GEOMETRY { fabric: size, uuid: item, os_name: item, coordinates: items }
    DeviceDistance = DEVICE_DIST { uuid: item, os_name: item, device_type: uint64, min: uint16, max: uint16 }
    Endpoint = ENDPOINT { uuid: item, os_name: item, bytes: item }
    Device = DEVICE { uuid: item, os_name: item, device_type: uint64 }
    ResourceUnit = RESOURCE_UNIT { device_type: uint64, count: size }
    NodePid = NODE_PID { hostname: item, node_id: uint32, pid: pid }
    Regex2 = REGEX2 { kind: item, bytes: item }
    ProcStats = PROC_STATS {
        node: item, proc: item, pid: pid, cmd: item, state: byte, time: item, priority: int32, threads: int16,
        pss: float, vsize: float, rss: float, processor: int16, sample_time: item
    }
    DiskStats = DISK_STATS { disk: item, counters: counters }
    NetStats = NET_STATS { interface: item, counters: counters }
    NodeStats = NODE_STATS { node: item, gauges: floats, sample_time: item, disks: items, nets: items }
}

impl Packer {
    fn item<T: Item>(&mut self, item: &T) {
        item.pack(self);
    }

    fn items<T: Item>(&mut self, items: &[T]) {
        self.size(&(items.len() as u64));
        items.iter().for_each(|item| item.pack(self));
    }

    fn texts_after_int(&mut self, texts: &[Text]) {
        self.int(&i32::try_from(texts.len()).unwrap_or(i32::MAX));
        texts.iter().for_each(|text| text.pack(self));
    }

    fn texts_after_int32(&mut self, texts: &[Text]) {
        self.int32(&i32::try_from(texts.len()).unwrap_or(i32::MAX));
        texts.iter().for_each(|text| text.pack(self));
    }

    fn counters(&mut self, counters: &[u64]) {
        counters.iter().for_each(|n| self.uint64(n));
    }

    fn floats(&mut self, floats: &[f32]) {
        floats.iter().for_each(|x| self.float(x));
    }

    pub(super) fn float(&mut self, x: &f32) {
        self.double(&f64::from(*x));
    }

    /// Floating point is sent as the text that C's `%f` produces: six decimals.
    pub(super) fn double(&mut self, x: &f64) {
        let text = if x.is_nan() { "nan".to_owned() } else { format!("{x:.6}") };
        self.string(Some(text.as_bytes()));
    }
}

impl Unpacker<'_> {
    fn item<T: Item>(&mut self) -> Result<T, DecodeError> {
        T::unpack(self)
    }

    fn items<T: Item>(&mut self) -> Result<Vec<T>, DecodeError> {
        let n = self.size()?;
        self.list(n)
    }

    fn texts_after_int(&mut self) -> Result<Vec<Text>, DecodeError> {
        let n = self.int()?;
        self.texts(n)
    }

    fn texts_after_int32(&mut self) -> Result<Vec<Text>, DecodeError> {
        let n = self.int32()?;
        self.texts(n)
    }

    fn texts(&mut self, n: i32) -> Result<Vec<Text>, DecodeError> {
        self.list(u64::try_from(n).map_err(|_| DecodeError::Malformed { what: "a count of strings" })?)
    }

    fn counters<const N: usize>(&mut self) -> Result<[u64; N], DecodeError> {
        let mut counters = [0; N];
        for n in &mut counters {
            *n = self.uint64()?;
        }
        Ok(counters)
    }

    fn floats<const N: usize>(&mut self) -> Result<[f32; N], DecodeError> {
        let mut floats = [0.0; N];
        for x in &mut floats {
            *x = self.float()?;
        }
        Ok(floats)
    }

    pub(super) fn float(&mut self) -> Result<f32, DecodeError> {
        self.number("FLOAT")
    }

    pub(super) fn double(&mut self) -> Result<f64, DecodeError> {
        self.number("DOUBLE")
    }

    fn number<T: std::str::FromStr>(&mut self, what: &'static str) -> Result<T, DecodeError> {
        let malformed = DecodeError::Malformed { what };
        let text = self.string()?.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.filter(|text| text.len() <= LONGEST_NUMBER).ok_or(malformed.clone())?;
        // With a locale set in the sender, `%f` writes that locale's decimal separator.
        text.parse().or_else(|_| text.replacen(',', ".", 1).parse()).map_err(|_| malformed)
    }
}

/// `%f` of the largest double takes 316 characters.
const LONGEST_NUMBER: usize = 320;

fn name<T>(
    bytes: &[u8],
    what: &'static str,
    new: impl FnOnce(&str) -> Result<T, NameError>,
) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed { what })?;
    new(text).map_err(|error| match error {
        NameError::TooLong { limit } => {
            DecodeError::TooLong { what, claimed: bytes.len() as u64, limit: limit as u64 }
        }
        NameError::NotUtf8 | NameError::HoldsNul => DecodeError::Malformed { what },
    })
}

impl Item for Value {
    const TYPE: DataType = DataType::VALUE;

    fn pack(&self, to: &mut Packer) {
        to.value(self);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, DecodeError> {
        from.value()
    }
}
