//! An established link: one task that reads and writes, and the owner's end of it.
//!
//! Received data is passed to the owner piece by piece. When more than [`MOST_AHEAD`] bytes of a link await processing, the link is not read from,
//! and its sender waits. Outgoing data is queued; the owner learns when the queue is long, and when it is short again.
//!
//! A sender with more than `LinkLimits::queue` (64 MiB) waiting loses the link. Both bounds concern that link alone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::call::Made;
use super::kernel;
use super::links::{LinkEvent, Shared};
use super::records::{Opener, Sealer};

/// The owner's end.
#[derive(Debug)]
pub(super) struct Flow {
    /// Distinguishes it from earlier links to the same daemon.
    pub(super) number: u64,
    /// The other end.
    pub(super) at: SocketAddr,
    state: Rc<Queues>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Queues {
    /// Data for several daemons is shared, not copied.
    queue: RefCell<VecDeque<Arc<[u8]>>>,
    /// Bytes in the queue and those that are being written.
    queued: Cell<usize>,
    queue_news: Notify,
    /// The whole queue has left.
    left_news: Notify,
    /// Bytes that were read but not processed by the owner.
    ahead: Cell<usize>,
    ahead_news: Notify,
    /// The owner knows that the queue is long.
    was_full: Cell<bool>,
    /// The owner's reason for closing the link, once it has.
    end: RefCell<Option<String>>,
    end_news: Notify,
    /// The link's task is over.
    gone: Notify,
}

/// A link that its owner has closed.
#[derive(Debug)]
pub(super) struct Closing(Rc<Queues>);

impl Closing {
    /// Waits until the link's task is over, which is soon.
    pub(super) async fn gone(self) {
        self.0.gone.notified().await;
    }
}

impl Flow {
    /// Must be called after the owner was notified of the link.
    pub(super) fn start(made: Made, number: u64, shared: &Rc<Shared>) -> Flow {
        let (state, at) = (Rc::new(Queues::default()), made.at);
        let task = tokio::task::spawn_local(run(made, number, state.clone(), shared.clone())).abort_handle();
        Flow { number, at, state, task }
    }

    pub(super) fn push(&self, bytes: Arc<[u8]>) {
        if !bytes.is_empty() {
            self.state.queued.update(|queued| queued + bytes.len());
            self.state.queue.borrow_mut().push_back(bytes);
            self.state.queue_news.notify_one();
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.state.queued.get()
    }

    /// Waits until the queue is empty.
    pub(super) fn left(&self) -> impl Future<Output = ()> + use<> {
        let state = self.state.clone();
        async move {
            while state.queued.get() > 0 {
                state.left_news.notified().await;
            }
        }
    }

    /// Whether the owner should wait for [`LinkEvent::Room`].
    pub(super) fn is_full(&self) -> bool {
        let full = self.queued() > HIGH_MARK;
        if full {
            self.state.was_full.set(true);
        }
        full
    }

    /// The owner has processed this many bytes.
    pub(super) fn taken(&self, bytes: usize) {
        self.state.ahead.update(|ahead| ahead.saturating_sub(bytes));
        self.state.ahead_news.notify_one();
    }

    /// Sends what is queued, within a time limit, and then the reason.
    pub(super) fn close(self, why: &str) -> Closing {
        *self.state.end.borrow_mut() = Some(why.to_owned());
        self.state.queue_news.notify_one();
        self.state.end_news.notify_one();
        Closing(self.state)
    }

    /// Ends the link without a reason.
    pub(super) fn drop_now(self) {
        self.task.abort();
    }
}

async fn run(made: Made, number: u64, state: Rc<Queues>, shared: Rc<Shared>) {
    let Made { stream, peer, sealer, opener, .. } = made;
    let (from, to) = stream.into_split();
    let peer = peer.from;
    let why = tokio::select! {
        why = read(from, opener, peer, &state, &shared.events) => why,
        why = write(to, sealer, peer, &state, &shared.events) => why,
        () = linger(&state) => "its time was over".to_owned(),
    };
    state.gone.notify_one();
    shared.lost(peer, number, why).await;
}

async fn read(
    mut from: OwnedReadHalf,
    mut opener: Opener,
    peer: NodeId,
    state: &Queues,
    events: &mpsc::Sender<LinkEvent>,
) -> String {
    let mut buffer = vec![0; READ];
    loop {
        // The first record may have arrived together with the end of the handshake.
        let mut data = Vec::new();
        let opened = opener.open(&mut data);
        let is_wanted = state.end.borrow().is_none();
        if !data.is_empty() && is_wanted {
            state.ahead.update(|ahead| ahead + data.len());
            if events.send(LinkEvent::Bytes { peer, data }).await.is_err() {
                return "nobody reads any more".to_owned();
            }
        }
        if let Err(broken) = opened {
            return broken.to_string();
        }
        while state.ahead.get() > MOST_AHEAD {
            state.ahead_news.notified().await;
        }
        let read = loop {
            match timeout(QUIET, from.read(&mut buffer)).await {
                Ok(read) => break read,
                Err(_) if peer != NodeId::ROOT => {}
                Err(_) => {
                    let acked = kernel::acked_ago(from.as_ref()).map(|ago| LinkEvent::Acked { peer, ago });
                    acked.into_iter().for_each(|event| drop(events.try_send(event)));
                }
            }
        };
        match read {
            Ok(0) => return "it has closed the connection".to_owned(),
            Ok(count) => opener.push(buffer.get(..count).unwrap_or_default()),
            Err(error) => return format!("the connection was lost: {error}"),
        }
    }
}

async fn write(
    mut to: OwnedWriteHalf,
    mut sealer: Sealer,
    peer: NodeId,
    state: &Queues,
    events: &mpsc::Sender<LinkEvent>,
) -> String {
    let (mut plain, mut sealed) = (Vec::new(), Vec::new());
    loop {
        plain.clear();
        sealed.clear();
        // Small messages share a record; a large one is not copied.
        let mut large = None;
        while let Some(next) = state.queue.borrow_mut().pop_front() {
            if plain.is_empty() && next.len() >= BATCH {
                large = Some(next);
                break;
            }
            plain.extend_from_slice(&next);
            if plain.len() >= BATCH {
                break;
            }
        }
        let bytes = large.as_deref().unwrap_or(&plain);
        let end = if bytes.is_empty() { state.end.borrow().clone() } else { None };
        if let Some(why) = end {
            sealer.seal_end(&why, &mut sealed);
            let _ = to.write_all(&sealed).await;
            let _ = to.shutdown().await;
            return "it was closed".to_owned();
        }
        if bytes.is_empty() {
            state.queue_news.notified().await;
            continue;
        }
        for piece in bytes.chunks(BATCH) {
            sealed.clear();
            sealer.seal(piece, &mut sealed);
            if let Err(error) = to.write_all(&sealed).await {
                return format!("the connection was lost: {error}");
            }
            state.queued.update(|queued| queued - piece.len());
        }
        if state.queued.get() == 0 {
            state.left_news.notify_one();
        }
        if state.queued.get() <= LOW_MARK && state.was_full.replace(false) {
            let _ = events.send(LinkEvent::Room { peer }).await;
        }
    }
}

/// Waits until the link has been closed for long enough.
async fn linger(state: &Queues) {
    while state.end.borrow().is_none() {
        state.end_news.notified().await;
    }
    tokio::time::sleep(LINGER).await;
}

/// When the root has said nothing for so long, the kernel is asked whether its process exists.
const QUIET: Duration = Duration::from_secs(1);
const READ: usize = 64 << 10;
const BATCH: usize = 256 << 10;
/// Per link; above it, the link is not read from.
pub(super) const MOST_AHEAD: usize = 1 << 20;
const HIGH_MARK: usize = 1 << 20;
const LOW_MARK: usize = 256 << 10;
/// How long a closed link may take to send its last bytes.
const LINGER: Duration = Duration::from_secs(2);
