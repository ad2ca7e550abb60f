//! Rendezvous files: how a server lets itself be found, and how tools find it.
//!
//! `announce.rs` writes a server's files and removes them; `search.rs` looks for the files of others; `grave.rs` says whose server is
//! dead; `place.rs` knows the directories. What stands in a file is `phalanx_wire::rendezvous`'s business.

mod announce;
mod grave;
mod place;
mod search;

pub use announce::{Announcement, Mode, Notice};
pub use place::{server_directories, system_directories};
pub use search::{Found, Passed, Search, Wanted};

use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use phalanx_wire::rendezvous::Rendezvous;
use rustix::fs::{FileType, Mode as Bits, OFlags, fstat, open};
use rustix::process::{Pid, test_kill_process};

/// What stands in a file that somebody has named. One that is just being written gets a moment.
pub(crate) fn read_file(path: &Path) -> Result<Rendezvous, String> {
    let mut text = read(path);
    for _ in 0..3 {
        if text != Err(EMPTY.to_owned()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        text = read(path);
    }
    text
}

/// Whether a file is that of a server that is there.
pub fn names_living_server(path: &Path) -> bool {
    read(path).is_ok_and(|of| is_seen(&of))
}

/// What stands in a rendezvous file, or why nothing can be read from it.
fn read(path: &Path) -> Result<Rendezvous, String> {
    parse(&mut open_file(path).map_err(|e| e.to_string())?)
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

/// A regular file. A pipe that somebody has put there must not hold us.
fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Bits::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Whether the server that wrote this may be reached from here: there is a process of its pid, or somebody at its address.
fn is_seen(of: &Rendezvous) -> bool {
    !(of.pid.is_some_and(is_no_process) && is_deserted(of.uri.address))
}

fn is_no_process(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_none_or(is_gone)
}

/// Containers often have nobody who waits for orphans: a process that has ended stays there.
fn is_gone(pid: Pid) -> bool {
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        || stat().rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Whether nobody accepts connections there.
fn is_deserted(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, PATIENCE)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

const EMPTY: &str = "it is empty";
const LONGEST: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(1);
