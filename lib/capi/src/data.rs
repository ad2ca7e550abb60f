//! Data of programs as bytes: packing and unpacking, copying, printing, compressing.
//!
//! A buffer is packed in the form that this process uses with its server, so that the server and other ranks can unpack it.

use phalanx_spec::{DataType, Status};
use phalanx_wire::Value;
use phalanx_wire::codec::{DecodeError, Format, Generation, Reader};
use phalanx_wire::compress::{deflate, inflate};

use crate::guard::{BAD, exported};
use crate::hwloc::{hwloc, is_hwloc};
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::{Release, free_array};
use crate::{cmem, element, from_c, to_c};

exported! {
    fn PMIx_Data_pack(
        target: Ptr<pmix_proc_t>, buffer: Ptr<pmix_data_buffer_t>, from: Ptr<Opaque>, count: i32, of: u16,
    ) -> Code {
        let _ = target;
        let of = DataType(of);
        let count = usize::try_from(count).map_err(|_| BAD)?;
        if buffer.is_null() || (from.is_null() && count > 0) {
            return Err(BAD);
        }
        element::size(of).ok_or(Status::ERR_UNKNOWN_DATA_TYPE)?;
        // SAFETY: the program guarantees it.
        let values = unsafe { from_c::elements(of, from, count) }?;
        pack(buffer, of, &values)
    }

    /// `count`: room for how many on entry, the number unpacked on return. With too little room the buffer is unchanged.
    fn PMIx_Data_unpack(
        source: Ptr<pmix_proc_t>, buffer: Ptr<pmix_data_buffer_t>, to: Ptr<Opaque>, count: Ptr<i32>, of: u16,
    ) -> Code {
        let _ = source;
        let of = DataType(of);
        let c = buffer.read().ok_or(BAD)?;
        let room = usize::try_from(count.read().ok_or(BAD)?).map_err(|_| BAD)?;
        let size = element::size(of).ok_or(Status::ERR_UNKNOWN_DATA_TYPE)?;
        let bytes = unread(&c);
        let mut reader = Reader::new(FORMAT, &bytes);
        if reader.is_at_end() {
            count.write(0);
            return Err(Status::ERR_UNPACK_READ_PAST_END_OF_BUFFER);
        }
        let there = reader.peek_count().map_err(decoding)?;
        if there > room as u64 || to.is_null() {
            count.write(0);
            return Err(if to.is_null() { BAD } else { Status::ERR_UNPACK_INADEQUATE_SPACE });
        }
        let values = reader.get_values(of).map_err(decoding)?;
        for (index, value) in values.iter().enumerate() {
            // SAFETY: the program guarantees room for so many elements of that type.
            let at = unsafe { to.cast::<u8>().at(index * size) }.erased();
            if value.data_type() != of {
                return Err(Status::ERR_UNPACK_FAILURE);
            }
            // SAFETY: as above.
            unsafe { element::write(value, at) }?;
        }
        count.write(i32::try_from(values.len()).unwrap_or(i32::MAX));
        let taken = bytes.len() - reader.rest().len();
        // SAFETY: so many bytes were just read there.
        let unpack_ptr = unsafe { c.unpack_ptr.at(taken) };
        buffer.write(pmix_data_buffer_t { unpack_ptr, ..c });
        Ok(())
    }

    /// Copies one datum into memory that the caller owns.
    fn PMIx_Data_copy(to: Ptr<Ptr<Opaque>>, from: Ptr<Opaque>, of: u16) -> Code {
        if to.is_null() || from.is_null() {
            return Err(BAD);
        }
        let of = DataType(of);
        to.write(match of {
            DataType::STRING => {
                // SAFETY: the program guarantees the type.
                let text = unsafe { from.cast::<u8>() }.text();
                text.map_or(Ptr::NULL, |text| cmem::text(&text)).erased()
            }
            // SAFETY: as above.
            _ => to_c::boxed(&unsafe { element::read(of, from) }?)?,
        });
        Ok(())
    }

    fn PMIx_Data_copy_payload(to: Ptr<pmix_data_buffer_t>, from: Ptr<pmix_data_buffer_t>) -> Code {
        let bytes = unread(&from.read().ok_or(BAD)?);
        append(to, &bytes)
    }

    /// One line after the prefix, in memory that the caller owns.
    fn PMIx_Data_print(to: Ptr<Ptr<u8>>, prefix: Ptr<u8>, from: Ptr<Opaque>, of: u16) -> Code {
        if to.is_null() || from.is_null() {
            return Err(BAD);
        }
        let of = DataType(of);
        let shown = match of {
            // SAFETY: the program guarantees the type.
            DataType::STRING => unsafe { from.cast::<u8>() }.text().map_or_else(String::new, |text| {
                String::from_utf8_lossy(&text).into_owned()
            }),
            // SAFETY: as above.
            DataType::TOPO => summary(unsafe { from.cast() })?,
            // SAFETY: as above.
            _ => with_summaries(unsafe { element::read(of, from) }?).to_string(),
        };
        let mut line = prefix.text().unwrap_or_default();
        line.extend(format!("Data type: {}\tValue: {shown}", of.name().unwrap_or("unknown")).bytes());
        to.write(cmem::text(&line));
        Ok(())
    }

    /// The buffer takes ownership of the bytes.
    fn PMIx_Data_load(buffer: Ptr<pmix_data_buffer_t>, payload: Ptr<pmix_byte_object_t>) -> Code {
        let c = payload.read().ok_or(BAD)?;
        load(buffer, c.bytes, c.size)?;
        payload.write(pmix_byte_object_t::EMPTY);
        Ok(())
    }

    /// The caller takes ownership of the bytes that were not unpacked; the buffer is empty then.
    fn PMIx_Data_unload(buffer: Ptr<pmix_data_buffer_t>, payload: Ptr<pmix_byte_object_t>) -> Code {
        if payload.is_null() {
            return Err(BAD);
        }
        let (bytes, size) = unload(buffer)?;
        payload.write(pmix_byte_object_t { bytes, size });
        Ok(())
    }

    /// The buffer's content is replaced by a copy of the bytes.
    fn PMIx_Data_embed(buffer: Ptr<pmix_data_buffer_t>, payload: Ptr<pmix_byte_object_t>) -> Code {
        let bytes = payload.read().map(from_c::blob).ok_or(BAD)?;
        load(buffer, cmem::bytes(bytes.as_bytes()), bytes.len())
    }

    fn PMIx_Data_buffer_create() -> Ptr<pmix_data_buffer_t> {
        cmem::one(pmix_data_buffer_t::EMPTY)
    }

    fn PMIx_Data_buffer_release(buffer: Ptr<pmix_data_buffer_t>) {
        free_array(buffer, 1);
    }

    fn PMIx_Data_buffer_load(buffer: Ptr<pmix_data_buffer_t>, bytes: Ptr<u8>, size: usize) {
        // There is nothing to load into if `buffer` is NULL.
        let _ = load(buffer, bytes, size);
    }

    fn PMIx_Data_buffer_unload(buffer: Ptr<pmix_data_buffer_t>, bytes: Ptr<Ptr<u8>>, size: Ptr<usize>) {
        let (taken, length) = unload(buffer).unwrap_or((Ptr::NULL, 0));
        bytes.write(taken);
        size.write(length);
    }

    /// Whether compression made the data smaller; only then is there an output.
    fn PMIx_Data_compress(from: Ptr<u8>, size: usize, to: Ptr<Ptr<u8>>, length: Ptr<usize>) -> bool {
        let packed = deflate(&from.bytes(size));
        let smaller = !from.is_null() && packed.len() < size;
        hand_over(smaller.then_some(packed), to, length)
    }

    fn PMIx_Data_decompress(from: Ptr<u8>, size: usize, to: Ptr<Ptr<u8>>, length: Ptr<usize>) -> bool {
        hand_over(inflate(&from.bytes(size), usize::MAX).ok(), to, length)
    }
}

fn hand_over(bytes: Option<Vec<u8>>, to: Ptr<Ptr<u8>>, length: Ptr<usize>) -> bool {
    to.write(bytes.as_ref().map_or(Ptr::NULL, |bytes| cmem::bytes(bytes)));
    length.write(bytes.as_ref().map_or(0, Vec::len));
    bytes.is_some()
}

/// Appends values to the buffer.
pub(crate) fn pack(buffer: Ptr<pmix_data_buffer_t>, of: DataType, values: &[Value]) -> Result<(), Status> {
    append(buffer, &pmix::pack(of, values))
}

fn unread(c: &pmix_data_buffer_t) -> Vec<u8> {
    let read = c.base_ptr.distance_to(c.unpack_ptr);
    c.unpack_ptr.bytes(c.bytes_used.saturating_sub(read))
}

fn append(buffer: Ptr<pmix_data_buffer_t>, bytes: &[u8]) -> Result<(), Status> {
    let c = buffer.read().ok_or(BAD)?;
    let read = c.base_ptr.distance_to(c.unpack_ptr);
    let used = c.bytes_used + bytes.len();
    let (base, allocated) = match used <= c.bytes_allocated {
        true => (c.base_ptr, c.bytes_allocated),
        false => {
            let allocated = used.next_power_of_two().max(LEAST);
            let base = cmem::array::<u8>(allocated);
            base.fill(&c.base_ptr.bytes(c.bytes_used));
            cmem::free(c.base_ptr);
            (base, allocated)
        }
    };
    // SAFETY: there is room for `used` bytes: the program guarantees it, or it was just allocated.
    let (behind, pack_ptr, unpack_ptr) = unsafe { (base.at(c.bytes_used), base.at(used), base.at(read)) };
    behind.fill(bytes);
    buffer.write(pmix_data_buffer_t {
        base_ptr: base,
        pack_ptr,
        unpack_ptr,
        bytes_allocated: allocated,
        bytes_used: used,
    });
    Ok(())
}

/// The objects of a topology, as hwloc counts them.
fn summary(from: Ptr<pmix_topology_t>) -> Result<String, Status> {
    let c = from.read().ok_or(BAD)?;
    match hwloc().filter(|_| c.source.text().is_some_and(|source| is_hwloc(&source))) {
        Some(hwloc) if !c.topology.is_null() => Ok(hwloc.summary(c.topology)),
        _ => Ok(Value::Topology(Box::new(from_c::topology(&c)?)).to_string()),
    }
}

/// Replaces each topology inside the value by its summary.
fn with_summaries(mut value: Value) -> Value {
    let insides: &mut [Value] = match &mut value {
        Value::Topology(topology) => {
            let c = to_c::topology(topology);
            let summary = hwloc().filter(|_| c.source.text().is_some_and(|source| is_hwloc(&source)));
            let summary = summary.map(|hwloc| hwloc.summary(c.topology));
            c.release();
            return summary.map_or(value, |summary| summary.as_str().into());
        }
        Value::Value(inside) => std::slice::from_mut(inside),
        Value::Info(info) => std::slice::from_mut(&mut info.value),
        Value::Kval(kval) => std::slice::from_mut(&mut kval.value),
        Value::Pdata(data) => std::slice::from_mut(&mut data.value),
        Value::DataArray(array) => &mut array.items,
        _ => return value,
    };
    for inside in insides {
        *inside = with_summaries(std::mem::replace(inside, Value::Undef));
    }
    value
}

fn load(buffer: Ptr<pmix_data_buffer_t>, bytes: Ptr<u8>, size: usize) -> Result<(), Status> {
    buffer.read().ok_or(BAD)?.release();
    buffer.write(pmix_data_buffer_t {
        base_ptr: bytes,
        // SAFETY: the end of the bytes; the program guarantees their number.
        pack_ptr: unsafe { bytes.at(size) },
        unpack_ptr: bytes,
        bytes_allocated: size,
        bytes_used: size,
    });
    Ok(())
}

fn unload(buffer: Ptr<pmix_data_buffer_t>) -> Result<(Ptr<u8>, usize), Status> {
    let c = buffer.read().ok_or(BAD)?;
    let whole = (c.base_ptr, c.bytes_used);
    let taken = if c.unpack_ptr == c.base_ptr {
        whole
    } else {
        let rest = unread(&c);
        cmem::free(c.base_ptr);
        (cmem::bytes(&rest), rest.len())
    };
    buffer.write(pmix_data_buffer_t::EMPTY);
    Ok(taken)
}

fn decoding(error: DecodeError) -> Status {
    match error {
        DecodeError::Truncated { .. } => Status::ERR_UNPACK_READ_PAST_END_OF_BUFFER,
        DecodeError::Type { .. } => Status::ERR_PACK_MISMATCH,
        _ => Status::ERR_UNPACK_FAILURE,
    }
}

/// All releases since 4.1 read it; they describe types only in debug builds.
const FORMAT: Format = Format { generation: Generation::V41, described: false };
const LEAST: usize = 128;
