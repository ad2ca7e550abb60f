//! Bytes to values: the primitive encodings, and the reader that takes items off a buffer.
//!
//! Handles any bytes: every read checks how many are left, every count is checked against the fewest bytes that as many
//! values can take before anything is allocated for them, and nesting has a limit.

use phalanx_spec::DataType;

use super::{DecodeError, Format, Item, Size, size};
use crate::value::Value;

/// The deepest nesting of values that is accepted. Real messages nest no deeper than six.
pub const MAX_DEPTH: u8 = 32;

/// Takes one buffer apart.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    from: Unpacker<'a>,
}

impl<'a> Reader<'a> {
    pub fn new(format: Format, bytes: &'a [u8]) -> Reader<'a> {
        Reader { from: Unpacker { format, left: bytes, depth: 0 } }
    }

    /// Reads an item of exactly one value.
    pub fn get<T: Item>(&mut self) -> Result<T, DecodeError> {
        self.head::<T>(1)?;
        T::unpack(&mut self.from)
    }

    /// Reads an item of exactly `n` values.
    pub fn get_n<T: Item>(&mut self, n: u64) -> Result<Vec<T>, DecodeError> {
        self.head::<T>(n)?;
        self.from.list(n)
    }

    /// How many values the next item holds.
    pub fn peek_count(&self) -> Result<u64, DecodeError> {
        let count = self.clone().count()?;
        u64::try_from(count).map_err(|_| DecodeError::Malformed { what: "a count of values" })
    }

    /// Reads an item of a type known only at run time.
    pub fn get_values(&mut self, of: DataType) -> Result<Vec<Value>, DecodeError> {
        let n = self.peek_count()?;
        self.count()?;
        if self.from.format.described {
            self.from.expect_type(of)?;
        }
        self.from.values(of, n)
    }

    /// Reads what [`Writer::put_list`](super::Writer::put_list) wrote.
    pub fn get_list<T: Item>(&mut self) -> Result<Vec<T>, DecodeError> {
        let Size(n) = self.get()?;
        if n == 0 { Ok(Vec::new()) } else { self.get_n(n) }
    }

    /// Reads items of one value each, up to the end.
    pub fn get_rest<T: Item>(&mut self) -> Result<Vec<T>, DecodeError> {
        let mut all = Vec::new();
        while !self.is_at_end() {
            all.push(self.get()?);
        }
        Ok(all)
    }

    pub fn is_at_end(&self) -> bool {
        self.from.left.is_empty()
    }

    /// The bytes behind the last item that was read.
    pub fn rest(&self) -> &'a [u8] {
        self.from.left
    }

    /// Refuses bytes behind the last item.
    pub fn expect_end(&self) -> Result<(), DecodeError> {
        match self.from.left.len() {
            0 => Ok(()),
            bytes => Err(DecodeError::Trailing { bytes }),
        }
    }

    pub fn format(&self) -> Format {
        self.from.format
    }

    fn head<T: Item>(&mut self, wanted: u64) -> Result<(), DecodeError> {
        let count = self.count()?;
        if self.from.format.described {
            self.from.expect_type(T::TYPE)?;
        }
        if i64::from(count).cast_unsigned() != wanted {
            return Err(DecodeError::Malformed { what: "a count of values" });
        }
        Ok(())
    }

    fn count(&mut self) -> Result<i32, DecodeError> {
        if self.from.format.described {
            self.from.expect_type(DataType::INT32)?;
        }
        self.from.int32()
    }
}

/// Reads values without count or description.
#[derive(Clone, Debug)]
pub struct Unpacker<'a> {
    pub(super) format: Format,
    left: &'a [u8],
    depth: u8,
}

impl<'a> Unpacker<'a> {
    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1, "a byte")?[0])
    }

    pub(super) fn uint16(&mut self) -> Result<u16, DecodeError> {
        narrow(self.unsigned(2, "UINT16")?, "UINT16")
    }

    pub(super) fn uint32(&mut self) -> Result<u32, DecodeError> {
        narrow(self.unsigned(4, "UINT32")?, "UINT32")
    }

    pub(super) fn uint64(&mut self) -> Result<u64, DecodeError> {
        self.unsigned(8, "UINT64")
    }

    pub(super) fn int16(&mut self) -> Result<i16, DecodeError> {
        narrow(self.signed(2, "INT16")?, "INT16")
    }

    pub(super) fn int32(&mut self) -> Result<i32, DecodeError> {
        narrow(self.signed(4, "INT32")?, "INT32")
    }

    pub(super) fn int64(&mut self) -> Result<i64, DecodeError> {
        self.signed(8, "INT64")
    }

    pub(super) fn data_type(&mut self) -> Result<DataType, DecodeError> {
        Ok(DataType(self.uint16()?))
    }

    pub(super) fn expect_type(&mut self, expected: DataType) -> Result<(), DecodeError> {
        let found = self.data_type()?;
        if found != expected {
            return Err(DecodeError::Type { expected: expected.0, found: found.0 });
        }
        Ok(())
    }

    pub(super) fn size(&mut self) -> Result<u64, DecodeError> {
        if self.format.generation.has_flexible_integers() {
            return self.uint64();
        }
        let width = self.data_type()?;
        self.size_of(width)
    }

    pub(super) fn size_of(&mut self, width: DataType) -> Result<u64, DecodeError> {
        narrow(self.integer(width)?, "SIZE")
    }

    pub(super) fn int(&mut self) -> Result<i32, DecodeError> {
        if self.format.generation.has_flexible_integers() {
            return self.int32();
        }
        let width = self.data_type()?;
        self.int_of(width)
    }

    pub(super) fn int_of(&mut self, width: DataType) -> Result<i32, DecodeError> {
        narrow(self.integer(width)?, "INT")
    }

    pub(super) fn uint(&mut self) -> Result<u32, DecodeError> {
        if self.format.generation.has_flexible_integers() {
            return self.int32().map(i32::cast_unsigned);
        }
        let width = self.data_type()?;
        self.uint_of(width)
    }

    pub(super) fn uint_of(&mut self, width: DataType) -> Result<u32, DecodeError> {
        either_sign(self.integer(width)?, "UINT")
    }

    pub(super) fn pid(&mut self) -> Result<u32, DecodeError> {
        let width = self.data_type()?;
        self.pid_of(width)
    }

    pub(super) fn pid_of(&mut self, width: DataType) -> Result<u32, DecodeError> {
        either_sign(self.integer(width)?, "PID")
    }

    /// `None`: a NULL pointer.
    pub(super) fn string(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let claimed = self.int32()?;
        let len = usize::try_from(claimed).map_err(|_| DecodeError::Malformed { what: "a string length" })?;
        if len == 0 {
            return Ok(None);
        }
        match self.take(len, "a string")? {
            [text @ .., 0] => Ok(Some(text)),
            _ => Err(DecodeError::Malformed { what: "a string without terminator" }),
        }
    }

    pub(super) fn sized_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let claimed = self.size()?;
        let limit = self.left.len();
        let len = usize::try_from(claimed).unwrap_or(usize::MAX);
        if len > limit {
            return Err(DecodeError::TooLong { what: "a byte object", claimed, limit: limit as u64 });
        }
        self.take(len, "a byte object")
    }

    /// Everything up to the next NUL, which is skipped.
    pub(super) fn until_nul(&mut self) -> Result<&'a [u8], DecodeError> {
        let end = self.left.iter().position(|b| *b == 0).ok_or(DecodeError::Truncated { what: "a text" })?;
        let text = self.take(end + 1, "a text")?;
        Ok(&text[..end])
    }

    pub(super) fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, left) = self.left.split_at_checked(n).ok_or(DecodeError::Truncated { what })?;
        self.left = left;
        Ok(taken)
    }

    pub(super) fn peek(&self) -> &'a [u8] {
        self.left
    }

    /// Reads `n` values of one type, allocating no more than the remaining bytes can hold.
    pub(super) fn list<T: Item>(&mut self, n: u64) -> Result<Vec<T>, DecodeError> {
        let n = self.bounded(n, T::TYPE)?;
        let mut items = Vec::with_capacity(n);
        for _ in 0..n {
            items.push(T::unpack(self)?);
        }
        Ok(items)
    }

    pub(super) fn bounded(&self, n: u64, of: DataType) -> Result<usize, DecodeError> {
        let limit = self.left.len() / size::least(of).max(1);
        match usize::try_from(n) {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(DecodeError::TooLong { what: "a list", claimed: n, limit: limit as u64 }),
        }
    }

    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// An integer of the data type that the sender declared.
    fn integer(&mut self, width: DataType) -> Result<i128, DecodeError> {
        Ok(match width {
            DataType::INT8 => i128::from(self.byte()?.cast_signed()),
            DataType::UINT8 => i128::from(self.byte()?),
            DataType::INT16 => i128::from(self.int16()?),
            DataType::UINT16 => i128::from(self.uint16()?),
            DataType::INT32 => i128::from(self.int32()?),
            DataType::UINT32 => i128::from(self.uint32()?),
            DataType::INT64 => i128::from(self.int64()?),
            DataType::UINT64 => i128::from(self.uint64()?),
            found => return Err(DecodeError::Type { expected: DataType::UINT64.0, found: found.0 }),
        })
    }

    fn unsigned(&mut self, width: usize, what: &'static str) -> Result<u64, DecodeError> {
        if self.format.generation.has_flexible_integers() {
            return self.flexible(what);
        }
        Ok(self.take(width, what)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, width: usize, what: &'static str) -> Result<i64, DecodeError> {
        let n = self.unsigned(width, what)?;
        if self.format.generation.has_flexible_integers() {
            return Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed());
        }
        let unused = 64 - 8 * width;
        Ok((n << unused).cast_signed() >> unused)
    }

    fn flexible(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        let mut n = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.take(1, what)?[0];
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Ok(n | u64::from(self.take(1, what)?[0]) << 56)
    }
}

fn narrow<A, B: TryFrom<A>>(n: A, what: &'static str) -> Result<B, DecodeError> {
    B::try_from(n).map_err(|_| DecodeError::Overflow { what })
}

/// Senders disagree whether a `pid_t` or an `unsigned int` is signed: their -1 is our 2^32-1.
fn either_sign(n: i128, what: &'static str) -> Result<u32, DecodeError> {
    i32::try_from(n).map(i32::cast_unsigned).or_else(|_| narrow(n, what))
}
