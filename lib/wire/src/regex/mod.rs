//! The compressed ways in which maps of nodes and processes are written.

/// The length of the compressed regex at the start of `bytes`, if there is one.
///
/// Three texts, each with its NUL (`blob:`, `component=zlib:`, `size=N:`), then N bytes.
pub(crate) fn blob_length(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"blob:\0")?;
    let component = rest.iter().position(|b| *b == 0)?;
    let sized = rest.get(component + 1..)?;
    let end = sized.iter().position(|b| *b == 0)?;
    let digits = sized.get(..end)?.strip_prefix(b"size=")?.strip_suffix(b":")?;
    let size: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let head = b"blob:\0".len() + component + 1 + end + 1;
    head.checked_add(size)
}
