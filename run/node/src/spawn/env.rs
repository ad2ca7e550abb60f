//! Lists of strings in the shape that `execve` takes: one block of bytes and a null-terminated array of pointers.

use std::ffi::c_char;

/// Its bytes never move.
#[derive(Debug)]
pub(super) struct Strings {
    /// Keeps what `pointers` point to.
    _bytes: Box<[u8]>,
    pointers: Box<[*const c_char]>,
}

impl Strings {
    /// An item that contains a NUL ends there.
    pub(super) fn new<'a>(items: impl Iterator<Item = &'a [u8]> + Clone) -> Strings {
        let mut bytes = Vec::with_capacity(items.clone().map(|item| item.len() + 1).sum());
        let mut starts = Vec::with_capacity(items.size_hint().0);
        for item in items {
            starts.push(bytes.len());
            bytes.extend_from_slice(item);
            bytes.push(0);
        }
        let bytes = bytes.into_boxed_slice();
        let base = bytes.as_ptr().cast::<c_char>();
        let pointers = starts.into_iter().map(|start| base.wrapping_add(start));
        let pointers = pointers.chain([std::ptr::null()]).collect();
        Strings { _bytes: bytes, pointers }
    }

    pub(super) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// The name in `NAME=VALUE`.
pub(super) fn name(variable: &[u8]) -> &[u8] {
    variable.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// The value of a variable in a list of `NAME=VALUE`; the last entry counts.
pub(super) fn lookup<'a>(
    name: &[u8],
    variables: impl DoubleEndedIterator<Item = &'a [u8]>,
) -> Option<&'a [u8]> {
    variables.rev().find_map(|variable| variable.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn strings_end_in_null() {
        let strings = Strings::new([&b"a"[..], b"", b"bc=d"].into_iter());
        let read: Vec<&[u8]> = strings.pointers[..3]
            .iter()
            // SAFETY: every pointer but the last is to a terminated string inside `strings`.
            .map(|p| unsafe { CStr::from_ptr(*p) }.to_bytes())
            .collect();
        assert_eq!(read, [&b"a"[..], b"", b"bc=d"]);
        assert!(strings.pointers[3].is_null());
    }

    #[test]
    fn the_last_value_counts() {
        let variables = [&b"PATH=/a"[..], b"PATHS=/x", b"PATH=/b"];
        assert_eq!(lookup(b"PATH", variables.into_iter()), Some(&b"/b"[..]));
        assert_eq!(lookup(b"HOME", variables.into_iter()), None);
    }
}
