//! Writes a server's files, and removes them when the server ends.
//!
//! A file appears with its full text or not at all: it is written under a name of its own, and then linked to the names that
//! tools look for, as creating a file takes much longer than linking one. Foreign links are never followed. A file that is in the
//! way is replaced only if its server is dead (`stale.rs`).

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::calendar::date;
use phalanx_wire::rendezvous::{self, Rendezvous};
use phalanx_wire::uri::ServerUri;
use rustix::fs::{Gid, Mode as Bits, fchmod, fchown};
use rustix::process::{getegid, geteuid};
use rustix::rand::{GetRandomFlags, getrandom};

use super::foreign::displace;
use super::spot::Spot;
use super::stale::{Stale, lock};

/// Permissions of the files: by default only their owner can read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Permission bits.
    pub bits: u32,
    /// A group other than the server's own.
    pub gid: Option<u32>,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode { bits: 0o600, gid: None }
    }
}

/// What a server announces, and where.
#[derive(Clone, Debug)]
pub struct Notice {
    pub uri: ServerUri,
    /// The OpenPMIx release that the server presents itself as.
    pub version: String,
    pub hostname: String,
    /// The secret that tools on other nodes must present.
    pub secret: Option<String>,
    pub mode: Mode,
    /// Directory for `pmix.sys.HOST`, if this is the system server.
    pub system_dir: Option<PathBuf>,
    /// Directory for `pmix.HOST.tool.PID` and `pmix.HOST.tool.NSPACE`, if tools may search for this server.
    pub server_dir: Option<PathBuf>,
    /// Further files, at any path (`pmix.tool.lncrnd`).
    pub files: Vec<PathBuf>,
}

/// A rendezvous file cannot be written.
#[derive(Debug)]
pub struct AnnounceError {
    pub file: PathBuf,
    pub problem: String,
}

impl fmt::Display for AnnounceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the rendezvous file {}: {}", self.file.display(), self.problem)
    }
}

impl std::error::Error for AnnounceError {}

/// A server's files. Dropping this removes them, in the process that created it.
#[derive(Debug)]
pub struct Announcement {
    files: Vec<Spot>,
    /// The content of each file.
    says: Rendezvous,
    /// The files under these names, open for their locks. Most have several names.
    held: Vec<File>,
    pid: u32,
}

impl Announcement {
    /// Writes all files, or none.
    pub fn make(notice: &Notice) -> Result<Announcement, AnnounceError> {
        let pid = std::process::id();
        let says = rendezvous(notice, pid);
        let mut made = Announcement { files: Vec::new(), says, held: Vec::new(), pid };
        if let Some(dir) = &notice.system_dir {
            let system = dir.join(rendezvous::system_file(&notice.hostname));
            made.add_from(&mut Draft::new(Name::OfServers), &system, notice.mode)?;
        }
        if let Some(dir) = &notice.server_dir {
            let nspace = notice.uri.server.nspace.as_str();
            let by_pid = dir.join(rendezvous::pid_file(&notice.hostname, pid));
            let mut draft = Draft::new(Name::OfServers);
            made.add_from(&mut draft, &by_pid, notice.mode)?;
            let by_nspace = dir.join(rendezvous::nspace_file(&notice.hostname, nspace));
            made.add_from(&mut draft, &by_nspace, notice.mode)?;
            // Of several servers that share a directory, the first has this name.
            let session = dir.join(rendezvous::session_file(&notice.hostname));
            if let Err(error) = made.add_from(&mut draft, &session, notice.mode) {
                tracing::debug!(%error, "tools must look for this server by its pid or namespace");
            }
        }
        for file in &notice.files {
            made.add_from(&mut Draft::new(Name::OfSomebody), file, notice.mode)?;
        }
        Ok(made)
    }

    /// The files that were written.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(Spot::path)
    }

    fn add_from(&mut self, draft: &mut Draft, path: &Path, mode: Mode) -> Result<(), AnnounceError> {
        let spot = Spot::of(path).map_err(|error| error.to_string());
        let put = spot.and_then(|spot| draft.put(&spot, &self.says, mode, &mut self.held).map(|()| spot));
        let spot = put.map_err(|problem| AnnounceError { file: path.to_owned(), problem })?;
        self.files.push(spot);
        Ok(())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        for spot in &self.files {
            // A file that has replaced ours is not removed.
            if self.held.iter().any(|file| spot.is_of(file)) {
                let _ = spot.remove();
            }
        }
    }
}

fn rendezvous(notice: &Notice, pid: u32) -> Rendezvous {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Rendezvous {
        uri: notice.uri.clone(),
        version: Some(notice.version.clone()),
        pid: Some(pid),
        owner: Some((geteuid().as_raw(), getegid().as_raw())),
        written: Some(as_ctime(since_epoch.as_secs())),
        secret: notice.secret.clone(),
        locked: false,
    }
}

/// A file with its full text, not yet under a name that tools look for. Dropping this removes what is left of it.
struct Draft {
    /// Beside the final file, so that both are on one file system; hidden from searches for servers.
    spot: Option<Spot>,
    to: Name,
}

/// Where the name of a file comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// A name where tools look for servers, so nothing else belongs there.
    OfServers,
    /// Given by the launcher or an environment variable: an existing file may be precious.
    OfSomebody,
}

impl Draft {
    fn new(to: Name) -> Draft {
        Draft { spot: None, to }
    }

    fn put(&mut self, to: &Spot, says: &Rendezvous, mode: Mode, held: &mut Vec<File>) -> Result<(), String> {
        let draft = match self.spot.take() {
            Some(draft) => draft,
            None => {
                let (draft, file) = create(to).map_err(|e| e.to_string())?;
                let draft = self.spot.insert(draft).clone();
                write(&file, says, mode).map_err(|e| format!("{}: {e}", draft.path().display()))?;
                held.push(file);
                draft
            }
        };
        self.spot = place(&draft, to, self.to)?.then_some(draft);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(spot) = &self.spot {
            let _ = spot.remove();
        }
    }
}

fn create(beside: &Spot) -> io::Result<(Spot, File)> {
    let spot = secret(beside)?;
    let file = spot.create()?;
    Ok((spot, file))
}

/// A name beside this one that cannot be predicted.
fn secret(beside: &Spot) -> io::Result<Spot> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let mut name = std::ffi::OsString::from(".");
    name.push(beside.name());
    name.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(beside.beside(name))
}

/// The file stays open for its lock.
fn write(mut file: &File, says: &Rendezvous, mode: Mode) -> io::Result<()> {
    let says = Rendezvous { locked: lock(file), ..says.clone() };
    file.write_all(says.to_string().as_bytes())?;
    // Some directories give files the directory's group, which is not the one that should read this file.
    let is_for_group = mode.bits & 0o070 != 0;
    if let Some(gid) = mode.gid.or_else(|| is_for_group.then(|| getegid().as_raw())) {
        fchown(file, None, Some(Gid::from_raw(gid)))?;
    }
    fchmod(file, Bits::from_raw_mode(mode.bits))?;
    Ok(())
}

/// Gives the draft this name, if no living server has it. Returns whether the draft's own name still exists.
fn place(draft: &Spot, to: &Spot, name: Name) -> Result<bool, String> {
    for _ in 0..ATTEMPTS {
        match draft.link_to(to) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.to_string()),
        }
        let displaced = || secret(to).and_then(|aside| displace(to, &aside)).map_err(|e| e.to_string());
        if name == Name::OfServers && displaced()? {
            continue;
        }
        if let Some(stale) = Stale::open(to)? {
            return stale.give_to(draft).map(|()| false).map_err(|e| e.to_string());
        }
    }
    Err("others put files there again and again".to_owned())
}

/// `Fri Nov 20 16:20:01 2026`, in UTC.
fn as_ctime(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let weekday = WEEKDAYS[(days + 4) as usize % 7];
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (time / 3600, time / 60 % 60, time % 60);
    let month = MONTHS[(month as usize - 1) % 12];
    format!("{weekday} {month} {day:2} {hours:02}:{minutes:02}:{seconds:02} {year}")
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ATTEMPTS: u32 = 8;

#[cfg(test)]
mod tests;
