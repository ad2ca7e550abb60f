//! Rendezvous files: how a server lets itself be found, and how tools find it.
//!
//! `announce.rs` writes a server's files and removes them; `search.rs` looks for the files of others; `stale.rs` says whose server is
//! dead; `place.rs` knows the directories, `spot.rs` how to work in one; `seen.rs` asks whether servers are there. What stands in a file is `phalanx_wire::rendezvous`'s business.

mod announce;
mod foreign;
mod place;
mod search;
mod seen;
mod spot;
mod stale;

pub use announce::{AnnounceError, Announcement, Mode, Notice};
pub use place::{nameless_directories, server_directories, system_directories};
pub use search::{Found, Passed, Search, Wanted};

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use phalanx_wire::rendezvous::Rendezvous;
use rustix::fs::{Mode as Bits, OFlags, open};

use crate::trust::Trust;

/// What stands in a file that somebody has named. One that is just being written gets a moment.
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

/// Whether a file is that of a server that is there, and that this user trusts.
pub fn names_living_server(path: &Path, trust: &Trust) -> bool {
    read(path, trust).is_ok_and(|of| seen::is_seen(&of))
}

/// What stands in a rendezvous file, or why nothing can be read from it. A link to it was the choice of whoever has named it;
/// a pipe that somebody has put there must not hold us.
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
