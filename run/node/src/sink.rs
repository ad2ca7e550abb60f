//! One of the launcher's own output descriptors, written without ever blocking the launcher.
//!
//! The launcher serves its ranks from the same thread, so a reader that stops reading must not stop it. A terminal or a pipe is opened a second time,
//! non-blocking; the open file description shared with the shell is left as it is. Where that fails (a socket, a sandbox), the descriptor is polled
//! before each small write.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::stdio::LARGE_PIPE;

/// Standard output or standard error, with the data that waits to be written.
#[derive(Debug)]
pub struct Sink {
    inherited: BorrowedFd<'static>,
    buffer: Vec<u8>,
    /// How much of the buffer has been written.
    written: usize,
    way: Option<Way>,
    /// It was full once, and enlarged if it is a pipe.
    enlarged: bool,
    /// Since when its reader has taken none of the waiting data.
    idle_since: Option<Instant>,
    /// Set once the sink no longer waits for its reader: bytes of output that were not delivered.
    given_up: Option<u64>,
    /// Ranges in the buffer with the launcher's own messages, which are no output of ranks.
    said: Vec<Range<usize>>,
}

#[derive(Debug)]
enum Way {
    /// Never blocks for long: a file, the null device.
    Direct,
    /// Fails by itself with EAGAIN when it would block.
    NonBlocking(AsyncFd<OwnedFd>),
    /// Might block: polled before each write, and written in small pieces.
    Asked(AsyncFd<BorrowedFd<'static>>),
}

impl Sink {
    pub fn stdout() -> Sink {
        Sink::new(rustix::stdio::stdout())
    }

    pub fn stderr() -> Sink {
        Sink::new(rustix::stdio::stderr())
    }

    fn new(inherited: BorrowedFd<'static>) -> Sink {
        Sink {
            inherited,
            buffer: Vec::new(),
            written: 0,
            way: None,
            enlarged: false,
            idle_since: None,
            given_up: None,
            said: Vec::new(),
        }
    }

    /// A user may be watching.
    pub fn is_terminal(&self) -> bool {
        rustix::termios::isatty(self.inherited)
    }

    /// Both have the same reader.
    pub fn is_same_file(&self, other: &Sink) -> bool {
        match (fstat(self.inherited), fstat(other.inherited)) {
            (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
            _ => false,
        }
    }

    /// Bytes appended here are written by [`Sink::flush`].
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends a message of the launcher itself.
    pub fn say(&mut self, text: &[u8]) {
        let before = self.buffer.len();
        self.buffer.extend_from_slice(text);
        match self.said.last_mut().filter(|last| last.end == before) {
            Some(last) => last.end = self.buffer.len(),
            None => self.said.push(before..self.buffer.len()),
        }
    }

    /// How many bytes wait.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.written
    }

    /// The file offset of the first byte of the buffer, if no other process writes to the file.
    pub fn place_of_buffer(&self) -> io::Result<u64> {
        let length = u64::try_from(fstat(self.inherited)?.st_size).unwrap_or_default();
        Ok(length.saturating_sub(self.written as u64))
    }

    /// Since when its reader has taken nothing, if data waits for it.
    pub fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    /// Enlarges a pipe as far as the kernel allows: the last output is coming, and its reader may read it later.
    pub fn make_room(&self) {
        enlarge(self.inherited, LAST_PIPE);
    }

    /// Stops waiting for the reader: waiting and further output is counted instead of written.
    pub fn give_up(&mut self) {
        self.given_up.get_or_insert(0);
    }

    /// How many bytes of output the reader has not taken.
    pub fn undelivered(&self) -> u64 {
        self.given_up.unwrap_or(0)
    }

    /// Writes all waiting data. May be cancelled at any await.
    pub async fn flush(&mut self) -> io::Result<()> {
        if let Some(undelivered) = &mut self.given_up {
            let said = self.said.iter().map(|said| said.end.saturating_sub(said.start.max(self.written)));
            *undelivered += (self.buffer.len() - self.written - said.sum::<usize>()) as u64;
            self.written = self.buffer.len();
        }
        while self.pending() > 0 {
            self.idle_since.get_or_insert_with(Instant::now);
            let way = match self.way.take() {
                Some(way) => way,
                None => Way::find(self.inherited)?,
            };
            let way = self.way.insert(way);
            let rest = self.buffer.get(self.written..).unwrap_or_default();
            match write(way, self.inherited, rest) {
                Ok(count) => {
                    self.written += count;
                    self.idle_since = None;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !std::mem::replace(&mut self.enlarged, true) => {
                    enlarge(self.inherited, LARGE_PIPE);
                }
                Err(Errno::AGAIN) => way.writable(self.inherited).await?,
                Err(errno) => return Err(errno.into()),
            }
        }
        self.buffer.clear();
        self.said.clear();
        self.written = 0;
        self.idle_since = None;
        Ok(())
    }
}

impl Way {
    fn find(fd: BorrowedFd<'static>) -> io::Result<Way> {
        let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::CharacterDevice | FileType::Socket) {
            return Ok(Way::Direct);
        }
        if kind != FileType::Socket {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            if let Ok(own) = open(path, flags, Mode::empty()) {
                // epoll refuses what never blocks, such as the null device.
                // SAFETY: the descriptor is owned by the `AsyncFd`, so it stays open for as long as it is registered.
                let waited_for = unsafe { AsyncFd::register_with_interest(own, Interest::WRITABLE) };
                return Ok(waited_for.map_or(Way::Direct, Way::NonBlocking));
            }
        }
        // SAFETY: a standard descriptor, borrowed for ever: it is never closed.
        let waited_for = unsafe { AsyncFd::register_with_interest(fd, Interest::WRITABLE) };
        Ok(waited_for.map_or(Way::Direct, Way::Asked))
    }

    /// Waits until a write that would have blocked may be tried again.
    async fn writable(&self, inherited: BorrowedFd<'static>) -> io::Result<()> {
        match self {
            Way::NonBlocking(fd) => {
                let mut guard = fd.writable().await?;
                if !is_ready(fd.get_ref().as_fd())? {
                    guard.clear_ready();
                }
            }
            Way::Asked(fd) => {
                let mut guard = fd.writable().await?;
                if !is_ready(inherited)? {
                    guard.clear_ready();
                }
            }
            Way::Direct => tokio::time::sleep(RETRY).await,
        }
        Ok(())
    }
}

/// With a larger pipe, the reader and we switch less often. What is no pipe, or may not grow, stays as it is.
fn enlarge(pipe: BorrowedFd<'static>, to: usize) {
    if fcntl_getpipe_size(pipe).is_ok_and(|size| size < to) {
        let _ = fcntl_setpipe_size(pipe, to);
    }
}

fn write(way: &Way, inherited: BorrowedFd<'static>, bytes: &[u8]) -> Result<usize, Errno> {
    match way {
        Way::Direct => rustix::io::write(inherited, bytes),
        Way::NonBlocking(fd) => rustix::io::write(fd.get_ref(), bytes),
        Way::Asked(_) if !is_ready(inherited)? => Err(Errno::AGAIN),
        Way::Asked(_) => rustix::io::write(inherited, bytes.get(..SURE).unwrap_or(bytes)),
    }
}

fn is_ready(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        // Let the write find out.
        Err(Errno::INTR) => Ok(true),
        asked => asked.map(|_| !fds[0].revents().is_empty()),
    }
}

/// A pipe that polls writable takes PIPE_BUF bytes without blocking.
const SURE: usize = 4096;
/// The kernel's default for every user.
const LAST_PIPE: usize = 1 << 20;
/// For the odd file that fails with EAGAIN although it cannot be polled.
const RETRY: std::time::Duration = std::time::Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use super::*;

    /// A sink on a descriptor that the test leaves open for ever, as a process leaves its standard output.
    fn sink(fd: OwnedFd) -> Sink {
        let raw = fd.as_raw_fd();
        std::mem::forget(fd);
        // SAFETY: the descriptor is never closed.
        Sink::new(unsafe { BorrowedFd::borrow_raw(raw) })
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(test);
    }

    /// Fills what the kernel takes, checks that the sink waits without blocking, and reads everything back.
    async fn slow_reader(mut sink: Sink, mut reader: impl Read + Send + 'static) {
        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        sink.buffer().extend_from_slice(&sent);
        let blocked = tokio::time::timeout(Duration::from_millis(50), sink.flush()).await;
        assert!(blocked.is_err(), "a reader that does not read cannot take all of it");
        assert!(sink.pending() > 0 && sink.pending() < sent.len());

        let thread = std::thread::spawn(move || {
            let mut seen = vec![0; 3_000_000];
            reader.read_exact(&mut seen).expect("all of it");
            seen
        });
        sink.flush().await.expect("a reader");
        assert_eq!(sink.pending(), 0);
        assert!(thread.join().expect("the reader") == sent);
    }

    #[test]
    fn a_slow_pipe_makes_the_sink_wait() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        run(slow_reader(sink(writer), std::fs::File::from(reader)));
    }

    #[test]
    fn a_slow_socket_makes_the_sink_wait() {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().expect("sockets");
        run(slow_reader(sink(writer.into()), reader));
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let mut sink = sink(writer);
        sink.buffer().extend_from_slice(b"x");
        run(async move {
            let error = sink.flush().await.expect_err("nobody reads");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn bytes_for_an_idle_reader_are_counted_when_it_is_given_up() {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let mut sink = sink(writer);
        run(async move {
            sink.buffer().extend_from_slice(&vec![0; 3_000_000]);
            assert_eq!(sink.idle_since(), None, "nothing was tried yet");
            let blocked = tokio::time::timeout(Duration::from_millis(50), sink.flush()).await;
            assert!(blocked.is_err() && sink.idle_since().is_some());
            let taken = 3_000_000 - sink.pending() as u64;
            sink.give_up();
            sink.flush().await.expect("no trouble");
            sink.buffer().extend_from_slice(b"more");
            sink.flush().await.expect("no trouble");
            assert_eq!((sink.pending(), sink.idle_since()), (0, None));
            assert_eq!(sink.undelivered(), 3_000_004 - taken);
            drop(reader);
        });
    }

    #[test]
    fn files_and_the_null_device_never_wait() {
        let null = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).expect("the null device");
        let file = tempfile::tempfile().expect("a file");
        for fd in [null, file.into()] {
            let mut sink = sink(fd);
            sink.buffer().extend_from_slice(&[0; 1 << 20]);
            run(async move {
                sink.flush().await.expect("no trouble");
                assert_eq!(sink.pending(), 0);
            });
        }
    }
}
