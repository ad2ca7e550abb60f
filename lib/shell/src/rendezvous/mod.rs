//! Rendezvous files: how a server announces itself, and how tools find it.
//!
//! `announce.rs` writes a server's files and removes them; `search.rs` looks for the files of others; `stale.rs` decides which servers are
//! dead; `place.rs` knows the directories, `spot.rs` how to work in one; `seen.rs` checks whether servers are there.
//! `phalanx_wire::rendezvous` defines the content of a file.

mod announce;
mod foreign;
mod place;
mod search;
mod seen;
mod spot;
mod stale;

pub use announce::{AnnounceError, Announcement, Mode, Notice};
pub use place::{nameless_directories, server_directories, system_directories, system_directory};
pub use search::{Found, Passed, Search, Wanted};

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use phalanx_wire::rendezvous::Rendezvous;
use rustix::fs::{Mode as Bits, OFlags, open};

use crate::trust::Trust;

/// The content of a file that the user has named. If it is empty, its server may be writing it: retries for a moment.
pub fn read_file(path: &Path, trust: &Trust) -> Result<Rendezvous, String> {
    let mut text = read(path, trust);
    for _ in 0..3 {
        if text != Err(EMPTY.to_owned()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        text = read(path, trust);
    }
    text
}

/// Whether this is the file of a server that is there, and that this user trusts.
pub fn names_living_server(path: &Path, trust: &Trust) -> bool {
    read(path, trust).is_ok_and(|of| seen::is_seen(&of))
}

/// The content of a rendezvous file, or why it cannot be read. Follows a link, as the user has named the path; does not block on a pipe.
fn read(path: &Path, trust: &Trust) -> Result<Rendezvous, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(open(path, flags, Bits::empty()).map_err(|e| e.to_string())?);
    spot::check(&file, trust)?;
    parse(&mut file)
}

fn parse(file: &mut File) -> Result<Rendezvous, String> {
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(|e| e.to_string())?;
    match Rendezvous::parse(&text) {
        Ok(Some(rendezvous)) => Ok(rendezvous),
        Ok(None) => Err(EMPTY.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

const EMPTY: &str = "it is empty";
const LONGEST: u64 = 16 << 10;
