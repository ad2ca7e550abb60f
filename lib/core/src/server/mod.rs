//! The server role: handles everything that clients and tools send, that the host answers, and that the owner calls.
//!
//! This file owns the [`Server`] and its tables. Each verb's file owns at most one table, and is handed what it needs: that
//! table, and a `Cx` with the time, the peers, and where outputs and requests to the host go. No such file knows the others;
//! their interactions are joined in `frames`, `requests`, `calls`, `answers` and `finalize`. `cargo xtask sources` checks that no
//! file but these has all tables, and that the files import each other without a circle.
//!
//! Nothing here reads a clock or touches a socket, and no peer can make it panic or hold more than `limits` allows. Requests that
//! the server cannot answer go to the host as [`HostOp`](crate::HostOp)s; `answers` passes the answers back to the askers.

mod abort;
mod accept;
mod answers;
mod attributes;
mod call;
mod calls;
mod collected;
mod collective;
mod commit;
mod config;
mod connect;
mod credential;
mod debug;
mod directive;
mod event;
mod fence;
mod finalize;
mod forward;
mod frames;
mod get;
mod group;
mod host;
mod iof;
mod job_data;

mod limits;
mod log;
mod modex;
mod monitor;
mod own;
mod peer;
mod peers;
mod pset;
mod publish;
mod query;
mod registry;
mod requests;
mod resolve;
mod resources;
mod setup;
mod spawn;
mod sweep;
mod timers;
mod topology;
mod turn;
mod values;

#[cfg(test)]
mod tests;

use phalanx_wire::codec::Dialect;

use crate::explain::Waiting;
use crate::machine::{ConnId, Input, Machine, Outbox, Time};
use crate::support::{self, OuterSupport};
pub use call::{OutputTo, ServerCall, ServerReturn};
pub use config::{ModexForm, Remote, ServerConfig, ToolsOf};
pub use iof::OUTPUT_DEFAULTS;
pub use own::OWN;
use peer::{Peer, PeerKind};
pub use setup::{OURS, VERSION, environment};
use turn::Cx;

/// The server machine.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    timers: timers::Timers,
    peers: peers::Peers,
    upcalls: host::Upcalls,
    tables: Tables,
}

/// The tables of the verbs.
#[derive(Debug)]
struct Tables {
    strangers: accept::Strangers,
    host_attributes: attributes::HostAttributes,
    known: get::Known,
    collections: collected::Collections,
    gets: get::Gets,
    collectives: collective::Collectives,
    groups: group::Groups,
    events: event::Events,
    streams: iof::Streams,
    monitors: monitor::Monitors,
    psets: pset::Psets,
    outer: &'static OuterSupport,
}

impl Server {
    pub fn new(config: ServerConfig) -> Server {
        let known = get::Known {
            describer: job_data::Describer::new(config.identity.clone(), config.topology.clone()),
            modex: modex::Modex::new(config.modex),
        };
        let tables = Tables {
            strangers: accept::Strangers::default(),
            host_attributes: attributes::HostAttributes::default(),
            known,
            collections: collected::Collections::default(),
            gets: get::Gets::default(),
            collectives: collective::Collectives::default(),
            groups: group::Groups::default(),
            events: event::Events::default(),
            streams: iof::Streams::default(),
            monitors: monitor::Monitors::default(),
            psets: pset::Psets::default(),
            outer: support::NOTHING,
        };
        Server {
            config,
            timers: timers::Timers::default(),
            peers: peers::Peers::default(),
            upcalls: host::Upcalls::new(query::FUNCTIONS),
            tables,
        }
    }

    /// Adds the attributes that the library around the server honours itself.
    pub fn within(mut self, outer: &'static OuterSupport) -> Server {
        self.tables.outer = outer;
        self
    }

    /// Admits the process that this server runs in.
    pub(crate) fn attach_own(&mut self, gid: u32, dialect: Dialect) {
        let (proc, uid) = (self.config.identity.clone(), self.config.owner_uid);
        self.peers.conns.insert(OWN, Peer::new(proc, uid, gid, PeerKind::Own, dialect, Time::default()));
    }

    /// Everything pending: gets, collectives, and requests to the host.
    pub fn explain(&self) -> Vec<Waiting> {
        self.tables.explain(&self.peers, &self.upcalls)
    }
}

impl Tables {
    fn explain(&self, peers: &peers::Peers, upcalls: &host::Upcalls) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        self.collectives.explain(peers, &mut waiting);
        self.gets.explain(&mut waiting);
        upcalls.explain(&mut waiting);
        waiting
    }
}

impl Machine for Server {
    type Call = ServerCall;
    type Return = ServerReturn;
    type Delivery = ();

    fn handle(&mut self, now: Time, input: Input<'_, ServerCall>, out: &mut Outbox<ServerReturn, ()>) {
        let Server { config, timers, peers, upcalls, tables } = self;
        let cx = &mut Cx { now, out, config, timers, peers, upcalls };
        while let Some(timer) = cx.timers.take_due(now) {
            tables.on_timer(cx, timer);
        }
        match input {
            Input::Opened { conn, peer } => tables.strangers.on_opened(cx, conn, peer),
            Input::Bytes { conn, data } => tables.on_bytes(cx, conn, data),
            Input::Writable { conn, queued } => tables.on_writable(cx, conn, queued),
            Input::Closed { conn, reason } => tables.on_closed(cx, conn, reason),
            Input::Call { id, call } => tables.on_call(cx, id, call),
            Input::Host { call, reply } => tables.on_host(cx, call, reply),
            Input::Looked { look, file } => tables.monitors.on_looked(cx, &mut tables.events, look, file),
            Input::Tick => {}
        }
        tables.refuse_dropped(cx);
        tables.give_up_overdue(cx);
        cx.answer_dropped();
    }

    fn deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    fn is_full(&self, conn: ConnId) -> bool {
        self.peers.conns.peer(conn).is_some_and(Peer::is_ahead)
    }
}
