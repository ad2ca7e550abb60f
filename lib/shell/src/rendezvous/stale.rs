//! Files of dead servers, and only those: they may be removed, or replaced by another server's.
//!
//! That a server cannot be seen proves nothing: in another container that shares only the directory with us, it has other
//! pids and ports. So our servers hold a lock on their files while they live, and record that in them: where the lock is free, the server is
//! dead. The lock belongs to the open file, not to its name; forked children that have not executed another program hold it, too.
//! Servers of OpenPMIx hold none, and their files are left alone.

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::parse;
use super::seen::is_seen;
use super::spot::{self, Spot};
use crate::trust::Trust;

/// Marks a new file's server as alive until the file is closed. `false`: this file system has no locks.
pub(super) fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The file of a dead server, which no other process removes or replaces while this exists.
#[derive(Debug)]
pub(super) struct Stale {
    spot: Spot,
    _lock: File,
}

impl Stale {
    /// `None`: the file has changed in the meantime. Err: the reason why it must stay.
    pub(super) fn open(spot: &Spot) -> Result<Option<Stale>, String> {
        // NFS grants an exclusive lock only on a file opened for writing.
        let mut file = match spot.open(OFlags::RDWR) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err("it is a symbolic link".to_owned());
            }
            Err(e) => {
                let owner = spot.owner().map(|owner| format!(", of the user {owner},")).unwrap_or_default();
                return Err(format!("a file{owner} is there and cannot be opened: {e}"));
            }
        };
        spot::check(&file, &Trust::default()).map_err(|why| format!("something else is there: {why}"))?;
        let of = parse(&mut file).map_err(|problem| format!("something else is there: {problem}"))?;
        let pid = of.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let server = format!("server {}{pid}", of.uri.server);
        if is_seen(&of) {
            return Err(format!("the file is there already: {server} is alive"));
        }
        if !of.locked {
            return Err(format!(
                "{server} is not to be seen from here, but may live in another container: remove the file if it does not"
            ));
        }
        match is_free(&file) {
            Ok(true) => Ok(spot.is_of(&file).then(|| Stale { spot: spot.clone(), _lock: file })),
            Ok(false) => Err(format!(
                "{server} is alive, though not to be seen from here: it is in another container, and holds the file's lock"
            )),
            Err(e) => {
                Err(format!("{server} is not to be seen from here, and the file cannot be locked: {e}"))
            }
        }
    }

    pub(super) fn remove(self) -> io::Result<()> {
        self.spot.remove()
    }

    /// Puts another file in its place.
    pub(super) fn give_to(self, file: &Spot) -> io::Result<()> {
        file.rename_to(&self.spot)
    }
}

/// Takes the lock. Other processes that want to remove or replace the file hold it only for moments.
fn is_free(file: &File) -> Result<bool, Errno> {
    for _ in 0..ATTEMPTS {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(e) => return Err(e),
        }
    }
    Ok(false)
}

const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);
