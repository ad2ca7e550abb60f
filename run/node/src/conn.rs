//! One PMIx connection: bytes in as they come, frames out whole as far as the kernel takes them.
//!
//! The owner of the node writes, so a reply leaves without a detour; a task per connection reads. A peer that does not read its replies is not read
//! from either, so what it can make us hold is bounded; in the end the server closes the connection. Nor is a peer read from while its requests have
//! to wait for others.
//!
//! Peers lose a header that arrives in two pieces (OpenPMIx through 6.1 reads it into a local variable). Therefore each
//! frame is one `send`, marked as the end of a record: then the kernel begins a new segment for the next frame, and a
//! header never straddles two.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use phalanx_core::{CloseReason, ConnId};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::listen::Accepted;
use crate::watched::watched;

/// Events of connections.
#[derive(Debug)]
pub(crate) enum ConnEvent {
    Accepted(Accepted),
    Bytes { conn: ConnId, data: Vec<u8> },
    Closed { conn: ConnId, reason: CloseReason },
}

/// The owner's end of a connection.
#[derive(Debug)]
pub(crate) struct Conn {
    /// Registered for reading only: a local socket would report writability after each message that its peer has read.
    socket: Rc<AsyncFd<OwnedFd>>,
    gate: Rc<Gate>,
    reader: AbortHandle,
    queue: VecDeque<Vec<u8>>,
    /// How many bytes of the first frame in the queue have left.
    written: usize,
    queued: usize,
    /// Requests of this peer have to wait for others.
    held: bool,
    /// Close when the queue is empty.
    closing: bool,
    /// A task will notify the owner when there is room.
    waiting: bool,
    permit: OwnedSemaphorePermit,
}

/// Keeps the reader from reading while too much waits to be written or processed.
#[derive(Debug, Default)]
struct Gate {
    shut: Cell<bool>,
    /// Bytes that were read but that the owner has not processed.
    ahead: Cell<usize>,
    opened: Notify,
}

impl Conn {
    /// Begins to read.
    pub(crate) fn start(id: ConnId, accepted: Accepted, events: mpsc::Sender<ConnEvent>) -> Conn {
        let socket = Rc::new(accepted.socket);
        let gate = Rc::new(Gate::default());
        let reader = tokio::task::spawn_local(read(id, socket.clone(), gate.clone(), events)).abort_handle();
        Conn {
            socket,
            gate,
            reader,
            queue: VecDeque::new(),
            written: 0,
            queued: 0,
            held: false,
            closing: false,
            waiting: false,
            permit: accepted.permit,
        }
    }

    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        if !frame.is_empty() {
            self.queued += frame.len();
            self.queue.push_back(frame);
        }
    }

    /// How many bytes still wait to leave.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Stops reading; what is queued still leaves.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        self.reader.abort();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Writes as much as the kernel takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some(frame) = self.queue.front() {
            let rest = frame.get(self.written..).unwrap_or_default();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | SendFlags::EOR;
            match send(self.socket.get_ref(), rest, flags) {
                Ok(count) => {
                    self.written += count;
                    self.queued -= count;
                    if self.written >= frame.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.set_gate();
        Ok(())
    }

    /// Stops or resumes reading.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
        self.set_gate();
    }

    /// The owner has processed this many bytes.
    pub(crate) fn seen(&self, bytes: usize) {
        self.gate.ahead.update(|ahead| ahead.saturating_sub(bytes));
        self.gate.opened.notify_one();
    }

    fn set_gate(&self) {
        self.gate.set(self.held || self.queued > HIGH_MARK);
    }

    /// What to wait for before the next [`Conn::flush`]; none if the queue is empty or a task waits already.
    pub(crate) fn wait(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        if self.queue.is_empty() || std::mem::replace(&mut self.waiting, true) {
            return None;
        }
        let socket = self.socket.get_ref().try_clone();
        Some(async move {
            // An error shows up again at the next write.
            let socket = socket.and_then(|socket| watched(socket, Interest::WRITABLE));
            if let Ok(socket) = socket {
                let _ = socket.writable().await;
            }
        })
    }

    pub(crate) fn waited(&mut self) {
        self.waiting = false;
    }

    /// Ends the connection after the peer has received what was queued: closing with unread input would reset it.
    pub(crate) fn linger(self) {
        self.reader.abort();
        let Conn { socket, permit, .. } = self;
        tokio::task::spawn_local(async move {
            if shutdown(socket.get_ref(), Shutdown::Write).is_ok() {
                let _ = timeout(LINGER, discard(&socket)).await;
            }
            drop(permit);
        });
    }

    /// Ends the connection at once.
    pub(crate) fn drop_now(self) {
        self.reader.abort();
    }
}

impl Gate {
    fn set(&self, shut: bool) {
        if self.shut.replace(shut) && !shut {
            self.opened.notify_one();
        }
    }

    /// `false`: the peer has closed the connection meanwhile.
    async fn pass(&self, socket: &AsyncFd<OwnedFd>) -> bool {
        while self.ahead.get() > MOST_AHEAD {
            self.opened.notified().await;
        }
        if !self.shut.get() {
            return true;
        }
        let gone = closed(socket);
        tokio::pin!(gone);
        while self.shut.get() {
            tokio::select! {
                () = self.opened.notified() => {}
                () = &mut gone => return false,
            }
        }
        true
    }
}

async fn read(conn: ConnId, socket: Rc<AsyncFd<OwnedFd>>, gate: Rc<Gate>, events: mpsc::Sender<ConnEvent>) {
    let mut size = SMALL_READ;
    let reason = loop {
        if !gate.pass(&socket).await {
            break CloseReason::Eof;
        }
        let Ok(mut ready) = socket.readable().await else { break CloseReason::Error };
        let Ok(place) = events.reserve().await else { return };
        let mut data = vec![0; size];
        match recv(socket.get_ref(), &mut data, RecvFlags::DONTWAIT) {
            Ok((0, _)) => break CloseReason::Eof,
            Ok((count, _)) => {
                if count == size {
                    size = (size * 4).min(LARGE_READ);
                } else {
                    size = SMALL_READ;
                    // The socket is empty: wait for readiness instead of reading in vain. Bytes that arrive meanwhile make it ready again.
                    ready.clear_ready();
                }
                data.truncate(count);
                gate.ahead.update(|ahead| ahead + count);
                place.send(ConnEvent::Bytes { conn, data });
            }
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(_) => break CloseReason::Error,
        }
    };
    let _ = events.send(ConnEvent::Closed { conn, reason }).await;
}

/// Waits until the peer has closed its end, whatever it has sent before. Leaves the readiness of `socket` itself untouched.
async fn closed(socket: &AsyncFd<OwnedFd>) {
    let watch = socket.get_ref().try_clone().and_then(|socket| watched(socket, Interest::READABLE));
    let Ok(watch) = watch else { return std::future::pending().await };
    while let Ok(mut ready) = watch.readable().await {
        if ready.ready().is_read_closed() {
            return;
        }
        ready.clear_ready();
    }
}

async fn discard(socket: &AsyncFd<OwnedFd>) {
    let mut rest = vec![0; SMALL_READ];
    while let Ok(mut ready) = socket.readable().await {
        match recv(socket.get_ref(), &mut rest, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(_) => return,
        }
    }
}

const SMALL_READ: usize = 8 << 10;
const LARGE_READ: usize = 256 << 10;
/// Above this many bytes to write, the connection is not read from.
const HIGH_MARK: usize = 1 << 20;
/// Above this many bytes that the owner has not processed, the connection is not read from.
const MOST_AHEAD: usize = 1 << 20;
/// How long a closed connection waits for its peer to take the last bytes.
const LINGER: Duration = Duration::from_secs(2);
