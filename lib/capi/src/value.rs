//! Values and infos: loading, unloading, copying, comparing, and the flags of an info.

use std::cmp::Ordering;

use phalanx_spec::{Boolean, DataType, Status, ValueCmp};
use phalanx_wire::{InfoFlags, ProcId, Value};

use crate::element::{self, Storage};
use crate::guard::{BAD, exported};
use crate::layout::*;
use crate::names::fixed;
use crate::pointer::{Data, Opaque, Ptr, Tag};
use crate::{cmem, from_c, to_c};

/// The types that programs must provide a place for.
const PLAIN: &[DataType] = &[
    DataType::BOOL,
    DataType::BYTE,
    DataType::SIZE,
    DataType::PID,
    DataType::INT,
    DataType::INT8,
    DataType::INT16,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT,
    DataType::UINT8,
    DataType::UINT16,
    DataType::UINT32,
    DataType::UINT64,
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::STATUS,
    DataType::PROC_NSPACE,
    DataType::PROC_RANK,
    DataType::STOR_ACCESS_TYPE,
    DataType::STOR_MEDIUM,
    DataType::STOR_ACCESS,
    DataType::STOR_PERSIST,
    DataType::TIMEVAL,
    DataType::TIME,
    DataType::PROC,
    DataType::PERSIST,
    DataType::SCOPE,
    DataType::DATA_RANGE,
    DataType::PROC_STATE,
    DataType::ALLOC_DIRECTIVE,
    DataType::LINK_STATE,
    DataType::LOCTYPE,
    DataType::DEVTYPE,
];

exported! {
    /// Copies `data`, which points to a datum of that type; for strings and pointers it is the datum.
    fn PMIx_Value_load(to: Ptr<pmix_value_t>, data: Ptr<Opaque>, of: u16) -> Code {
        if to.is_null() {
            return Err(BAD);
        }
        to.write(loaded(data, DataType(of))?);
        Ok(())
    }

    /// Copies the datum to where `*data` points, or, if that is NULL, into memory that the caller owns. For plain data that
    /// is an error: Open MPI 5 counts process sets by it.
    fn PMIx_Value_unload(from: Ptr<pmix_value_t>, data: Ptr<Ptr<Opaque>>, size: Ptr<usize>) -> Code {
        let c = from.read().ok_or(BAD)?;
        let to = data.read().ok_or(BAD)?;
        let of = c.type_.data_type();
        let (found, length) = match of {
            DataType::UNDEF => return Err(Status::ERR_UNKNOWN_DATA_TYPE),
            DataType::STRING => {
                // SAFETY: the type identifies it as a C string.
                let text = unsafe { c.data.get::<Ptr<u8>>() }.text();
                let length = text.as_ref().map_or(0, Vec::len);
                (text.map_or(Ptr::NULL, |text| cmem::text(&text)).erased(), length)
            }
            DataType::BYTE_OBJECT | DataType::COMPRESSED_STRING | DataType::COMPRESSED_BYTE_OBJECT | DataType::REGEX => {
                // SAFETY: the type identifies it as a byte object.
                let bytes = from_c::blob(unsafe { c.data.get() });
                (cmem::bytes(bytes.as_bytes()).erased(), bytes.len())
            }
            DataType::POINTER => (c.data.pointer(), size_of::<Ptr<Opaque>>()),
            _ => {
                let length = element::size(of).ok_or(Status::ERR_UNKNOWN_DATA_TYPE)?;
                if to.is_null() && PLAIN.contains(&of) {
                    return Err(BAD);
                }
                let copy = to_c::boxed(&from_c::value(&c)?)?;
                if to.is_null() {
                    (copy, length)
                } else {
                    // SAFETY: an element of that type is there, and the program has room for one.
                    unsafe { to.cast::<u8>().fill(&copy.cast::<u8>().bytes(length)) };
                    cmem::free(copy);
                    (to, length)
                }
            }
        };
        data.write(found);
        size.write(length);
        Ok(())
    }

    fn PMIx_Value_xfer(to: Ptr<pmix_value_t>, from: Ptr<pmix_value_t>) -> Code {
        let c = from.read().ok_or(BAD)?;
        if to.is_null() {
            return Err(BAD);
        }
        to.write(copied(&c)?);
        Ok(())
    }

    fn PMIx_Value_compare(one: Ptr<pmix_value_t>, other: Ptr<pmix_value_t>) -> i32 {
        compare(one, other).0
    }

    /// The size of a value and everything that it owns, in bytes.
    fn PMIx_Value_get_size(value: Ptr<pmix_value_t>, size: Ptr<usize>) -> Code {
        let c = value.read().ok_or(BAD)?;
        size.write(owned_size(&from_c::value(&c)?) + size_of::<pmix_value_t>());
        Ok(())
    }

    /// Converts any number to another type, if the value is preserved.
    fn PMIx_Value_get_number(value: Ptr<pmix_value_t>, to: Ptr<Opaque>, of: u16) -> Code {
        let value = from_c::value(&value.read().ok_or(BAD)?)?;
        if to.is_null() {
            return Err(BAD);
        }
        let number = number(&value, DataType(of))?;
        // SAFETY: the program guarantees room for such an element.
        unsafe { element::write(&number, to) }
    }

    fn PMIx_Value_true(value: Ptr<pmix_value_t>) -> i32 {
        value.read().map_or(Boolean::NON_BOOL, |c| truth(&c)).0
    }

    fn PMIx_Info_load(to: Ptr<pmix_info_t>, key: Ptr<u8>, data: Ptr<Opaque>, of: u16) -> Code {
        if to.is_null() || key.is_null() {
            return Err(BAD);
        }
        to.write(pmix_info_t { key: fixed(key), flags: 0, value: loaded(data, DataType(of))? });
        Ok(())
    }

    /// The value of a persistent info is not copied: both share it.
    fn PMIx_Info_xfer(to: Ptr<pmix_info_t>, from: Ptr<pmix_info_t>) -> Code {
        let c = from.read().ok_or(BAD)?;
        if to.is_null() {
            return Err(BAD);
        }
        to.write(copied_info(&c)?);
        Ok(())
    }

    fn PMIx_Info_true(info: Ptr<pmix_info_t>) -> i32 {
        info.read().map_or(Boolean::NON_BOOL, |c| truth(&c.value)).0
    }

    fn PMIx_Info_get_size(info: Ptr<pmix_info_t>, size: Ptr<usize>) -> Code {
        let c = info.read().ok_or(BAD)?;
        size.write(owned_size(&from_c::value(&c.value)?) + size_of::<pmix_info_t>());
        Ok(())
    }

    fn PMIx_Info_required(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::REQUIRED, true);
    }

    fn PMIx_Info_optional(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::REQUIRED, false);
    }

    fn PMIx_Info_processed(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::REQUIRED_PROCESSED, true);
    }

    fn PMIx_Info_set_end(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::ARRAY_END, true);
    }

    fn PMIx_Info_qualifier(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::QUALIFIER, true);
    }

    fn PMIx_Info_persistent(info: Ptr<pmix_info_t>) {
        flag(info, InfoFlags::PERSISTENT, true);
    }

    fn PMIx_Info_is_required(info: Ptr<pmix_info_t>) -> bool {
        has(info, InfoFlags::REQUIRED)
    }

    fn PMIx_Info_is_optional(info: Ptr<pmix_info_t>) -> bool {
        !has(info, InfoFlags::REQUIRED)
    }

    fn PMIx_Info_was_processed(info: Ptr<pmix_info_t>) -> bool {
        has(info, InfoFlags::REQUIRED_PROCESSED)
    }

    fn PMIx_Info_is_end(info: Ptr<pmix_info_t>) -> bool {
        has(info, InfoFlags::ARRAY_END)
    }

    fn PMIx_Info_is_qualifier(info: Ptr<pmix_info_t>) -> bool {
        has(info, InfoFlags::QUALIFIER)
    }

    fn PMIx_Info_is_persistent(info: Ptr<pmix_info_t>) -> bool {
        has(info, InfoFlags::PERSISTENT)
    }

    fn PMIx_Pdata_load(to: Ptr<pmix_pdata_t>, proc: Ptr<pmix_proc_t>, key: Ptr<u8>, data: Ptr<Opaque>, of: u16) {
        if let (Some(proc), Ok(value)) = (proc.read(), loaded(data, DataType(of))) {
            to.write(pmix_pdata_t { proc, key: fixed(key), value });
        }
    }

    fn PMIx_Pdata_xfer(to: Ptr<pmix_pdata_t>, from: Ptr<pmix_pdata_t>) {
        if let Some(c) = from.read()
            && let Ok(value) = copied(&c.value)
        {
            to.write(pmix_pdata_t { value, ..c });
        }
    }
}

/// A value made of a datum that a program points to.
pub(crate) fn loaded(data: Ptr<Opaque>, of: DataType) -> Result<pmix_value_t, Status> {
    let data = match of {
        DataType::UNDEF => Data::ZERO,
        DataType::POINTER => return Ok(pointer(data)),
        DataType::STRING => {
            // SAFETY: the program guarantees a C string.
            let text = unsafe { data.cast::<u8>() }.text();
            // SAFETY: it is put beside this type below.
            unsafe { Data::of(text.map_or(Ptr::NULL, |text| cmem::text(&text))) }
        }
        // A directive without a value is on.
        // SAFETY: as above.
        DataType::BOOL if data.is_null() => unsafe { Data::of(1_u8) },
        _ if data.is_null() => Data::ZERO,
        // The datum is the generated map itself; the value holds it with its length.
        DataType::REGEX => {
            // SAFETY: the program guarantees a map.
            let map = map(unsafe { data.cast() }).ok_or(BAD)?;
            // SAFETY: as above.
            unsafe { Data::of(pmix_byte_object_t { bytes: cmem::bytes(&map), size: map.len() }) }
        }
        // SAFETY: the program guarantees such an element.
        _ => return to_c::value(&unsafe { element::read(of, data) }?),
    };
    // SAFETY: the union was made for this type; zeroes are NULL or empty in any type.
    Ok(pmix_value_t { type_: unsafe { Tag::of(of) }, data })
}

/// The pointer itself is the datum, and is not followed here.
pub(crate) fn pointer(data: Ptr<Opaque>) -> pmix_value_t {
    // SAFETY: a pointer is the union's content for this type.
    unsafe { pmix_value_t { type_: Tag::of(DataType::POINTER), data: Data::of(data) } }
}

/// A value that takes ownership of a topology.
pub(crate) fn topology(c: pmix_topology_t) -> pmix_value_t {
    // SAFETY: the union of such a value points to a topology.
    unsafe { pmix_value_t { type_: Tag::of(DataType::TOPO), data: Data::of(cmem::one(c).erased()) } }
}

/// A map with its NUL. The compressed notation is three texts, of which the last gives the number of bytes that follow.
fn map(at: Ptr<u8>) -> Option<Vec<u8>> {
    let mut length = at.text()?.len() + 1;
    if at.text()? == b"blob:" {
        // SAFETY: the map continues after each text, as the program guarantees.
        length += unsafe { at.at(length) }.text()?.len() + 1;
        // SAFETY: as above.
        let size = unsafe { at.at(length) }.text()?;
        let bytes = std::str::from_utf8(&size)
            .ok()?
            .strip_prefix("size=")?
            .strip_suffix(':')?
            .parse::<usize>()
            .ok()?;
        length = (length + size.len() + 1).checked_add(bytes)?;
    }
    Some(at.bytes(length))
}

/// A copy of a value; pointers are not followed.
pub(crate) fn copied(c: &pmix_value_t) -> Result<pmix_value_t, Status> {
    if c.type_.data_type() == DataType::POINTER { Ok(*c) } else { to_c::value(&from_c::value(c)?) }
}

pub(crate) fn copied_info(c: &pmix_info_t) -> Result<pmix_info_t, Status> {
    let shared = c.flags & InfoFlags::PERSISTENT.bits() != 0;
    Ok(pmix_info_t { value: if shared { c.value } else { copied(&c.value)? }, ..*c })
}

fn flag(info: Ptr<pmix_info_t>, flag: InfoFlags, on: bool) {
    if let Some(mut c) = info.read() {
        if on {
            c.flags |= flag.bits();
        } else {
            c.flags &= !flag.bits();
        }
        info.write(c);
    }
}

fn has(info: Ptr<pmix_info_t>, flag: InfoFlags) -> bool {
    info.read().is_some_and(|c| c.flags & flag.bits() != 0)
}

/// The truth of a value. A string may express it in words.
fn truth(c: &pmix_value_t) -> Boolean {
    let said = |yes| if yes { Boolean::TRUE } else { Boolean::FALSE };
    match from_c::value(c) {
        Ok(Value::Undef) => Boolean::TRUE,
        Ok(Value::Bool(yes)) => said(yes),
        Ok(Value::String(text)) => match text.to_string_lossy().trim().to_ascii_lowercase().as_str() {
            "" | "true" | "t" | "yes" | "y" | "on" | "1" => Boolean::TRUE,
            "false" | "f" | "no" | "n" | "off" | "0" => Boolean::FALSE,
            other => other.parse::<i64>().map_or(Boolean::NON_BOOL, |number| said(number != 0)),
        },
        _ => Boolean::NON_BOOL,
    }
}

fn compare(one: Ptr<pmix_value_t>, other: Ptr<pmix_value_t>) -> ValueCmp {
    let read = |value: Ptr<pmix_value_t>| value.read().and_then(|c| from_c::value(&c).ok());
    let (Some(a), Some(b)) = (read(one), read(other)) else { return ValueCmp::VALUE_INCOMPATIBLE_OBJECTS };
    if a.data_type() != b.data_type() {
        return ValueCmp::VALUE_TYPE_DIFFERENT;
    }
    let ordering = match (&a, &b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::ByteObject(a), Value::ByteObject(b)) => Some(a.cmp(b)),
        (Value::Proc(a), Value::Proc(b)) => Some(ProcId::cmp(a, b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Timeval(a), Value::Timeval(b)) => Some(a.cmp(b)),
        _ if a == b => Some(Ordering::Equal),
        _ => a
            .as_u64()
            .zip(b.as_u64())
            .map(|(a, b)| a.cmp(&b))
            .or(a.as_i64().zip(b.as_i64()).map(|(a, b)| a.cmp(&b))),
    };
    match ordering {
        Some(Ordering::Equal) => ValueCmp::EQUAL,
        Some(Ordering::Less) => ValueCmp::VALUE2_GREATER,
        Some(Ordering::Greater) => ValueCmp::VALUE1_GREATER,
        None => ValueCmp::VALUE_INCOMPATIBLE_OBJECTS,
    }
}

fn number(value: &Value, of: DataType) -> Result<Value, Status> {
    let lost = Status::ERR_LOST_PRECISION;
    let whole = || -> Result<i128, Status> {
        match value {
            Value::Float(n) if n.fract() == 0.0 => Ok(*n as i128),
            Value::Double(n) if n.fract() == 0.0 => Ok(*n as i128),
            Value::Float(_) | Value::Double(_) => Err(lost),
            Value::Bool(yes) => Ok(i128::from(*yes)),
            other => {
                other.as_u64().map(i128::from).or(other.as_i64().map(i128::from)).ok_or(Status::ERR_BAD_PARAM)
            }
        }
    };
    macro_rules! fitting {
        ($variant:ident) => {
            Value::$variant(whole()?.try_into().map_err(|_| lost)?)
        };
    }
    Ok(match of {
        DataType::BYTE => fitting!(Byte),
        DataType::SIZE => fitting!(Size),
        DataType::PID => fitting!(Pid),
        DataType::INT => fitting!(Int),
        DataType::INT8 => fitting!(Int8),
        DataType::INT16 => fitting!(Int16),
        DataType::INT32 => fitting!(Int32),
        DataType::INT64 => fitting!(Int64),
        DataType::UINT => fitting!(Uint),
        DataType::UINT8 => fitting!(Uint8),
        DataType::UINT16 => fitting!(Uint16),
        DataType::UINT32 => fitting!(Uint32),
        DataType::UINT64 => fitting!(Uint64),
        DataType::STATUS => Value::Status(Status(whole()?.try_into().map_err(|_| lost)?)),
        DataType::PROC_RANK => Value::Rank(phalanx_spec::Rank(whole()?.try_into().map_err(|_| lost)?)),
        DataType::FLOAT => Value::Float(match value {
            Value::Float(n) => *n,
            Value::Double(n) => *n as f32,
            _ => whole()? as f32,
        }),
        DataType::DOUBLE => Value::Double(match value {
            Value::Float(n) => f64::from(*n),
            Value::Double(n) => *n,
            _ => whole()? as f64,
        }),
        _ => return Err(Status::ERR_BAD_PARAM),
    })
}

/// The number of bytes that a value owns outside of itself.
fn owned_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_bytes().len() + 1,
        Value::ByteObject(blob)
        | Value::CompressedString(blob)
        | Value::CompressedByteObject(blob)
        | Value::Regex(blob)
        | Value::DataBuffer(blob) => blob.len(),
        Value::DataArray(array) => {
            let each = element::size(array.of).unwrap_or(0);
            let owned: usize = array.items.iter().map(owned_size).sum();
            size_of::<pmix_data_array_t>() + each * array.items.len() + owned
        }
        Value::Info(info) => owned_size(&info.value),
        Value::Pdata(pdata) => owned_size(&pdata.value),
        other if element::place(other.data_type()) == Storage::Behind => {
            element::size(other.data_type()).unwrap_or(0)
        }
        _ => 0,
    }
}
