//! The launcher's own standard input, read only as far as ranks want it.
//!
//! The descriptor is shared with the shell that started us, so its flags are never changed: a pipe or a terminal is opened anew where possible, and
//! otherwise read only when it has data. A launcher in the background leaves the terminal alone until it is in the foreground.
//!
//! The first piece is only looked at, and taken as far as ranks read it, so a job that reads nothing leaves all of it for the next reader. A terminal
//! cannot be looked at; each of its lines is read when a rank waits for input.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use phalanx_shell::peek::Peek;
use phalanx_wire::Nspace;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, Semaphore, mpsc};
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
    awaited: Rc<Awaited>,
    task: Option<AbortHandle>,
}

/// What has to become known of the ranks before more is read.
#[derive(Debug, Default)]
struct Awaited {
    what: RefCell<News>,
    known: Notify,
}

#[derive(Debug, Default)]
enum News {
    #[default]
    Nothing,
    /// They have read all of the first piece.
    Read(Peek, OwnedFd),
    /// One of them waits for input.
    Waits,
}

impl Awaited {
    async fn wait_for(&self, what: News) {
        *self.what.borrow_mut() = what;
        self.known.notified().await;
    }

    fn read(&self, bytes: usize) {
        let mut what = self.what.borrow_mut();
        match &mut *what {
            News::Read(peek, input) => {
                peek.take(input.as_fd(), bytes);
                if peek.left() > 0 {
                    return;
                }
            }
            News::Waits if bytes == 0 => {}
            News::Waits | News::Nothing => return,
        }
        *what = News::Nothing;
        self.known.notify_one();
    }
}

impl Feed {
    /// Ranks have read this much of the first piece, or wait for input if it is none.
    pub(crate) fn read(&self, bytes: usize) {
        self.awaited.read(bytes);
    }

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
        let awaited = self.awaited.clone();
        let task = async move {
            let error = match read(&nspace, &source, (&credit, &awaited), &events).await {
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
    (credit, awaited): (&Semaphore, &Awaited),
    events: &mpsc::Sender<StdinEvent>,
) -> io::Result<()> {
    // A job whose ranks want no input leaves ours for its next reader.
    wait_for_credit(credit).await;
    let Some(input) = source.open()? else { return Ok(()) };
    let mut buffer = vec![0; CHUNK];
    let piece = |data| StdinEvent::Data { nspace: nspace.clone(), data };
    if let Some(peek) = input.look(credit.available_permits().min(CHUNK)).await? {
        if peek.left() == 0 {
            return Ok(());
        }
        let Ok(place) = events.reserve().await else { return Ok(()) };
        credit.forget_permits(peek.left());
        let data = peek.data().clone();
        let first = News::Read(peek, input.copy()?);
        // The ranks get it only while this task waits.
        place.send(piece(data));
        awaited.wait_for(first).await;
    }
    loop {
        wait_for_credit(credit).await;
        if input.is_terminal() {
            input.when_ready(|_| Ok(())).await?;
            let Ok(place) = events.reserve().await else { return Ok(()) };
            place.send(piece(Arc::default()));
            awaited.wait_for(News::Waits).await;
        }
        let Ok(place) = events.reserve().await else { return Ok(()) };
        let room = buffer.get_mut(..credit.available_permits().min(CHUNK)).unwrap_or_default();
        let count = input.read(room).await?;
        let data: Arc<[u8]> = buffer.get(..count).unwrap_or_default().into();
        if data.is_empty() {
            return Ok(());
        }
        credit.forget_permits(data.len());
        place.send(piece(data));
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

    fn is_terminal(&self) -> bool {
        matches!(self, Input::Polled { terminal: true, .. })
    }

    fn copy(&self) -> io::Result<OwnedFd> {
        let fd = match self {
            Input::Polled { fd, .. } => fd.get_ref(),
            Input::Ready(fd) => fd,
        };
        Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
    }

    /// Reads what there is, as far as there is room; 0 at the end.
    async fn read(&self, data: &mut [u8]) -> io::Result<usize> {
        self.when_ready(|fd| match rustix::io::read(fd, &mut *data) {
            // What a socket or a terminal returns when its peer is gone.
            Err(Errno::CONNRESET | Errno::IO) if matches!(self, Input::Polled { .. }) => Ok(0),
            done => done,
        })
        .await
    }

    /// Looks at what there is; none if this input cannot be looked at.
    async fn look(&self, most: usize) -> io::Result<Option<Peek>> {
        match self {
            Input::Polled { terminal: true, .. } => Ok(None),
            _ => self.when_ready(|fd| Peek::of(fd.as_fd(), most)).await,
        }
    }

    async fn when_ready<T>(&self, mut act: impl FnMut(&OwnedFd) -> Result<T, Errno>) -> io::Result<T> {
        match self {
            Input::Ready(fd) => {
                // Other tasks get their turn, too, while a large file is read.
                tokio::task::yield_now().await;
                Ok(rustix::io::retry_on_intr(|| act(fd))?)
            }
            Input::Polled { fd, terminal } => loop {
                let mut ready = fd.readable().await?;
                if *terminal && in_background(fd.get_ref()) {
                    tokio::time::sleep(BACKGROUND_PAUSE).await;
                    continue;
                }
                match ready.try_io(|fd| Ok(act_now(fd.get_ref(), &mut act)?)) {
                    Ok(done) => break done,
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

/// Acts on what is there without waiting, whatever the flags of the descriptor are.
fn act_now<T>(fd: &OwnedFd, act: &mut impl FnMut(&OwnedFd) -> Result<T, Errno>) -> Result<T, Errno> {
    let mut polled = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    if rustix::event::poll(&mut polled, Some(&rustix::event::Timespec::default()))? == 0 {
        return Err(Errno::AGAIN);
    }
    act(fd).map_err(|errno| if errno == Errno::INTR { Errno::AGAIN } else { errno })
}

/// Whether reading this terminal would stop us.
fn in_background(terminal: &OwnedFd) -> bool {
    rustix::termios::tcgetpgrp(terminal.as_fd()).is_ok_and(|group| group != rustix::process::getpgrp())
}

const CHUNK: usize = 64 << 10;
const BACKGROUND_PAUSE: Duration = Duration::from_millis(250);
