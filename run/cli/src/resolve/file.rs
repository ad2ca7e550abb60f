//! Files that the user or a batch system has named, read whole: hostfiles, rankfiles, environment files.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// The contents of a file, unless it is larger than any sensible one. Devices may have no end.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Without this, opening a pipe would wait for a writer.
    let flags = OFlags::NONBLOCK.bits() | OFlags::NOCTTY.bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(path)?;
    if !file.metadata()?.file_type().is_fifo() {
        rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
        return read_to_end(&file);
    }
    let bytes = read_to_end(Pipe { file, is_waited_for: false })?;
    match bytes.is_empty() {
        true => Err(io::Error::other("it is a pipe, and nobody has written to it")),
        false => Ok(bytes),
    }
}

fn read_to_end(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!("it has more than {} MiB", MOST_BYTES >> 20))),
        false => Ok(bytes),
    }
}

/// A pipe with a writer that may come late.
struct Pipe {
    file: File,
    is_waited_for: bool,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(into) {
                // No process has it open for writing: no more, or not yet.
                Ok(0) if !self.is_waited_for => {
                    self.is_waited_for = true;
                    wait(&self.file, Some(FOR_A_WRITER))?;
                }
                // As long as it has a writer, more may come, however long it takes.
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.file, None)?,
                read => return read,
            }
        }
    }
}

/// Waits until there is something to read, or no writer is left.
fn wait(file: &File, longest: Option<Duration>) -> io::Result<()> {
    let longest = longest.map(|longest| Timespec::try_from(longest).unwrap_or_default());
    let mut pipe = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut pipe, longest.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Enough for as many hosts as a file may name, with long names.
const MOST_BYTES: u64 = 32 << 20;
/// A user that makes a pipe for us starts its writer about when we start.
const FOR_A_WRITER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn pipes_are_read_to_their_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let error = read(&pipe).expect_err("no writer").to_string();
        assert_eq!(error, "it is a pipe, and nobody has written to it");

        let mut writer = Command::new("sh");
        writer.arg("-c").arg("{ sleep 0.2; echo a; sleep 0.2; echo b; } >pipe").current_dir(dir.path());
        let mut writer = writer.spawn().expect("a writer");
        assert_eq!(read(&pipe).expect("what it writes"), b"a\nb\n");
        writer.wait().expect("its end");
    }

    #[test]
    fn files_of_process_substitution_are_read() {
        let (reader, writer) = io::pipe().expect("a pipe");
        io::Write::write_all(&mut &writer, b"a\n").expect("room");
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read(path.as_ref()).expect("what was written"), b"a\n");
        assert!(read(path.as_ref()).is_err(), "it was read");
    }
}
