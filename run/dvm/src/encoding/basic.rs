//! Numbers, texts, lists, and optional values.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Encode, Malformed, Reader, Writer};

macro_rules! unsigned {
    ($($number:ty)+) => {$(
        impl Encode for $number {
            fn encode(&self, to: &mut Writer) {
                to.number(*self as u64);
            }

            fn decode(from: &mut Reader<'_>) -> Result<$number, Malformed> {
                let n = from.number()?;
                n.try_into().map_err(|_| from.malformed(format!("{n} does not fit into its type")))
            }
        }
    )+};
}
unsigned!(u16 u32 u64 usize);

impl Encode for u8 {
    fn encode(&self, to: &mut Writer) {
        to.byte(*self);
    }

    fn decode(from: &mut Reader<'_>) -> Result<u8, Malformed> {
        from.byte()
    }

    fn encode_all(items: &[u8], to: &mut Writer) {
        to.raw(items);
    }

    fn decode_all(count: usize, from: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        from.raw(count).map(<[u8]>::to_vec)
    }
}

/// Small numbers of either sign are short.
impl Encode for i32 {
    fn encode(&self, to: &mut Writer) {
        to.number(u64::from(((self << 1) ^ (self >> 31)).cast_unsigned()));
    }

    fn decode(from: &mut Reader<'_>) -> Result<i32, Malformed> {
        let n = u32::decode(from)?;
        Ok((n >> 1).cast_signed() ^ -((n & 1).cast_signed()))
    }
}

impl Encode for f32 {
    fn encode(&self, to: &mut Writer) {
        to.raw(&self.to_le_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Result<f32, Malformed> {
        <[u8; 4]>::decode(from).map(f32::from_le_bytes)
    }
}

impl Encode for bool {
    fn encode(&self, to: &mut Writer) {
        to.byte(u8::from(*self));
    }

    fn decode(from: &mut Reader<'_>) -> Result<bool, Malformed> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(from.malformed(format!("neither yes nor no: {other}"))),
        }
    }
}

impl Encode for char {
    fn encode(&self, to: &mut Writer) {
        to.number(u64::from(u32::from(*self)));
    }

    fn decode(from: &mut Reader<'_>) -> Result<char, Malformed> {
        let n = u32::decode(from)?;
        char::from_u32(n).ok_or_else(|| from.malformed(format!("no character has the number {n}")))
    }
}

impl Encode for Duration {
    fn encode(&self, to: &mut Writer) {
        to.number(self.as_secs());
        to.number(u64::from(self.subsec_nanos()));
    }

    fn decode(from: &mut Reader<'_>) -> Result<Duration, Malformed> {
        let (seconds, nanos) = (from.number()?, u32::decode(from)?);
        match nanos {
            0..1_000_000_000 => Ok(Duration::new(seconds, nanos)),
            _ => Err(from.malformed("a fraction of a second is longer than one")),
        }
    }
}

impl Encode for String {
    fn encode(&self, to: &mut Writer) {
        encode_list(self.as_bytes(), to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<String, Malformed> {
        String::from_utf8(Vec::decode(from)?).map_err(|_| from.malformed("a text that is not UTF-8"))
    }
}

impl Encode for Arc<str> {
    fn encode(&self, to: &mut Writer) {
        encode_list(self.as_bytes(), to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Arc<str>, Malformed> {
        String::decode(from).map(Arc::from)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, to: &mut Writer) {
        encode_list(self, to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Vec<T>, Malformed> {
        let count = from.count()?;
        T::decode_all(count, from)
    }
}

impl<T: Encode> Encode for Arc<[T]> {
    fn encode(&self, to: &mut Writer) {
        encode_list(self, to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Arc<[T]>, Malformed> {
        Vec::decode(from).map(Arc::from)
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    fn encode(&self, to: &mut Writer) {
        T::encode_all(self, to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<[T; N], Malformed> {
        let items = T::decode_all(N, from)?;
        items.try_into().map_err(|_| from.malformed("an array of another length"))
    }
}

impl<T: Encode + Ord> Encode for BTreeSet<T> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.encode(to));
    }

    fn decode(from: &mut Reader<'_>) -> Result<BTreeSet<T>, Malformed> {
        Vec::decode(from).map(BTreeSet::from_iter)
    }
}

impl<K: Encode + Ord, V: Encode> Encode for BTreeMap<K, V> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.encode(to);
            value.encode(to);
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Malformed> {
        Vec::<(K, V)>::decode(from).map(BTreeMap::from_iter)
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
        self.1.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<(A, B), Malformed> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode(&self, to: &mut Writer) {
        self.is_some().encode(to);
        self.iter().for_each(|value| value.encode(to));
    }

    fn decode(from: &mut Reader<'_>) -> Result<Option<T>, Malformed> {
        bool::decode(from)?.then(|| T::decode(from)).transpose()
    }
}

impl<T: Encode, E: Encode> Encode for Result<T, E> {
    fn encode(&self, to: &mut Writer) {
        self.is_ok().encode(to);
        match self {
            Ok(value) => value.encode(to),
            Err(error) => error.encode(to),
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Result<T, E>, Malformed> {
        match bool::decode(from)? {
            true => T::decode(from).map(Ok),
            false => E::decode(from).map(Err),
        }
    }
}

impl<T: Encode> Encode for Arc<T> {
    fn encode(&self, to: &mut Writer) {
        (**self).encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Arc<T>, Malformed> {
        T::decode(from).map(Arc::new)
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode(&self, to: &mut Writer) {
        (**self).encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Box<T>, Malformed> {
        T::decode(from).map(Box::new)
    }
}

fn encode_list<T: Encode>(items: &[T], to: &mut Writer) {
    to.number(items.len() as u64);
    T::encode_all(items, to);
}

impl Encode for Cow<'static, str> {
    fn encode(&self, to: &mut Writer) {
        encode_list(self.as_bytes(), to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Cow<'static, str>, Malformed> {
        String::decode(from).map(Cow::Owned)
    }
}
