//! A pipe or a device that output goes to. Its reader is never waited for, and may be gone.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// A file whose `write` could block.
#[derive(Debug)]
pub struct Outlet {
    file: File,
    /// Bytes that the reader has not taken yet.
    waiting: Vec<u8>,
    /// Since when the reader has taken none of them.
    idle_since: Option<Instant>,
    /// Writing has stopped; counts the bytes dropped since.
    given_up: Option<u64>,
}

impl Outlet {
    /// None: a regular file, or none yet. A pipe without a reader is an error.
    pub fn open(path: &Path) -> io::Result<Option<Outlet>> {
        let kind = match std::fs::metadata(path) {
            Ok(found) => found.file_type(),
            Err(_) => return Ok(None),
        };
        if !kind.is_fifo() && !kind.is_char_device() {
            return Ok(None);
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = File::options().write(true).custom_flags(flags.bits().cast_signed()).open(path);
        let file =
            opened.map_err(|error| match error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
                true if kind.is_fifo() => io::Error::other("it is a pipe that nobody reads"),
                _ => error,
            })?;
        Ok(Some(Outlet { file, waiting: Vec::new(), idle_since: None, given_up: None }))
    }

    /// Writes as much as possible now; the rest is queued.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(undelivered) = &mut self.given_up {
            *undelivered += bytes.len() as u64;
            return Ok(());
        }
        self.waiting.extend_from_slice(bytes);
        self.flush()
    }

    /// An error ends all writing to this outlet.
    pub fn flush(&mut self) -> io::Result<()> {
        let (mut written, mut result) = (0, Ok(()));
        while let Some(rest) = self.waiting.get(written..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.waiting.drain(..written);
        match (self.waiting.is_empty(), written) {
            (true, _) => self.idle_since = None,
            (false, 0) => drop(self.idle_since.get_or_insert_with(Instant::now)),
            (false, _) => self.idle_since = Some(Instant::now()),
        }
        if result.is_err() {
            self.give_up();
        }
        result
    }

    /// Writes everything, unless the reader takes nothing for `patience`.
    pub fn write_patiently(mut self, bytes: &[u8], patience: Duration) -> io::Result<()> {
        self.write(bytes)?;
        let mut taken = Instant::now();
        while self.pending() > 0 {
            let before = self.pending();
            let longest = Timespec::try_from(patience).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], Some(&longest)) {
                Ok(0) => return Err(io::Error::other("its reader has stopped reading")),
                Ok(_) | Err(Errno::INTR) => self.flush()?,
                Err(errno) => return Err(errno.into()),
            }
            if self.pending() < before {
                taken = Instant::now();
            } else if taken.elapsed() >= patience {
                return Err(io::Error::other("its reader has stopped reading"));
            } else {
                // Writable, and yet it took nothing: do not retry at once.
                std::thread::sleep(AWHILE);
            }
        }
        Ok(())
    }

    /// How many bytes are queued for the reader.
    pub fn pending(&self) -> usize {
        self.waiting.len()
    }

    /// Since when the reader has taken none of the queued bytes.
    pub fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    /// Gives up on the reader: queued and future bytes are counted instead of written.
    pub fn give_up(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        *self.given_up.get_or_insert(0) += waiting.len() as u64;
        self.idle_since = None;
    }

    /// How many bytes were dropped instead of written.
    pub fn undelivered(&self) -> u64 {
        self.given_up.unwrap_or(0)
    }
}

const AWHILE: Duration = Duration::from_millis(10);
