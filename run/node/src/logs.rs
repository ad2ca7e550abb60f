//! Lines that processes log: into this host's syslog, and into files.
//!
//! A file system may block for ever, so each line is written by a thread of its own. What stays blocked is bounded.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use phalanx_dvm::LogLine;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;

/// Writes a line. `told` gets the result, an error as its reason; it is not called if this fails at once.
pub(crate) fn write(
    line: LogLine,
    told: impl FnOnce(Result<(), String>) + Send + 'static,
) -> Result<(), String> {
    let permit = Permit::take().ok_or_else(|| format!("{MOST} earlier lines are still being written"))?;
    let write = move || {
        let result = match line {
            LogLine::Syslog { priority, line } => to_syslog(Path::new(SYSLOG), priority, line.as_bytes()),
            LogLine::File { path, line } => {
                append(Path::new(OsStr::from_bytes(path.as_bytes())), line.as_bytes())
            }
        };
        drop(permit);
        told(result);
    };
    let thread = thread::Builder::new().name("log".to_owned()).stack_size(STACK).spawn(write);
    thread.map(drop).map_err(|error| format!("starting a thread: {error}"))
}

/// One of the lines that are being written.
struct Permit;

impl Permit {
    fn take() -> Option<Permit> {
        let more = |writing: usize| (writing < MOST).then_some(writing + 1);
        WRITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The socket adds the time; what follows the priority is a tag with our pid, as syslog(3) writes it.
fn to_syslog(socket: &Path, priority: u8, line: &[u8]) -> Result<(), String> {
    let failed =
        |doing: &'static str| move |error: io::Error| format!("{doing} {}: {error}", socket.display());
    let log = UnixDatagram::unbound().map_err(failed("making a socket for"))?;
    log.set_nonblocking(true).map_err(failed("making a socket for"))?;
    log.connect(socket).map_err(failed("opening"))?;
    let head = format!("<{priority}>px[{}]: ", std::process::id());
    log.send(&[head.as_bytes(), line].concat()).map_err(failed("writing to")).map(drop)
}

fn append(path: &Path, line: &[u8]) -> Result<(), String> {
    let failed = |doing: &'static str| move |error: io::Error| format!("{doing} {}: {error}", path.display());
    // A FIFO without a reader is an error, instead of a wait for one.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP) => return Err(format!("opening {}: it is a symbolic link", path.display())),
        file => file.map_err(io::Error::from).map_err(failed("opening"))?,
    };
    let stat = fstat(&file).map_err(io::Error::from).map_err(failed("opening"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("opening {}: it is no regular file", path.display()));
    }
    File::from(file).write_all(line).map_err(failed("writing to"))
}

static WRITING: AtomicUsize = AtomicUsize::new(0);
/// The most lines that are being written at one time.
const MOST: usize = 64;
const SYSLOG: &str = "/dev/log";
const STACK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_line_for_syslog_is_one_datagram() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let why = to_syslog(&path, 11, b"a@1:0: text").unwrap_err();
        assert!(why.starts_with(&format!("opening {}: No such file", path.display())), "{why}");
        let socket = UnixDatagram::bind(&path).unwrap();
        to_syslog(&path, 11, b"a@1:0: text").unwrap();
        let mut got = [0; 200];
        let length = socket.recv(&mut got).unwrap();
        let wanted = format!("<11>px[{}]: a@1:0: text", std::process::id());
        assert_eq!(String::from_utf8_lossy(&got[..length]), wanted);
    }

    #[test]
    fn a_syslog_that_reads_nothing_blocks_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let _socket = UnixDatagram::bind(&path).unwrap();
        let full = (0..100_000).find_map(|_| to_syslog(&path, 11, b"text").err());
        assert!(full.is_some_and(|why| why.starts_with("writing to")));
    }

    #[test]
    fn lines_are_appended_to_regular_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        append(&path, b"one\n").unwrap();
        append(&path, b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(append(&link, b"x").is_err_and(|why| why.ends_with("it is a symbolic link")));
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        assert!(append(&fifo, b"x").is_err());
        let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        assert!(append(&fifo, b"x").is_err_and(|why| why.ends_with("it is no regular file")));
        drop(reader);
        assert!(append(dir.path(), b"x").is_err());
    }
}
