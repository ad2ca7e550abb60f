//! Values for a `px` of the same release in another process, as bytes that name the release.

use crate::encoding::{Encode, encoded, from_bytes, to_bytes};

pub(crate) fn seal<T: Encode>(value: &T) -> Vec<u8> {
    to_bytes(&Envelope { release: RELEASE.to_owned(), rest: to_bytes(value) })
}

/// The error states why the bytes cannot be read.
pub(crate) fn open<T: Encode>(bytes: &[u8]) -> Result<T, String> {
    let envelope: Envelope = from_bytes(bytes).map_err(|error| error.to_string())?;
    match envelope.release == RELEASE {
        true => from_bytes(&envelope.rest).map_err(|error| error.to_string()),
        false => Err(format!("the server is px {}, and this is px {RELEASE}", envelope.release)),
    }
}

/// The bytes in `rest` are only understood by the same release.
struct Envelope {
    release: String,
    rest: Vec<u8>,
}

encoded!(struct Envelope { release, rest });

const RELEASE: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn values_from_another_release_are_not_read() {
        let sent = to_bytes(&Envelope { release: "0.0.0".to_owned(), rest: vec![1, 2, 3] });
        let refused = open::<u32>(&sent).unwrap_err();
        assert!(refused.starts_with("the server is px 0.0.0, and this is px "), "{refused}");
        assert_eq!(open(&seal(&7_u32)), Ok(7_u32));
    }
}
