//! The client role: one process and its connection to the server of its node.
//!
//! Each call of the program is one [`ClientCall`] and ends in exactly one [`ClientReturn`], whatever happens to the connection. In
//! between stands a table of pending requests (`pending.rs`), which can explain itself. One file per verb: it owns the verb's
//! table, if there is one, and is handed that table and a `Cx` with the time, the link to the server, and where outputs go.
//! Interactions of verbs are joined in `calls`, `handshake` (which makes the connection and sorts what arrives on it) and
//! `replies`: `cargo xtask sources` checks that no file but these has all tables, and that the files import each other without a
//! circle. Values go to the [`Store`], from which the program's threads answer most gets without coming here.

mod abort;
mod alone;
mod call;
mod calls;
mod chain;
mod commit;
mod config;
mod connect;
mod credential;
mod debug;
mod event;
mod exchange;
mod fence;
mod finalize;
mod forward;
mod get;
mod group;
mod handshake;
mod introduce;
mod invitation;
mod invite;
mod iof;
mod link;
mod log;
mod monitor;
mod pending;
mod phase;
mod publish;
mod query;
mod replies;
mod resolve;
mod spawn;

use std::sync::Arc;

use phalanx_wire::ProcId;
use phalanx_wire::frame::FrameReader;

use crate::explain::Waiting;
use crate::machine::{Input, Machine, Outbox, Time};
use crate::store::Store;
use crate::support::{self, OuterSupport};

pub use call::{ClientCall, ClientDelivery, ClientReturn, NewJob, Verdict};
use chain::Chains;
pub use config::ClientConfig;
use event::Handlers;
use get::SharedGets;
use group::Groups;
pub(crate) use introduce::Introduction;
use invite::Inviting;
use iof::Streams;
pub use iof::{UNASKED, UNTOLD};
use link::{Cx, Link};
pub use phase::InitError;
use phase::Phase;

/// The state of one client.
#[derive(Debug)]
pub struct Client {
    link: Link,
    tables: Tables,
}

/// The tables of the verbs.
#[derive(Debug)]
struct Tables {
    frames: FrameReader,
    introduction: Introduction,
    shared: SharedGets,
    chains: Chains,
    streams: Streams,
    groups: Groups,
    outer: &'static OuterSupport,
}

impl Client {
    pub fn new(config: ClientConfig) -> Client {
        let tables = Tables {
            frames: FrameReader::default(),
            introduction: Introduction::Client,
            shared: SharedGets::default(),
            chains: Chains::default(),
            streams: Streams::default(),
            groups: Groups::default(),
            outer: support::NOTHING,
        };
        Client { link: Link::new(config), tables }
    }

    /// A tool's connection to one server. All that it learns goes to `store`; without one the tool has no name yet, and gets
    /// a store with its name.
    pub(crate) fn of_tool(config: ClientConfig, tool: Introduction, store: Option<Arc<Store>>) -> Client {
        let mut client = Client::new(config);
        client.tables.introduction = tool;
        if let Some(store) = store {
            client.link.store = store;
        }
        client
    }

    /// A client in its server's own process: it is connected from the beginning.
    pub(crate) fn attached(config: ClientConfig) -> Client {
        let mut client = Client::new(config);
        client.link.phase = Phase::Ready;
        client.link.remembers = false;
        client
    }

    /// Adds the attributes that the library around the client honours itself.
    pub fn within(mut self, outer: &'static OuterSupport) -> Client {
        self.tables.outer = outer;
        self
    }

    /// The name of this process.
    pub(crate) fn proc(&self) -> &ProcId {
        &self.link.config.proc
    }

    /// The values that this client has, for lookups on other threads.
    pub fn store(&self) -> Arc<Store> {
        self.link.store.clone()
    }

    /// Everything pending: requests to the server, and event handlers of this program.
    pub fn explain(&self) -> Vec<Waiting> {
        let me = self.proc();
        let mut all: Vec<_> = self.link.phase.explain(me).into_iter().collect();
        all.extend(self.link.pending.explain(me));
        all.extend(self.explain_handlers());
        all
    }

    /// The events that handlers of this program have not finished.
    pub(crate) fn explain_handlers(&self) -> impl Iterator<Item = Waiting> {
        self.tables.chains.explain(self.proc())
    }

    /// Whether the server sends events that the client itself needs.
    pub fn awaits_news(&self) -> bool {
        self.tables.groups.listen()
    }

    /// The server's identity.
    pub(crate) fn server(&self) -> Option<&ProcId> {
        self.link.server()
    }

    /// It has been admitted, or runs alone.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.link.phase, Phase::Ready | Phase::Alone)
    }

    /// The connection has ended without a finalize.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.link.phase, Phase::Lost)
    }

    /// From now on it represents a server that is out of reach.
    pub(crate) fn retire(&mut self) {
        self.link.phase = Phase::Lost;
    }
}

impl Tables {
    fn handlers(&mut self) -> Handlers<'_> {
        Handlers { chains: &mut self.chains, groups: &self.groups }
    }

    fn inviting(&mut self) -> Inviting<'_> {
        Inviting { groups: &mut self.groups, chains: &mut self.chains }
    }
}

impl Machine for Client {
    type Call = ClientCall;
    type Return = ClientReturn;
    type Delivery = ClientDelivery;

    fn handle(
        &mut self,
        now: Time,
        input: Input<'_, ClientCall>,
        out: &mut Outbox<ClientReturn, ClientDelivery>,
    ) {
        let Client { link, tables } = self;
        let cx = &mut Cx { now, out, link };
        match input {
            Input::Call { id, call } => tables.on_call(cx, id, call),
            Input::Opened { .. } => tables.on_opened(cx),
            Input::Bytes { data, .. } => tables.on_bytes(cx, data),
            Input::Closed { reason, .. } => tables.on_closed(cx, reason),
            // A client has few pending requests and no host.
            Input::Writable { .. } | Input::Host { .. } | Input::Looked { .. } | Input::Tick => {}
        }
        tables.on_time(cx);
    }

    fn deadline(&self) -> Option<Time> {
        [self.link.phase.deadline(), self.link.pending.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
