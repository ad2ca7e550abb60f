//! Values: a data type, then the content.
//!
//! This file maps every data type to its [`Value`] variant, once in each direction, and replaces values that a generation cannot
//! represent: a value by UNDEF, an array by an empty one. That peer could not receive such a value anyway; this way
//! its neighbours survive.

use phalanx_spec::DataType;

use super::items::{BlockDirective, Cpuset};
use super::pack::Packer;
use super::unpack::Unpacker;
use super::{DecodeError, Item};
use crate::info::{DataArray, Info};
use crate::regex::blob_length;
use crate::text::{Blob, Text};
use crate::value::Value;

impl Packer {
    pub(super) fn value(&mut self, value: &Value) {
        if self.format.generation.has(value.data_type()) {
            self.data_type(&value.data_type());
            self.content(value);
        } else {
            self.data_type(&DataType::UNDEF);
        }
    }

    pub(super) fn content(&mut self, value: &Value) {
        match value {
            Value::Undef => {}
            Value::Bool(v) => v.pack(self),
            Value::Byte(v) | Value::Uint8(v) | Value::ResourceBlockDirective(v) => self.byte(v),
            Value::String(v) => v.pack(self),
            Value::NullString => self.string(None),
            Value::Size(v) => self.size(v),
            Value::Pid(v) => self.pid(v),
            Value::Int(v) => self.int(v),
            Value::Int8(v) => self.byte(&v.cast_unsigned()),
            Value::Int16(v) => self.int16(v),
            Value::Int32(v) => self.int32(v),
            Value::Int64(v) => self.int64(v),
            Value::Uint(v) => self.uint(v),
            Value::Uint16(v) | Value::Locality(v) | Value::StorageAccessType(v) => self.uint16(v),
            Value::Uint32(v) => self.uint32(v),
            Value::Uint64(v)
            | Value::Time(v)
            | Value::DeviceType(v)
            | Value::StorageMedium(v)
            | Value::StorageAccess(v)
            | Value::StoragePersistence(v) => self.uint64(v),
            Value::Float(v) => self.float(v),
            Value::Double(v) => self.double(v),
            Value::Timeval(v) => v.pack(self),
            Value::Status(v) => v.pack(self),
            Value::Value(v) => self.value(v),
            Value::Proc(v) => v.pack(self),
            Value::App(v) => v.pack(self),
            Value::Info(v) => v.pack(self),
            Value::Pdata(v) => v.pack(self),
            Value::Buffer(v) => v.pack(self),
            Value::ByteObject(v)
            | Value::CompressedString(v)
            | Value::CompressedByteObject(v)
            | Value::DataBuffer(v) => v.pack(self),
            Value::Kval(v) => v.pack(self),
            Value::Persistence(v) => v.pack(self),
            Value::Pointer => self.byte(&1),
            Value::Scope(v) => v.pack(self),
            Value::Range(v) => v.pack(self),
            Value::Command(v) => v.pack(self),
            Value::InfoFlags(v) => v.pack(self),
            Value::DataType(v) => v.pack(self),
            Value::ProcState(v) => v.pack(self),
            Value::ProcInfo(v) => v.pack(self),
            Value::DataArray(v) => self.array(v),
            Value::Rank(v) => v.pack(self),
            Value::Query(v) => v.pack(self),
            Value::AllocDirective(v) => v.pack(self),
            Value::IofChannel(v) => v.pack(self),
            Value::Envar(v) => v.pack(self),
            Value::Coord(v) => v.pack(self),
            Value::Regattr(v) => v.pack(self),
            Value::Regex(v) => self.regex(v.as_bytes()),
            Value::JobState(v) => v.pack(self),
            Value::LinkState(v) => v.pack(self),
            Value::Cpuset(v) => v.pack(self),
            Value::Geometry(v) => v.pack(self),
            Value::DeviceDistance(v) => v.pack(self),
            Value::Endpoint(v) => v.pack(self),
            Value::Topology(v) => v.pack(self),
            Value::ProcNspace(v) => v.pack(self),
            Value::ProcStats(v) => v.pack(self),
            Value::DiskStats(v) => v.pack(self),
            Value::NetStats(v) => v.pack(self),
            Value::NodeStats(v) => v.pack(self),
            Value::Device(v) => v.pack(self),
            Value::ResourceUnit(v) => v.pack(self),
            Value::NodePid(v) => v.pack(self),
            Value::Regex2(v) => v.pack(self),
        }
    }

    /// Never writes an array of type UNDEF: a 6.1 receiver does not expect the size that older ones want behind that type.
    fn array(&mut self, array: &DataArray) {
        if array.of == DataType::UNDEF || !self.format.generation.has(array.of) {
            self.data_type(&DataType::INFO);
            self.size(&0);
            return;
        }
        let items: Vec<&Value> = array.items.iter().filter(|item| item.data_type() == array.of).collect();
        self.data_type(&array.of);
        self.size(&(items.len() as u64));
        self.run(array.of, &items);
    }

    /// Consecutive values of one type. Where integers are preceded by their width, it is written once for all of them.
    pub(super) fn run(&mut self, of: DataType, items: &[&Value]) {
        if !items.is_empty() {
            self.width(of);
        }
        for item in items {
            match item {
                Value::Pid(v) => self.uint32(v),
                Value::Size(v) => self.uint64(v),
                Value::Int(v) => self.int32(v),
                Value::Uint(v) => self.int32(&v.cast_signed()),
                item => self.content(item),
            }
        }
    }

    /// No length prefix: a text ends at its NUL, a compressed one contains its length.
    fn regex(&mut self, bytes: &[u8]) {
        if blob_length(bytes) == Some(bytes.len()) {
            self.raw(bytes);
            return;
        }
        let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
        // As text this would be taken for the start of a compressed one.
        self.raw(if text == b"blob:" { b"" } else { text });
        self.byte(&0);
    }
}

impl Unpacker<'_> {
    pub(super) fn value(&mut self) -> Result<Value, DecodeError> {
        let data_type = self.data_type()?;
        self.deeper(|from| from.content(data_type))
    }

    fn content(&mut self, data_type: DataType) -> Result<Value, DecodeError> {
        if !self.format.generation.has(data_type) {
            return Err(DecodeError::UnknownType { code: data_type.0 });
        }
        Ok(match data_type {
            DataType::UNDEF => Value::Undef,
            DataType::BOOL => Value::Bool(bool::unpack(self)?),
            DataType::BYTE => Value::Byte(self.byte()?),
            DataType::STRING => match self.string()? {
                Some(bytes) => Value::String(Text::from_bytes(bytes)),
                None => Value::NullString,
            },
            DataType::SIZE => Value::Size(self.size()?),
            DataType::PID => Value::Pid(self.pid()?),
            DataType::INT => Value::Int(self.int()?),
            DataType::INT8 => Value::Int8(self.byte()?.cast_signed()),
            DataType::INT16 => Value::Int16(self.int16()?),
            DataType::INT32 => Value::Int32(self.int32()?),
            DataType::INT64 => Value::Int64(self.int64()?),
            DataType::UINT => Value::Uint(self.uint()?),
            DataType::UINT8 => Value::Uint8(self.byte()?),
            DataType::UINT16 => Value::Uint16(self.uint16()?),
            DataType::UINT32 => Value::Uint32(self.uint32()?),
            DataType::UINT64 => Value::Uint64(self.uint64()?),
            DataType::FLOAT => Value::Float(self.float()?),
            DataType::DOUBLE => Value::Double(self.double()?),
            DataType::TIMEVAL => Value::Timeval(Item::unpack(self)?),
            DataType::TIME => Value::Time(self.uint64()?),
            DataType::STATUS => Value::Status(Item::unpack(self)?),
            DataType::VALUE => Value::Value(Box::new(self.value()?)),
            DataType::PROC => Value::Proc(Item::unpack(self)?),
            DataType::APP => Value::App(boxed(self)?),
            DataType::INFO => Value::Info(boxed(self)?),
            DataType::PDATA => Value::Pdata(boxed(self)?),
            DataType::BUFFER => Value::Buffer(Item::unpack(self)?),
            DataType::BYTE_OBJECT => Value::ByteObject(Item::unpack(self)?),
            DataType::KVAL => Value::Kval(boxed(self)?),
            // Removed in 4.0; a byte object by another name.
            DataType::MODEX => Value::ByteObject(Item::unpack(self)?),
            DataType::PERSIST => Value::Persistence(Item::unpack(self)?),
            DataType::POINTER => {
                self.byte()?;
                Value::Pointer
            }
            DataType::SCOPE => Value::Scope(Item::unpack(self)?),
            DataType::DATA_RANGE => Value::Range(Item::unpack(self)?),
            DataType::COMMAND => Value::Command(Item::unpack(self)?),
            DataType::INFO_DIRECTIVES => Value::InfoFlags(Item::unpack(self)?),
            DataType::DATA_TYPE => Value::DataType(self.data_type()?),
            DataType::PROC_STATE => Value::ProcState(Item::unpack(self)?),
            DataType::PROC_INFO => Value::ProcInfo(boxed(self)?),
            DataType::DATA_ARRAY => Value::DataArray(Box::new(self.array()?)),
            DataType::PROC_RANK => Value::Rank(Item::unpack(self)?),
            DataType::QUERY => Value::Query(boxed(self)?),
            DataType::COMPRESSED_STRING => Value::CompressedString(Item::unpack(self)?),
            DataType::ALLOC_DIRECTIVE => Value::AllocDirective(Item::unpack(self)?),
            // Removed in 4.0; now an array of infos.
            DataType::INFO_ARRAY => {
                let n = self.size()?;
                let infos = self.list::<Info>(n)?;
                Value::DataArray(Box::new(DataArray::of_infos(infos)))
            }
            DataType::IOF_CHANNEL => Value::IofChannel(Item::unpack(self)?),
            DataType::ENVAR => Value::Envar(boxed(self)?),
            DataType::COORD => Value::Coord(boxed(self)?),
            DataType::REGATTR => Value::Regattr(boxed(self)?),
            DataType::REGEX => Value::Regex(self.regex()?),
            DataType::JOB_STATE => Value::JobState(Item::unpack(self)?),
            DataType::LINK_STATE => Value::LinkState(Item::unpack(self)?),
            DataType::PROC_CPUSET => Value::Cpuset(Cpuset::unpack(self)?.0),
            DataType::GEOMETRY => Value::Geometry(boxed(self)?),
            DataType::DEVICE_DIST => Value::DeviceDistance(boxed(self)?),
            DataType::ENDPOINT => Value::Endpoint(boxed(self)?),
            DataType::TOPO => Value::Topology(boxed(self)?),
            DataType::DEVTYPE => Value::DeviceType(self.uint64()?),
            DataType::LOCTYPE => Value::Locality(self.uint16()?),
            DataType::COMPRESSED_BYTE_OBJECT => Value::CompressedByteObject(Item::unpack(self)?),
            DataType::PROC_NSPACE => Value::ProcNspace(Item::unpack(self)?),
            DataType::PROC_STATS => Value::ProcStats(boxed(self)?),
            DataType::DISK_STATS => Value::DiskStats(boxed(self)?),
            DataType::NET_STATS => Value::NetStats(boxed(self)?),
            DataType::NODE_STATS => Value::NodeStats(boxed(self)?),
            DataType::DATA_BUFFER => Value::DataBuffer(Item::unpack(self)?),
            DataType::STOR_MEDIUM => Value::StorageMedium(self.uint64()?),
            DataType::STOR_ACCESS => Value::StorageAccess(self.uint64()?),
            DataType::STOR_PERSIST => Value::StoragePersistence(self.uint64()?),
            DataType::STOR_ACCESS_TYPE => Value::StorageAccessType(self.uint16()?),
            DataType::DEVICE => Value::Device(boxed(self)?),
            DataType::RESBLOCK_DIRECTIVE => Value::ResourceBlockDirective(BlockDirective::unpack(self)?.0),
            DataType::RESOURCE_UNIT => Value::ResourceUnit(Item::unpack(self)?),
            DataType::NODE_PID => Value::NodePid(boxed(self)?),
            DataType::REGEX2 => Value::Regex2(boxed(self)?),
            DataType(code) => return Err(DecodeError::UnknownType { code }),
        })
    }

    fn array(&mut self) -> Result<DataArray, DecodeError> {
        let of = self.data_type()?;
        if of == DataType::UNDEF {
            // 6.1 sends nothing behind this type when the array was a NULL pointer; all other releases send a size of 0. No item
            // can start with the bytes of such a size, so they distinguish the two.
            let mut ahead = self.clone();
            if ahead.size() == Ok(0) {
                *self = ahead;
            }
            return Ok(DataArray { of, items: Vec::new() });
        }
        let n = self.size()?;
        let items = self.values(of, n)?;
        // Arrays of a type removed in 4.0 are stored as its successor.
        let of = items.first().map_or(of, Value::data_type);
        Ok(DataArray { of, items })
    }

    pub(super) fn values(&mut self, of: DataType, n: u64) -> Result<Vec<Value>, DecodeError> {
        let n = self.bounded(n, of)?;
        let mut items = Vec::with_capacity(n);
        if n > 0 && self.format.generation.said_width(of).is_some() {
            let width = self.data_type()?;
            for _ in 0..n {
                items.push(match of {
                    DataType::PID => Value::Pid(self.pid_of(width)?),
                    DataType::SIZE => Value::Size(self.size_of(width)?),
                    DataType::INT => Value::Int(self.int_of(width)?),
                    _ => Value::Uint(self.uint_of(width)?),
                });
            }
            return Ok(items);
        }
        for _ in 0..n {
            items.push(self.deeper(|from| from.content(of))?);
        }
        Ok(items)
    }

    fn regex(&mut self) -> Result<Blob, DecodeError> {
        match blob_length(self.peek()) {
            Some(len) => Ok(Blob::from(self.take(len, "a compressed regex")?)),
            None => match self.until_nul()? {
                // The start of a compressed one, with nothing valid behind.
                b"blob:" => Err(DecodeError::Malformed { what: "a compressed regex" }),
                text => Ok(Blob::from(text)),
            },
        }
    }
}

fn boxed<T: Item>(from: &mut Unpacker<'_>) -> Result<Box<T>, DecodeError> {
    T::unpack(from).map(Box::new)
}
