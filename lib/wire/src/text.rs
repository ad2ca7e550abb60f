//! Strings and byte blocks as peers send them.
//!
//! A PMIx string is a C string: bytes without NUL, in any encoding. Command lines and environments really
//! contain such bytes, so nothing here converts them; the code that shows a string to a person does.

use std::fmt;
use std::sync::Arc;

/// A C string: any bytes but NUL. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// The text up to the first NUL of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Text {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Text(bytes[..end].into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text with invalid UTF-8 replaced: for people only.
    pub fn to_string_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<&str> for Text {
    fn from(s: &str) -> Text {
        Text::from_bytes(s.as_bytes())
    }
}

impl From<String> for Text {
    fn from(s: String) -> Text {
        Text::from_bytes(s.as_bytes())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Opaque bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Blob(Arc<[u8]>);

impl Blob {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Blob {
    fn from(v: Vec<u8>) -> Blob {
        Blob(v.into())
    }
}

impl From<Arc<[u8]>> for Blob {
    fn from(v: Arc<[u8]>) -> Blob {
        Blob(v)
    }
}

impl From<&[u8]> for Blob {
    fn from(v: &[u8]) -> Blob {
        Blob(v.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}
