//! Writes the files of a server, and removes them when it goes.
//!
//! A file is there with all its text or not at all: it is written under a name of its own, and then linked to the names that
//! tools look for: to make a file takes much longer than to link one. Links of others are never followed. A file that is in the
//! way is replaced only when its server is dead.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_core::calendar::date;
use phalanx_wire::rendezvous::{self, Rendezvous};
use phalanx_wire::uri::ServerUri;
use rustix::fs::{FlockOperation, Gid, Mode as Bits, OFlags, fchmod, fchown, flock, fstat, open};
use rustix::process::{getegid, geteuid};

use super::{is_dead, parse};
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
    text: String,
    pid: u32,
}

impl Announcement {
    /// Writes all files, or none.
    pub fn make(notice: &Notice) -> Result<Announcement, Error> {
        let pid = std::process::id();
        let mut made = Announcement { files: Vec::new(), text: text(notice, pid), pid };
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
        let put = draft.put(&path, &self.text, mode);
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
            if fs::read(path).is_ok_and(|now| now == self.text.as_bytes()) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn text(notice: &Notice, pid: u32) -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let file = Rendezvous {
        uri: notice.uri.clone(),
        version: Some(notice.version.clone()),
        pid: Some(pid),
        owner: Some((geteuid().as_raw(), getegid().as_raw())),
        written: Some(as_ctime(since_epoch.as_secs())),
        secret: notice.secret.clone(),
    };
    file.to_string()
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

    fn put(&mut self, path: &Path, text: &str, mode: Mode) -> Result<(), String> {
        if !self.written {
            self.written = true;
            write_draft(&self.path, text, mode).map_err(|e| format!("{}: {e}", self.path.display()))?;
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

fn write_draft(draft: &Path, text: &str, mode: Mode) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let owner_only = Bits::RUSR | Bits::WUSR;
    let mut made = open(draft, flags, owner_only);
    if made.as_ref().is_err_and(|e| *e == rustix::io::Errno::EXIST) {
        // Of a process that had our pid and died just here.
        fs::remove_file(draft)?;
        made = open(draft, flags, owner_only);
    }
    let mut file = File::from(made?);
    file.write_all(text.as_bytes())?;
    if let Some(gid) = mode.gid {
        fchown(&file, None, Some(Gid::from_raw(gid)))?;
    }
    Ok(fchmod(&file, Bits::from_raw_mode(mode.bits))?)
}

/// Gives the draft this name, if no living server has it. Whether it still has its own.
fn place(draft: &Path, path: &Path) -> Result<bool, String> {
    for _ in 0..ATTEMPTS {
        match fs::hard_link(draft, path) {
            Ok(()) => return Ok(true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e.to_string()),
        }
        match replace(draft, path) {
            Ok(true) => return Ok(false),
            Ok(false) => {}
            Err(problem) => return Err(problem),
        }
    }
    Err("others put files there again and again".to_owned())
}

/// Takes the place of a dead server's file. `false`: the file has changed meanwhile.
fn replace(draft: &Path, path: &Path) -> Result<bool, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut old = match open(path, flags, Bits::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        Err(rustix::io::Errno::LOOP) => return Err("it is a symbolic link".to_owned()),
        Err(e) => return Err(format!("it exists and cannot be read: {e}")),
    };
    // Of several that want to replace it, one does.
    flock(&old, FlockOperation::LockExclusive).map_err(|e| format!("it exists and cannot be locked: {e}"))?;
    let stat = fstat(&old).map_err(|e| e.to_string())?;
    let same = |now: fs::Metadata| now.dev() == stat.st_dev && now.ino() == stat.st_ino;
    if !fs::symlink_metadata(path).is_ok_and(same) {
        return Ok(false);
    }
    match parse(&mut old) {
        Ok(of) if is_dead(&of) => fs::rename(draft, path).map(|()| true).map_err(|e| e.to_string()),
        Ok(of) => {
            let pid = of.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            Err(format!("the file is there already: server {}{pid} is alive", of.uri.server))
        }
        Err(problem) => Err(format!("something else is there: {problem}")),
    }
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
