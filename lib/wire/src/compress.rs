//! Compressed strings and byte objects: the plain length in host byte order, then a zlib stream.
//!
//! Peers compress anything longer than about 4 KiB (maps of large jobs, fence contributions). Inflation never allocates more
//! than the caller allows, whatever the length prefix claims.

use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::text::{Blob, Text};
use crate::value::Value;

/// Why compressed bytes cannot be expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflateError {
    /// They claim to expand to more than allowed, or than any stream of their length could.
    TooLong { claimed: u32, limit: usize },
    /// Not a zlib stream, or one of another length.
    Malformed,
}

/// The caller decides by comparing whether compressing these bytes saves anything.
pub fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(LENGTH + plain.len() / 2 + SLACK);
    out.extend_from_slice(&u32::try_from(plain.len()).unwrap_or(u32::MAX).to_ne_bytes());
    let mut stream = Compress::new(Compression::best(), true);
    loop {
        let taken = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let rest = plain.get(taken..).unwrap_or_default();
        match stream.compress_vec(rest, &mut out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => return out,
            // Compressing into memory fails only for lack of room.
            Ok(_) | Err(_) => out.reserve(rest.len() + SLACK),
        }
    }
}

/// The reverse of [`deflate`], for plain lengths up to `limit`.
pub fn inflate(bytes: &[u8], limit: usize) -> Result<Vec<u8>, InflateError> {
    let (length, stream) = bytes.split_first_chunk::<LENGTH>().ok_or(InflateError::Malformed)?;
    let claimed = u32::from_ne_bytes(*length);
    let limit = limit.min(stream.len().saturating_mul(BEST_RATIO));
    let plain_len = claimed as usize;
    if plain_len > limit {
        return Err(InflateError::TooLong { claimed, limit });
    }
    // One byte more than claimed: a stream that fills it is longer than claimed.
    let mut plain = Vec::with_capacity(plain_len + 1);
    let end = Decompress::new(true)
        .decompress_vec(stream, &mut plain, FlushDecompress::Finish)
        .map_err(|_| InflateError::Malformed)?;
    if end != Status::StreamEnd || plain.len() != plain_len {
        return Err(InflateError::Malformed);
    }
    Ok(plain)
}

impl Value {
    /// The plain form of a compressed string or byte object; any other value unchanged.
    pub fn expanded(self, limit: usize) -> Result<Value, InflateError> {
        Ok(match self {
            Value::CompressedString(blob) => {
                Value::String(Text::from_bytes(&inflate(blob.as_bytes(), limit)?))
            }
            Value::CompressedByteObject(blob) => {
                Value::ByteObject(Blob::from(inflate(blob.as_bytes(), limit)?))
            }
            other => other,
        })
    }
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InflateError::TooLong { claimed, limit } => {
                write!(f, "compressed bytes claim to become {claimed} where at most {limit} are accepted")
            }
            InflateError::Malformed => f.write_str("compressed bytes are malformed"),
        }
    }
}

impl std::error::Error for InflateError {}

const LENGTH: usize = 4;
const SLACK: usize = 128;
/// Deflate cannot do better than 1032 to 1.
const BEST_RATIO: usize = 1032;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deflated_bytes_inflate() {
        for plain in [Vec::new(), b"a".to_vec(), vec![7; 1_000_000], (0..=255).cycle().take(70_000).collect()]
        {
            assert_eq!(inflate(&deflate(&plain), plain.len()), Ok(plain));
        }
    }

    #[test]
    fn a_stream_that_lies_about_its_length_is_refused() {
        let mut bytes = deflate(&[7; 1000]);
        for claim in [0, 999, 1001] {
            bytes[..4].copy_from_slice(&u32::to_ne_bytes(claim));
            assert_eq!(inflate(&bytes, 2000), Err(InflateError::Malformed));
        }
        bytes[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(matches!(inflate(&bytes, usize::MAX), Err(InflateError::TooLong { .. })));
        bytes[..4].copy_from_slice(&1000_u32.to_ne_bytes());
        assert_eq!(inflate(&bytes, 999), Err(InflateError::TooLong { claimed: 1000, limit: 999 }));
        assert_eq!(inflate(&bytes[..bytes.len() - 1], 1000), Err(InflateError::Malformed));
        assert_eq!(inflate(b"abc", 10), Err(InflateError::Malformed));
    }

    #[test]
    fn values_expand() {
        let long = "x".repeat(5000);
        let value = Value::CompressedString(deflate(long.as_bytes()).into());
        assert_eq!(value.expanded(10_000), Ok(Value::from(long)));
        assert_eq!(Value::from(true).expanded(0), Ok(Value::from(true)));
    }
}
