//! Values to bytes: the primitive encodings, and the writer that frames them as items of a buffer.
//!
//! A buffer is a sequence of items, each `count [type] values`. Values inside a composite follow each other without
//! either; [`Packer`] writes those, while [`Writer`] writes whole items. Packing cannot fail: values that a
//! generation has no place for were replaced before (see `values.rs`).

use phalanx_spec::DataType;

use super::{Format, Item, Size};
use crate::value::Value;

/// Builds one buffer.
#[derive(Debug)]
pub struct Writer {
    to: Packer,
}

impl Writer {
    pub fn new(format: Format) -> Writer {
        Writer::onto(format, Vec::new())
    }

    /// Appends to these bytes.
    pub fn onto(format: Format, out: Vec<u8>) -> Writer {
        Writer { to: Packer { format, out } }
    }

    /// One item with one value.
    pub fn put<T: Item>(&mut self, value: &T) -> &mut Writer {
        self.put_all(std::slice::from_ref(value))
    }

    /// One item with all these values. The other side must ask for the same number.
    pub fn put_all<T: Item>(&mut self, values: &[T]) -> &mut Writer {
        self.head(T::TYPE, values.len());
        for value in values {
            value.pack(&mut self.to);
        }
        self
    }

    /// One item with values whose type is known only at run time. Each must be of type `of`; the generation must have it.
    pub fn put_values(&mut self, of: DataType, values: &[Value]) -> &mut Writer {
        self.head(of, values.len());
        self.to.run(of, &values.iter().collect::<Vec<_>>());
        self
    }

    fn head(&mut self, of: DataType, count: usize) {
        if self.to.format.described {
            self.to.data_type(&DataType::INT32);
        }
        self.to.int32(&i32::try_from(count).unwrap_or(i32::MAX));
        if self.to.format.described {
            self.to.data_type(&of);
        }
    }

    /// The number of values as one item; then, unless it is 0, all of them as another.
    pub fn put_list<T: Item>(&mut self, values: &[T]) -> &mut Writer {
        self.put(&Size(values.len() as u64));
        if !values.is_empty() {
            self.put_all(values);
        }
        self
    }

    /// Appends items written by another writer of the same format.
    pub fn put_items(&mut self, bytes: &[u8]) -> &mut Writer {
        self.to.out.extend_from_slice(bytes);
        self
    }

    pub fn format(&self) -> Format {
        self.to.format
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.to.out
    }
}

/// Writes values without count or description.
#[derive(Debug)]
pub struct Packer {
    pub(super) format: Format,
    out: Vec<u8>,
}

impl Packer {
    pub(super) fn byte(&mut self, v: &u8) {
        self.out.push(*v);
    }

    pub(super) fn uint16(&mut self, v: &u16) {
        self.unsigned(u64::from(*v), 2);
    }

    pub(super) fn uint32(&mut self, v: &u32) {
        self.unsigned(u64::from(*v), 4);
    }

    pub(super) fn uint64(&mut self, v: &u64) {
        self.unsigned(*v, 8);
    }

    pub(super) fn int16(&mut self, v: &i16) {
        self.signed(i64::from(*v), 2);
    }

    pub(super) fn int32(&mut self, v: &i32) {
        self.signed(i64::from(*v), 4);
    }

    pub(super) fn int64(&mut self, v: &i64) {
        self.signed(*v, 8);
    }

    pub(super) fn data_type(&mut self, v: &DataType) {
        self.uint16(&v.0);
    }

    /// C's `size_t`. Before 4.0, types of machine-dependent width are preceded by their width.
    pub(super) fn size(&mut self, v: &u64) {
        self.width(DataType::SIZE);
        self.uint64(v);
    }

    /// C's `int`.
    pub(super) fn int(&mut self, v: &i32) {
        self.width(DataType::INT);
        self.int32(v);
    }

    /// C's `unsigned int`: written as if signed.
    pub(super) fn uint(&mut self, v: &u32) {
        self.int(&v.cast_signed());
    }

    pub(super) fn pid(&mut self, v: &u32) {
        self.width(DataType::PID);
        self.uint32(v);
    }

    /// The type code that precedes an integer of this type.
    pub(super) fn width(&mut self, of: DataType) {
        let width = self.format.generation.said_width(of);
        width.iter().for_each(|width| self.data_type(width));
    }

    /// The length counts the terminator; a length of 0 is a NULL pointer.
    pub(super) fn string(&mut self, v: Option<&[u8]>) {
        match v {
            None => self.int32(&0),
            Some(bytes) => {
                self.int32(&i32::try_from(bytes.len() + 1).unwrap_or(i32::MAX));
                self.out.extend_from_slice(bytes);
                self.out.push(0);
            }
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn unsigned(&mut self, v: u64, width: usize) {
        if self.format.generation.has_flexible_integers() {
            self.flexible(v);
        } else {
            let bytes = v.to_be_bytes();
            self.out.extend_from_slice(&bytes[8 - width..]);
        }
    }

    fn signed(&mut self, v: i64, width: usize) {
        if self.format.generation.has_flexible_integers() {
            self.flexible(((v << 1) ^ (v >> 63)).cast_unsigned());
        } else {
            let bytes = v.to_be_bytes();
            self.out.extend_from_slice(&bytes[8 - width..]);
        }
    }

    /// Seven bits per byte, low ones first; the eighth bit means that more follow. A ninth byte holds eight bits.
    fn flexible(&mut self, mut v: u64) {
        for _ in 0..8 {
            let low = (v & 0x7f) as u8;
            v >>= 7;
            if v == 0 {
                self.out.push(low);
                return;
            }
            self.out.push(low | 0x80);
        }
        self.out.push(v as u8);
    }
}
