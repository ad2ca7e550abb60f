//! The launcher's own standard input, read only as far as ranks want it.
//!
//! The descriptor is shared with the shell that started us, so its flags are never changed: a pipe or a terminal is opened anew where possible, and
//! otherwise read only when it has data. A launcher in the background leaves the terminal alone until it is in the foreground.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use phalanx_wire::Nspace;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::watched::watched;

/// Where a job's standard input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdinSource {
    /// Descriptor 0 of this process.
    Inherited,
    File(PathBuf),
    /// Ends at once without data.
    Empty,
    /// Has no data and no end: the ranks read what tools push.
    Silent,
}

/// Events of a job's standard input.
#[derive(Debug)]
pub(crate) enum StdinEvent {
    Data {
        nspace: Nspace,
        data: Arc<[u8]>,
    },
    /// With the error, unless it was the regular end.
    End {
        nspace: Nspace,
        error: Option<String>,
    },
}

/// The owner's end. Dropping it stops the reading.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// One permit per byte that may be read.
    credit: Option<Rc<Semaphore>>,
    task: Option<AbortHandle>,
}

impl Feed {
    /// Adds bytes that may be read, even before the source is known.
    pub(crate) fn credit(&mut self, bytes: usize) {
        let credit = self.credit.get_or_insert_with(|| Rc::new(Semaphore::new(0)));
        credit.add_permits(bytes.min(Semaphore::MAX_PERMITS - credit.available_permits()));
    }

    pub(crate) fn start(&mut self, nspace: Nspace, source: StdinSource, events: mpsc::Sender<StdinEvent>) {
        self.credit(0);
        if source == StdinSource::Silent {
            return;
        }
        let Some(credit) = self.credit.clone() else { return };
        let task = async move {
            let error = match read(&nspace, &source, &credit, &events).await {
                Ok(()) => None,
                Err(e) => Some(format!("cannot read {}: {e}", source.shown())),
            };
            let _ = events.send(StdinEvent::End { nspace, error }).await;
        };
        self.task = Some(tokio::task::spawn_local(task).abort_handle());
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl StdinSource {
    fn shown(&self) -> String {
        match self {
            StdinSource::Inherited => "standard input".to_owned(),
            StdinSource::File(path) => path.display().to_string(),
            StdinSource::Empty | StdinSource::Silent => "nothing".to_owned(),
        }
    }

    fn open(&self) -> io::Result<Option<Input>> {
        let fd = match self {
            StdinSource::Empty | StdinSource::Silent => return Ok(None),
            StdinSource::File(path) => OwnedFd::from(File::open(path)?),
            StdinSource::Inherited => inherited()?,
        };
        Ok(Some(Input::new(fd)?))
    }
}

async fn read(
    nspace: &Nspace,
    source: &StdinSource,
    credit: &Semaphore,
    events: &mpsc::Sender<StdinEvent>,
) -> io::Result<()> {
    // A job whose ranks want no input leaves ours for its next reader.
    wait_for_credit(credit).await;
    let Some(input) = source.open()? else { return Ok(()) };
    let mut buffer = vec![0; CHUNK];
    loop {
        wait_for_credit(credit).await;
        let Ok(place) = events.reserve().await else { return Ok(()) };
        let room = buffer.get_mut(..credit.available_permits().min(CHUNK)).unwrap_or_default();
        let count = input.read(room).await?;
        let data: Arc<[u8]> = buffer.get(..count).unwrap_or_default().into();
        if data.is_empty() {
            return Ok(());
        }
        credit.forget_permits(data.len());
        place.send(StdinEvent::Data { nspace: nspace.clone(), data });
    }
}

async fn wait_for_credit(credit: &Semaphore) {
    // The semaphore is never closed.
    if let Ok(permit) = credit.acquire().await {
        drop(permit);
    }
}

/// A source that can be polled, or that is always ready.
#[derive(Debug)]
enum Input {
    Polled {
        fd: AsyncFd<OwnedFd>,
        terminal: bool,
    },
    /// Regular files and the null device.
    Ready(OwnedFd),
}

impl Input {
    fn new(fd: OwnedFd) -> io::Result<Input> {
        // Regular files cannot be polled: the kernel fails with EPERM, but tokio would keep the descriptor then.
        let pollable = match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
            FileType::Fifo | FileType::Socket => true,
            FileType::CharacterDevice => rustix::termios::isatty(&fd),
            _ => false,
        };
        if !pollable {
            return Ok(Input::Ready(fd));
        }
        let terminal = rustix::termios::isatty(&fd);
        let fd = watched(fd, Interest::READABLE)?;
        Ok(Input::Polled { fd, terminal })
    }

    /// Reads what there is, as far as there is room; 0 at the end.
    async fn read(&self, data: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Ready(fd) => {
                // Other tasks get their turn, too, while a large file is read.
                tokio::task::yield_now().await;
                Ok(rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut *data))?)
            }
            Input::Polled { fd, terminal } => loop {
                let mut ready = fd.readable().await?;
                if *terminal && in_background(fd.get_ref()) {
                    tokio::time::sleep(BACKGROUND_PAUSE).await;
                    continue;
                }
                match ready.try_io(|fd| Ok(read_now(fd.get_ref(), data)?)) {
                    Ok(count) => break count,
                    Err(_would_block) => {}
                }
            },
        }
    }
}

/// Descriptor 0, with flags of our own where possible.
fn inherited() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    let stat = rustix::fs::fstat(&stdin)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Fifo || rustix::termios::isatty(&stdin) {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Fails if the file belongs to another user, as after `su`.
        if let Ok(fd) = rustix::fs::open("/proc/self/fd/0", flags, Mode::empty()) {
            return Ok(fd);
        }
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?)
}

/// Reads without waiting, whatever the flags of the descriptor are.
fn read_now(fd: &OwnedFd, data: &mut [u8]) -> Result<usize, Errno> {
    let mut polled = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    if rustix::event::poll(&mut polled, Some(&rustix::event::Timespec::default()))? == 0 {
        return Err(Errno::AGAIN);
    }
    match rustix::io::read(fd, data) {
        // What a socket or a terminal returns when its peer is gone.
        Err(Errno::CONNRESET | Errno::IO) => Ok(0),
        Err(Errno::INTR) => Err(Errno::AGAIN),
        done => done,
    }
}

/// Whether reading this terminal would stop us.
fn in_background(terminal: &OwnedFd) -> bool {
    rustix::termios::tcgetpgrp(terminal.as_fd()).is_ok_and(|group| group != rustix::process::getpgrp())
}

const CHUNK: usize = 64 << 10;
const BACKGROUND_PAUSE: Duration = Duration::from_millis(250);
