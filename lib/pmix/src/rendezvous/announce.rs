//! Writes the files of a server, and removes them when it goes.
//!
//! A file is there with all its text or not at all: it is written under a name of its own, and then linked to the names that
//! tools look for: to make a file takes much longer than to link one. Links of others are never followed. A file that is in the
//! way is replaced only when its server is dead (`grave.rs`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::calendar::date;
use phalanx_wire::rendezvous::{self, Rendezvous};
use phalanx_wire::uri::ServerUri;
use rustix::fs::{Gid, Mode as Bits, OFlags, fchmod, fchown, open};
use rustix::process::{getegid, geteuid};

use super::grave::{Grave, is_name_of, lock};
use crate::error::Error;

/// Who may read the files: by default nobody but their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Permission bits.
    pub bits: u32,
    /// Instead of the server's own group.
    pub gid: Option<u32>,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode { bits: 0o600, gid: None }
    }
}

/// What a server says of itself, and where.
#[derive(Clone, Debug)]
pub struct Notice {
    pub uri: ServerUri,
    /// The release of OpenPMIx as which the server presents itself.
    pub version: String,
    pub hostname: String,
    /// What tools on other nodes must show.
    pub secret: Option<String>,
    pub mode: Mode,
    /// `pmix.sys.HOST` goes here, if this is the system server.
    pub system_dir: Option<PathBuf>,
    /// `pmix.HOST.tool.PID` and `pmix.HOST.tool.NSPACE` go here, if tools may search for this server.
    pub server_dir: Option<PathBuf>,
    /// Further files, wherever somebody wants them (`pmix.tool.lncrnd`).
    pub files: Vec<PathBuf>,
}

/// The files of a server. They go when this is dropped by the process that has made it.
#[derive(Debug)]
pub struct Announcement {
    files: Vec<PathBuf>,
    /// What stands in each of them.
    says: Rendezvous,
    /// What has these names, open for their locks. Most have several names.
    held: Vec<File>,
    pid: u32,
}

impl Announcement {
    /// Writes all files, or none.
    pub fn make(notice: &Notice) -> Result<Announcement, Error> {
        let pid = std::process::id();
        let says = rendezvous(notice, pid);
        let mut made = Announcement { files: Vec::new(), says, held: Vec::new(), pid };
        if let Some(dir) = &notice.system_dir {
            made.add(&dir.join(rendezvous::system_file(&notice.hostname)), notice.mode)?;
        }
        if let Some(dir) = &notice.server_dir {
            let nspace = notice.uri.server.nspace.as_str();
            let by_pid = dir.join(rendezvous::pid_file(&notice.hostname, pid));
            let mut draft = Draft::beside(&by_pid);
            made.add_from(&mut draft, &by_pid, notice.mode)?;
            let by_nspace = dir.join(rendezvous::nspace_file(&notice.hostname, nspace));
            made.add_from(&mut draft, &by_nspace, notice.mode)?;
            // Where several servers share a directory, the first has this name.
            let session = dir.join(rendezvous::session_file(&notice.hostname));
            if let Err(error) = made.add_from(&mut draft, &session, notice.mode) {
                tracing::debug!(%error, "tools must look for this server by its pid or namespace");
            }
        }
        for file in &notice.files {
            made.add(file, notice.mode)?;
        }
        Ok(made)
    }

    /// The files that were written.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    fn add(&mut self, path: &Path, mode: Mode) -> Result<(), Error> {
        self.add_from(&mut Draft::beside(path), path, mode)
    }

    fn add_from(&mut self, draft: &mut Draft, path: &Path, mode: Mode) -> Result<(), Error> {
        // Later, the directory that a relative path begins in may be another.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let put = draft.put(&path, &self.says, mode, &mut self.held);
        put.map_err(|problem| Error::Announce { file: path.clone(), problem })?;
        self.files.push(path);
        Ok(())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        for path in &self.files {
            // Whatever has taken its place is not ours.
            if self.held.iter().any(|file| is_name_of(path, file)) {
                let _ = fs::remove_file(path);
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

/// A file with all its text that has no name yet by which it is looked for. What is left of it goes when this is dropped.
struct Draft {
    path: PathBuf,
    written: bool,
}

impl Draft {
    /// Beside the file, so that both are on one file system; hidden from those who search for servers.
    fn beside(file: &Path) -> Draft {
        let mut name = std::ffi::OsString::from(".");
        name.push(file.file_name().unwrap_or_default());
        name.push(format!(".{}", std::process::id()));
        Draft { path: file.with_file_name(name), written: false }
    }

    fn put(
        &mut self,
        path: &Path,
        says: &Rendezvous,
        mode: Mode,
        held: &mut Vec<File>,
    ) -> Result<(), String> {
        if !self.written {
            self.written = true;
            let file = write_draft(&self.path, says, mode);
            held.push(file.map_err(|e| format!("{}: {e}", self.path.display()))?);
        }
        self.written = place(&self.path, path)?;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file stays open for the lock that it is under.
fn write_draft(draft: &Path, says: &Rendezvous, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner_only = Bits::RUSR | Bits::WUSR;
    let mut made = open(draft, flags, owner_only);
    if made.as_ref().is_err_and(|e| *e == rustix::io::Errno::EXIST) {
        // Of a process that had our pid and died just here.
        fs::remove_file(draft)?;
        made = open(draft, flags, owner_only);
    }
    let mut file = File::from(made?);
    let says = Rendezvous { locked: lock(&file), ..says.clone() };
    file.write_all(says.to_string().as_bytes())?;
    if let Some(gid) = mode.gid {
        fchown(&file, None, Some(Gid::from_raw(gid)))?;
    }
    fchmod(&file, Bits::from_raw_mode(mode.bits))?;
    Ok(file)
}

/// Gives the draft this name, if no living server has it. Whether it still has its own.
fn place(draft: &Path, path: &Path) -> Result<bool, String> {
    for _ in 0..ATTEMPTS {
        match fs::hard_link(draft, path) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.to_string()),
        }
        if let Some(grave) = Grave::open(path)? {
            return grave.give_to(draft).map(|()| false).map_err(|e| e.to_string());
        }
    }
    Err("others put files there again and again".to_owned())
}

/// `Fri Nov 20 16:20:01 2026`, of universal time.
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
