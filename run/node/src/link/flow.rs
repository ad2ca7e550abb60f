//! A link that stands: one task that reads and writes, and the owner's end of it.
//!
//! What comes is handed to the owner piece by piece, and never more than [`MOST_AHEAD`] of one link that the owner has not dealt with:
//! then the link is not read from, and its sender waits. What leaves is queued; the owner is told when the queue is long, and when it
//! is short again.
//!
//! A sender that has more than `LinkLimits::queue` (64 MiB) waiting loses the link. Both bounds concern that link alone.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::NodeId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::call::Made;
use super::links::{LinkEvent, Shared};
use super::records::{Opener, Sealer};

/// The owner's end.
#[derive(Debug)]
pub(super) struct Flow {
    /// Tells it from earlier links to the same daemon.
    pub(super) number: u64,
    state: Rc<Queues>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Queues {
    /// What goes to several daemons is there once.
    queue: RefCell<VecDeque<Arc<[u8]>>>,
    /// Bytes in the queue, and those that are being written.
    queued: Cell<usize>,
    queue_news: Notify,
    /// All that was queued has left.
    left_news: Notify,
    /// Read, and not dealt with by the owner.
    ahead: Cell<usize>,
    ahead_news: Notify,
    /// The owner has been told that the queue is long.
    was_full: Cell<bool>,
    /// The owner has closed it, and says why.
    end: RefCell<Option<String>>,
    end_news: Notify,
    /// Nothing of it is left.
    gone: Notify,
}

/// A link that its owner has closed.
#[derive(Debug)]
pub(super) struct Closing(Rc<Queues>);

impl Closing {
    /// Until nothing of it is left, which is soon.
    pub(super) async fn gone(self) {
        self.0.gone.notified().await;
    }
}

impl Flow {
    /// To be called when the owner has been told that the link is there.
    pub(super) fn start(made: Made, number: u64, shared: &Rc<Shared>) -> Flow {
        let state = Rc::new(Queues::default());
        let task = tokio::task::spawn_local(run(made, number, state.clone(), shared.clone())).abort_handle();
        Flow { number, state, task }
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

    /// Until nothing waits to be sent.
    pub(super) fn left(&self) -> impl Future<Output = ()> + use<> {
        let state = self.state.clone();
        async move {
            while state.queued.get() > 0 {
                state.left_news.notified().await;
            }
        }
    }

    /// Whether the owner had better wait for [`LinkEvent::Room`].
    pub(super) fn is_full(&self) -> bool {
        let full = self.queued() > HIGH_MARK;
        if full {
            self.state.was_full.set(true);
        }
        full
    }

    /// The owner has dealt with so many bytes.
    pub(super) fn taken(&self, bytes: usize) {
        self.state.ahead.update(|ahead| ahead.saturating_sub(bytes));
        self.state.ahead_news.notify_one();
    }

    /// What is queued still leaves, for a while, and then the reason.
    pub(super) fn close(self, why: &str) -> Closing {
        *self.state.end.borrow_mut() = Some(why.to_owned());
        self.state.queue_news.notify_one();
        self.state.end_news.notify_one();
        Closing(self.state)
    }

    /// Ends it without a word.
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
        // The first may have come together with the end of the handshake.
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
        match from.read(&mut buffer).await {
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

/// Until the link has been closed for long enough.
async fn linger(state: &Queues) {
    while state.end.borrow().is_none() {
        state.end_news.notified().await;
    }
    tokio::time::sleep(LINGER).await;
}

const READ: usize = 64 << 10;
const BATCH: usize = 256 << 10;
/// Of one link; beyond it, it is not read from.
pub(super) const MOST_AHEAD: usize = 1 << 20;
const HIGH_MARK: usize = 1 << 20;
const LOW_MARK: usize = 256 << 10;
/// How long a closed link may take for its last bytes.
const LINGER: Duration = Duration::from_secs(2);
