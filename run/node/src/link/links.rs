//! All links of a node, in the hands of its owner. Everything runs on the owner's thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as Door};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use phalanx_dvm::NodeId;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::call::{Made, call};
use super::door::{Strangers, accept};
use super::flow::Flow;
use super::introduction::Introduction;
use super::refusal::Refusal;
use super::secret::Secret;

/// What happens to links.
#[derive(Debug)]
pub enum LinkEvent {
    /// A link is established, called by us or by the peer.
    Up { peer: NodeId, at: SocketAddr },
    /// Must be acknowledged by [`Links::taken`] once processed. Message boundaries are not visible here.
    Bytes { peer: NodeId, data: Vec<u8> },
    /// The root says nothing, but its kernel has acknowledged, so long ago, what was sent to it: its process exists.
    Acked { peer: NodeId, ago: Duration },
    /// There is room again on a link for which [`Links::is_full`] was true.
    Room { peer: NodeId },
    /// The link was lost, or could not be established. Not sent for links that the owner has closed.
    Down { peer: NodeId, why: String },
    /// A caller was refused. Sent only while the queue has room.
    Refused { from: SocketAddr, why: Refusal },
}

/// Bounds on what peers can make us hold or wait for.
#[derive(Clone, Copy, Debug)]
pub struct LinkLimits {
    /// How long a peer may take to introduce itself.
    pub handshake: Duration,
    /// How many peers may be introducing themselves at a time.
    pub strangers: usize,
    /// Bytes that may be queued for one peer. A single longer message is still sent.
    pub queue: usize,
}

impl Default for LinkLimits {
    fn default() -> LinkLimits {
        LinkLimits { handshake: Duration::from_secs(10), strangers: 256, queue: 64 << 20 }
    }
}

/// Why bytes were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    NoLink,
    /// The peer reads too slowly: the link was ended.
    Full,
}

/// Addresses at which a daemon may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates(Vec<SocketAddr>);

/// The events of a node's links, in order. The queue is short: while the owner does not read it, no link is read from.
#[derive(Debug)]
pub struct LinkEvents(mpsc::Receiver<LinkEvent>);

impl LinkEvents {
    /// None: the links are gone.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        self.0.recv().await
    }
}

/// The links of a node. Dropping it ends them.
#[derive(Debug)]
pub struct Links {
    shared: Rc<Shared>,
    doors: Vec<AbortHandle>,
    calls: BTreeMap<NodeId, AbortHandle>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dvm: String,
    pub(super) me: NodeId,
    pub(super) secret: Secret,
    pub(super) limits: LinkLimits,
    pub(super) events: mpsc::Sender<LinkEvent>,
    pub(super) strangers: RefCell<Strangers>,
    flows: RefCell<BTreeMap<NodeId, Flow>>,
    next_number: Cell<u64>,
}

impl Links {
    /// For daemon `me` of the DVM. Like everything here, must be called within [`crate::block_on`].
    pub fn new(dvm: &str, me: NodeId, secret: Secret, limits: LinkLimits) -> (Links, LinkEvents) {
        let (events, told) = mpsc::channel(EVENTS);
        let shared = Rc::new(Shared {
            dvm: dvm.to_owned(),
            me,
            secret,
            limits,
            events,
            strangers: RefCell::default(),
            flows: RefCell::default(),
            next_number: Cell::new(0),
        });
        (Links { shared, doors: Vec::new(), calls: BTreeMap::new() }, LinkEvents(told))
    }

    /// Lets other daemons call at these addresses, and returns where. Returns the first failure if none works.
    pub fn listen(&mut self, addresses: &[IpAddr]) -> io::Result<Candidates> {
        let mut open = Vec::new();
        let mut failure = None;
        for &address in addresses.iter().take(MOST_CANDIDATES) {
            match open_door(address) {
                Ok((at, door)) => {
                    let task = tokio::task::spawn_local(accept(door, self.shared.clone()));
                    self.doors.push(task.abort_handle());
                    open.push(at);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match (open.is_empty(), failure) {
            (false, _) => Ok(Candidates(open)),
            (true, failure) => Err(failure.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into())),
        }
    }

    /// Makes a link: [`LinkEvent::Up`] or [`LinkEvent::Down`] reports the result. An earlier attempt is abandoned.
    pub fn call(&mut self, peer: NodeId, candidates: Candidates) {
        let shared = self.shared.clone();
        let task = tokio::task::spawn_local(async move {
            let own = Introduction { dvm: shared.dvm.clone(), from: shared.me, to: peer };
            match call(&candidates.0, &shared.secret, &own, shared.limits.handshake).await {
                Ok(made) => shared.establish(made).await,
                Err(why) => drop(shared.events.send(LinkEvent::Down { peer, why }).await),
            }
        });
        if let Some(earlier) = self.calls.insert(peer, task.abort_handle()) {
            earlier.abort();
        }
        self.calls.retain(|_, call| !call.is_finished());
    }

    /// Sends bytes, after everything sent there before.
    pub fn send(&mut self, peer: NodeId, bytes: impl Into<Arc<[u8]>>) -> Result<(), Unsent> {
        let mut flows = self.shared.flows.borrow_mut();
        let flow = flows.get(&peer).ok_or(Unsent::NoLink)?;
        if flow.queued() > self.shared.limits.queue {
            if let Some(flow) = flows.remove(&peer) {
                flow.drop_now();
            }
            return Err(Unsent::Full);
        }
        flow.push(bytes.into());
        Ok(())
    }

    /// Whether much data is queued there. If so, [`LinkEvent::Room`] follows when little is left.
    pub fn is_full(&self, peer: NodeId) -> bool {
        self.shared.flows.borrow().get(&peer).is_some_and(Flow::is_full)
    }

    /// For each link, waits until its queue is empty.
    pub fn left(&self) -> Vec<impl Future<Output = ()> + use<>> {
        self.shared.flows.borrow().values().map(Flow::left).collect()
    }

    /// Acknowledges that the owner has processed this many bytes from there: as many more may come.
    pub fn taken(&self, peer: NodeId, bytes: usize) {
        if let Some(flow) = self.shared.flows.borrow().get(&peer) {
            flow.taken(bytes);
        }
    }

    /// Ends a link, or an attempt to make one. The peer receives the reason, if it still listens.
    pub fn close(&mut self, peer: NodeId, why: &str) {
        if let Some(call) = self.calls.remove(&peer) {
            call.abort();
        }
        if let Some(flow) = self.shared.flows.borrow_mut().remove(&peer) {
            drop(flow.close(why));
        }
    }

    /// Ends all links when their queues are empty, or after a moment.
    pub async fn finish(mut self, why: &str) {
        let flows = std::mem::take(&mut *self.shared.flows.borrow_mut());
        let ends: Vec<_> = flows.into_values().map(|flow| flow.close(why)).collect();
        self.doors.drain(..).for_each(|door| door.abort());
        for end in ends {
            end.gone().await;
        }
    }

    /// The link to the nearest daemon of a lower number, which we have made, and the address that has answered.
    pub fn above(&self) -> Option<(NodeId, SocketAddr)> {
        let flows = self.shared.flows.borrow();
        flows.range(..self.shared.me).next_back().map(|(peer, flow)| (*peer, flow.at))
    }

    /// How many callers have not introduced themselves yet.
    pub fn strangers(&self) -> usize {
        self.shared.strangers.borrow().count()
    }
}

fn open_door(address: IpAddr) -> io::Result<(SocketAddr, TcpListener)> {
    let door = Door::bind((address, 0))?;
    door.set_nonblocking(true)?;
    Ok((door.local_addr()?, TcpListener::from_std(door)?))
}

impl Drop for Links {
    fn drop(&mut self) {
        self.doors.iter().chain(self.calls.values()).for_each(AbortHandle::abort);
        self.shared.strangers.borrow_mut().send_away();
        for flow in std::mem::take(&mut *self.shared.flows.borrow_mut()).into_values() {
            flow.drop_now();
        }
    }
}

impl Shared {
    /// A daemon that links again has lost its earlier link.
    pub(super) async fn establish(self: &Rc<Self>, made: Made) {
        let peer = made.peer.from;
        // From here on nothing waits, so that events stay in order.
        let Ok(mut places) = self.events.reserve_many(2).await else { return };
        let mut tell = |event| {
            if let Some(place) = places.next() {
                place.send(event);
            }
        };
        let mut flows = self.flows.borrow_mut();
        if let Some(earlier) = flows.remove(&peer) {
            earlier.drop_now();
            tell(LinkEvent::Down { peer, why: "it has made a new link".to_owned() });
        }
        tell(LinkEvent::Up { peer, at: made.at });
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        flows.insert(peer, Flow::start(made, number, self));
    }

    /// A link has ended by itself.
    pub(super) async fn lost(&self, peer: NodeId, number: u64, why: String) {
        let is_that = self.flows.borrow().get(&peer).is_some_and(|flow| flow.number == number);
        if is_that {
            self.flows.borrow_mut().remove(&peer);
            let _ = self.events.send(LinkEvent::Down { peer, why }).await;
        }
    }

    pub(super) fn refused(&self, from: SocketAddr, why: Refusal) {
        match why {
            // Usual when a daemon has several addresses: the caller keeps the first that answers.
            Refusal::Closed => tracing::debug!(%from, "whoever called has closed the connection"),
            _ => tracing::warn!(%from, %why, "a link was refused"),
        }
        let _ = self.events.try_send(LinkEvent::Refused { from, why });
    }
}

impl FromStr for Candidates {
    type Err = String;

    /// Addresses with ports, separated by commas.
    fn from_str(text: &str) -> Result<Candidates, String> {
        let parse = |word: &str| word.parse().map_err(|_| format!("{word:?} is no address with a port"));
        let all: Vec<SocketAddr> = text.split(',').map(parse).collect::<Result<_, String>>()?;
        match all.len() {
            0..=MOST_CANDIDATES => Ok(Candidates(all)),
            count => Err(format!("{count} addresses of one daemon, at most {MOST_CANDIDATES}")),
        }
    }
}

impl fmt::Display for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(SocketAddr::to_string).collect();
        f.write_str(&all.join(","))
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsent::NoLink => "there is no link",
            Unsent::Full => "it takes too little of what it is sent",
        })
    }
}

impl std::error::Error for Unsent {}

/// Connections that one call may try at once.
const MOST_CANDIDATES: usize = 16;
/// Events that the owner has not read yet.
const EVENTS: usize = 64;
