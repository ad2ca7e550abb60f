//! Files that the user or a batch system has named, read whole: hostfiles, rankfiles, environment files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All of a file, unless it is larger than any that makes sense. Devices can go on for ever.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!("it has more than {} MiB", MOST_BYTES >> 20))),
        false => Ok(bytes),
    }
}

/// As many hosts as a file may name have room, and long names.
const MOST_BYTES: u64 = 32 << 20;
