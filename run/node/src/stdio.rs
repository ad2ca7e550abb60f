//! The standard streams of ranks: pipes that are read no faster than their output is wanted.
//!
//! One task per output stream reads at most its credit and passes the bytes to the owner. After the exit of the rank, everything that it had written
//! is still read. What descendants write into the same pipe later is not waited for, or a daemon left behind by a rank would keep the job for ever.
//!
//! One buffer serves the reads of all pipes; from there one shared copy goes through the node. A pipe that was found full is enlarged.
//!
//! A rank's input pipe begins with room for one page, and the kernel reports room in it when the rank has read what was in it. So the first input
//! counts as taken when it was read; later input, for speed, when it is in the pipe.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use phalanx_dvm::{LEAST_CHARGE, charge};
use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::watched::watched;

/// Events of a stream.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Output {
        proc: ProcId,
        channel: IofChannel,
        data: Arc<[u8]>,
    },
    /// Nothing more comes.
    OutputClosed {
        proc: ProcId,
        channel: IofChannel,
    },
}

/// What all streams of a node share.
#[derive(Clone, Debug)]
pub(crate) struct Pipes {
    /// Buffer for reading, before the number of bytes is known.
    scratch: Rc<RefCell<Box<[u8]>>>,
    /// How many pipes may still be made larger.
    enlargeable: Rc<Cell<usize>>,
}

/// A pipe that was made larger. The kernel has a limit for all pipes of a user, so only some are at a time.
#[derive(Debug)]
struct Enlarged(Rc<Cell<usize>>);

impl Default for Pipes {
    fn default() -> Pipes {
        let scratch = Rc::new(RefCell::new(vec![0; CHUNK].into()));
        Pipes { scratch, enlargeable: Rc::new(Cell::new(MOST_ENLARGED)) }
    }
}

impl Pipes {
    /// With a larger pipe, its writer and its reader switch less often.
    fn enlarge(&self, pipe: impl AsFd) -> Option<Enlarged> {
        let left = self.enlargeable.get().checked_sub(1)?;
        self.enlargeable.set(left);
        let enlarged = Enlarged(self.enlargeable.clone());
        // If the kernel refuses, the size stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, LARGE_PIPE);
        Some(enlarged)
    }
}

impl Drop for Enlarged {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// The owner's end of one output stream. Dropping it stops the reading.
#[derive(Debug)]
pub(crate) struct Reader {
    shared: Rc<Shared>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    /// One permit per byte that may be read.
    credit: Semaphore,
    exited: Notify,
}

impl Reader {
    /// Starts to read `pipe`, which must not block.
    pub(crate) fn start(
        proc: ProcId,
        channel: IofChannel,
        pipe: OwnedFd,
        pipes: Pipes,
        events: mpsc::Sender<StreamEvent>,
    ) -> io::Result<Reader> {
        let pipe = pipe::Receiver::from_owned_fd_unchecked(pipe)?;
        let shared = Rc::new(Shared { credit: Semaphore::new(0), exited: Notify::new() });
        let enlarged = OnceCell::new();
        let source = Source { proc, channel, pipe, shared: shared.clone(), pipes, enlarged, events };
        let task = tokio::task::spawn_local(source.run()).abort_handle();
        Ok(Reader { shared, task })
    }

    pub(crate) fn credit(&self, bytes: usize) {
        // More than the semaphore can count means no limit.
        let room = Semaphore::MAX_PERMITS - self.shared.credit.available_permits();
        self.shared.credit.add_permits(bytes.min(room));
    }

    /// The rank has exited: the stream ends after what it had written.
    pub(crate) fn rank_exited(&self) {
        self.shared.exited.notify_one();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The reading end, owned by its task.
struct Source {
    proc: ProcId,
    channel: IofChannel,
    pipe: pipe::Receiver,
    shared: Rc<Shared>,
    pipes: Pipes,
    enlarged: OnceCell<Option<Enlarged>>,
    events: mpsc::Sender<StreamEvent>,
}

impl Source {
    async fn run(mut self) {
        self.read_until_exit_or_end().await;
        let _ = self.events.send(StreamEvent::OutputClosed { proc: self.proc, channel: self.channel }).await;
    }

    async fn read_until_exit_or_end(&mut self) {
        let shared = self.shared.clone();
        let exit = shared.exited.notified();
        tokio::pin!(exit);
        loop {
            let more = tokio::select! {
                more = self.read_some(usize::MAX) => more,
                () = &mut exit => break,
            };
            match more {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        // What the rank wrote is in the pipe now, in front of anything written later.
        let mut rest =
            rustix::io::ioctl_fionread(&self.pipe).map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
        while rest > 0 {
            match self.read_some(rest).await {
                Ok(0) | Err(_) => return,
                Ok(read) => rest = rest.saturating_sub(read),
            }
        }
    }

    /// Reads and delivers up to `most` bytes, as far as there is credit; 0 means the end. May be cancelled while it waits, never between reading and
    /// delivering.
    async fn read_some(&mut self, most: usize) -> io::Result<usize> {
        loop {
            let Ok(permit) = self.shared.credit.acquire_many(LEAST_CHARGE as u32).await else { return Ok(0) };
            drop(permit);
            self.pipe.readable().await?;
            let place = self.events.reserve().await.map_err(|_| io::ErrorKind::BrokenPipe)?;
            let scratch = self.pipes.scratch.clone();
            let mut scratch = scratch.borrow_mut();
            let room = self.shared.credit.available_permits().min(most).min(scratch.len());
            let mut room = ReadBuf::new(scratch.get_mut(..room).unwrap_or_default());
            // In this way, after a short read, the pipe is not read again before it has more.
            match poll_now(|cx| Pin::new(&mut self.pipe).poll_read(cx, &mut room)) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => continue,
            }
            let read = room.filled().len();
            if read > 0 {
                self.shared.credit.forget_permits(charge(read));
                if read == CHUNK {
                    self.enlarged.get_or_init(|| self.pipes.enlarge(&self.pipe));
                }
                let (proc, channel) = (self.proc.clone(), self.channel);
                place.send(StreamEvent::Output { proc, channel, data: room.filled().into() });
            }
            return Ok(read);
        }
    }
}

/// Polls once without waiting; the caller waits in another way.
fn poll_now<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll(&mut Context::from_waker(Waker::noop()))
}

/// A rank's standard input. Belongs to the owner, which writes immediately what the pipe takes.
#[derive(Debug)]
pub(crate) struct Writer {
    pipe: Rc<pipe::Sender>,
    queue: VecDeque<Arc<[u8]>>,
    /// How many bytes of the first in the queue have been written.
    written: usize,
    ending: bool,
    /// A task will notify the owner when there is room.
    waiting: bool,
    /// Until the rank has read all of it: how much of the first input is in the pipe.
    first: Option<usize>,
    pipes: Pipes,
    enlarged: Option<Enlarged>,
}

/// The result of writing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Newly taken by the rank.
    pub(crate) bytes: usize,
    pub(crate) then: WriterState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterState {
    Open,
    /// Everything was written and the end was requested.
    Ended,
    /// The rank has closed its end.
    Refused,
}

impl Writer {
    /// `pipe` must not block.
    pub(crate) fn new(pipe: OwnedFd, pipes: Pipes) -> io::Result<Writer> {
        let first = rustix::pipe::fcntl_setpipe_size(&pipe, 1).is_ok().then_some(0);
        let pipe = Rc::new(pipe::Sender::from_owned_fd_unchecked(pipe)?);
        let (queue, enlarged) = (VecDeque::new(), None);
        Ok(Writer { pipe, queue, written: 0, ending: false, waiting: false, first, pipes, enlarged })
    }

    pub(crate) fn pipe(&self) -> &Rc<pipe::Sender> {
        &self.pipe
    }

    pub(crate) fn push(&mut self, data: Arc<[u8]>) {
        self.queue.push_back(data);
    }

    pub(crate) fn end(&mut self) {
        self.ending = true;
    }

    /// How much of the first input the rank has read, unless that was reported.
    pub(crate) fn read_of_first(&self) -> usize {
        let Some(first) = self.first.filter(|first| *first > 0) else { return 0 };
        let unread = rustix::io::ioctl_fionread(&*self.pipe).unwrap_or_default();
        first.saturating_sub(usize::try_from(unread).unwrap_or(usize::MAX))
    }

    fn is_first_unread(&self) -> bool {
        self.first.is_some_and(|first| first > 0)
    }

    fn is_closed_by_rank(&self) -> bool {
        let mut polled = [PollFd::new(&*self.pipe, PollFlags::OUT)];
        let seen = poll(&mut polled, Some(&Timespec::default()));
        seen.is_ok() && polled[0].revents().contains(PollFlags::ERR)
    }

    /// Writes as much as the pipe takes.
    pub(crate) fn flush(&mut self) -> Written {
        let mut bytes = 0;
        if self.is_first_unread() {
            let read = self.read_of_first();
            if self.is_closed_by_rank() {
                self.queue.clear();
                return Written { bytes: read, then: WriterState::Refused };
            }
            if self.first == Some(read) {
                (bytes, self.first) = (read, None);
                // If the kernel refuses, the rank's input goes page by page.
                let _ = rustix::pipe::fcntl_setpipe_size(&*self.pipe, CHUNK);
            }
        }
        while let Some(first) = self.queue.front() {
            match self.pipe.try_write(first.get(self.written..).unwrap_or_default()) {
                Ok(count) => {
                    match &mut self.first {
                        Some(first) => *first += count,
                        None => bytes += count,
                    }
                    self.written += count;
                    if self.written >= first.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.enlarged.is_none() && self.first.is_none() {
                        self.enlarged = self.pipes.enlarge(&*self.pipe);
                        if self.enlarged.is_some() {
                            continue;
                        }
                    }
                    return Written { bytes, then: WriterState::Open };
                }
                Err(_) => {
                    self.queue.clear();
                    return Written { bytes, then: WriterState::Refused };
                }
            }
        }
        if !self.ending {
            return Written { bytes, then: WriterState::Open };
        }
        // With the end of its input, nobody can see any more what the rank reads.
        bytes += self.first.take().unwrap_or_default();
        Written { bytes, then: WriterState::Ended }
    }

    /// What to wait for before the next [`Writer::flush`]; none if that has nothing to do or a task waits already.
    pub(crate) fn wait(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let is_first = self.is_first_unread();
        if (self.queue.is_empty() && !is_first) || std::mem::replace(&mut self.waiting, true) {
            return None;
        }
        let pipe = self.pipe.clone();
        Some(async move {
            // An error shows up again at the next write.
            if !is_first {
                let _ = pipe.writable().await;
                return;
            }
            // The pipe's own registration still holds that there was room before the first write; a new one sees what is true now.
            let copy = rustix::io::fcntl_dupfd_cloexec(&*pipe, 3).map_err(io::Error::from);
            match copy.and_then(|copy| watched(copy, Interest::WRITABLE)) {
                Ok(copy) => drop(copy.writable().await),
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        })
    }

    pub(crate) fn waited(&mut self) {
        self.waiting = false;
    }
}

/// The most that is read at once: what a pipe holds by default.
const CHUNK: usize = 64 << 10;
/// The size of a pipe that carries much data, and how many of them there are at a time.
pub(crate) const LARGE_PIPE: usize = 256 << 10;
const MOST_ENLARGED: usize = 32;
/// Without a descriptor to wait for the rank's first read.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
