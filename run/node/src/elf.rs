//! How an ELF file wants to be loaded: its interpreter, the libraries it needs, where to look for them.
//!
//! Reads 64-bit files of this machine's byte order, and only their tables. Anything malformed is `None`, because users name these files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// An open file and its program headers.
#[derive(Debug)]
pub(crate) struct Elf {
    file: File,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

/// The dynamic section, as far as we need it.
#[derive(Debug, Default)]
pub(crate) struct Dynamic {
    /// DT_NEEDED: names of libraries.
    pub(crate) needed: Vec<Vec<u8>>,
    /// DT_RUNPATH, or DT_RPATH if it is missing: directories separated by `:`, with `$ORIGIN` unexpanded.
    pub(crate) runpath: Option<Vec<u8>>,
}

impl Elf {
    pub(crate) fn open(path: &Path) -> Option<Elf> {
        let file = File::open(path).ok()?;
        let mut head = [0_u8; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02") {
            return None;
        }
        let table = number(&head, 32, 8)?;
        let (entry, count) = (number(&head, 54, 2)?, number(&head, 56, 2)?);
        let size = entry.checked_mul(count).filter(|size| entry >= 56 && *size <= MOST_HEADERS)?;
        let headers = bytes(&file, table, size)?;
        let segments = headers.chunks_exact(usize::try_from(entry).ok()?).map(|header| {
            Some(Segment {
                kind: number(header, 0, 4)?,
                offset: number(header, 8, 8)?,
                address: number(header, 16, 8)?,
                size: number(header, 32, 8)?,
            })
        });
        let segments = segments.collect::<Option<Vec<Segment>>>()?;
        Some(Elf { file, segments })
    }

    /// PT_INTERP.
    pub(crate) fn interpreter(&self) -> Option<Vec<u8>> {
        let segment = self.segment(PT_INTERP)?;
        let bytes = self.bytes(segment.offset, segment.size.min(libc::PATH_MAX as u64))?;
        Some(until_nul(&bytes).to_vec())
    }

    pub(crate) fn dynamic(&self) -> Option<Dynamic> {
        let segment = self.segment(PT_DYNAMIC)?;
        let section = self.bytes(segment.offset, segment.size.min(MOST_DYNAMIC))?;
        let entries = section.chunks_exact(16).map_while(|entry| {
            let (tag, value) = (number(entry, 0, 8)?, number(entry, 8, 8)?);
            (tag != DT_NULL).then_some((tag, value))
        });
        let entries: Vec<(u64, u64)> = entries.collect();
        let value = |wanted| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let strings = self.offset_of(value(DT_STRTAB)?)?;
        let strings = self.bytes(strings, value(DT_STRSZ)?.min(MOST_STRINGS))?;
        let string = |at: u64| Some(until_nul(strings.get(usize::try_from(at).ok()?..)?).to_vec());
        let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
        Some(Dynamic {
            needed: needed.filter_map(|(_, at)| string(*at)).collect(),
            runpath: value(DT_RUNPATH).or_else(|| value(DT_RPATH)).and_then(string),
        })
    }

    fn segment(&self, kind: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.kind == kind)
    }

    /// The offset in the file of a loaded address.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            segment.kind == PT_LOAD
                && address.checked_sub(segment.address).is_some_and(|at| at < segment.size)
        };
        let segment = self.segments.iter().find(holds)?;
        segment.offset.checked_add(address - segment.address)
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        bytes(&self.file, offset, size)
    }
}

fn bytes(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// An unsigned number of `size` bytes in this machine's byte order.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0_u8; 8];
    let field = bytes.get(at..at.checked_add(size)?)?;
    if cfg!(target_endian = "little") {
        number.get_mut(..size)?.copy_from_slice(field);
    } else {
        number.get_mut(8 - size..)?.copy_from_slice(field);
    }
    Some(u64::from_ne_bytes(number))
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// All program headers; ordinary files have a dozen of 56 bytes each.
const MOST_HEADERS: u64 = 1 << 16;
const MOST_DYNAMIC: u64 = 1 << 16;
const MOST_STRINGS: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_their_loader_and_libraries() {
        let shell = Elf::open(Path::new("/bin/sh")).unwrap();
        assert!(shell.interpreter().unwrap().starts_with(b"/lib"));
        let needed = shell.dynamic().unwrap().needed;
        assert!(needed.iter().any(|name| name.starts_with(b"libc.so")), "{needed:?}");
    }

    #[test]
    fn other_files_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for text in [&b"#!/bin/sh"[..], b"\x7fELF\x02", &[0xff; 200], b""] {
            std::fs::write(&path, text).unwrap();
            assert!(Elf::open(&path).is_none());
        }
        // Headers that point nowhere.
        let mut wild = b"\x7fELF\x02".to_vec();
        wild.resize(64, 0xff);
        std::fs::write(&path, &wild).unwrap();
        assert!(Elf::open(&path).is_none());
    }
}
