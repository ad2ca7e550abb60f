//! The peers that passed the handshake, and everything that is sent to them.
//!
//! Sending never fails here. While much waits for a peer to read it, its requests are not looked at, and its gets are not
//! answered: it gets everything as fast as it reads. A peer that does not read what it has not asked for is marked, and given up
//! at the end of the turn ([`Server::give_up_overdue`]), so that no verb has to expect its tables to change while it
//! answers.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::{Body, InfoReply, StatusReply};
use phalanx_wire::codec::Dialect;
use phalanx_wire::frame::{FIRST_REQUEST_TAG, FrameReader, encode_frame};
use phalanx_wire::{Info, Nspace, ProcId};
use tracing::warn;

use super::accept::Shaking;
use super::get::Sweep;
use super::limits::{FULL_PUSHES, FULL_QUEUE, MAX_QUEUED, MAX_TOLD, SHORT_ANSWER};
use super::{Cx, Server};
use crate::machine::{CloseReason, ConnId, Output, Time};

/// A connection, from its first byte to its last.
#[derive(Debug)]
pub(super) enum Conn {
    Shaking(Box<Shaking>),
    Up(Box<Peer>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Tool,
    /// The process that this server runs in.
    Own,
}

/// A client or tool whose identity is known.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) proc: ProcId,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) role: Role,
    pub(super) dialect: Dialect,
    /// When it was let in.
    pub(super) since: Time,
    pub(super) reader: FrameReader,
    /// Requests that have not been answered.
    pub(super) requests: usize,
    pub(super) finalized: bool,
    /// Other jobs whose job data it has.
    pub(super) told: BTreeSet<Nspace>,
    /// It is a client of ours that looks into files for what fences have collected.
    pub(super) reads_files: bool,
    /// Whether it asks for one rank after the other.
    pub(super) sweep: Sweep,
    /// How new the values of each process are that it was told, see [`super::commit::Values::since`].
    told_values: BTreeMap<ProcId, u64>,
    /// Bytes of standard input that it has pushed and that nobody has taken yet.
    pub(super) pushed: usize,
    /// Bytes that the transport holds for it, as far as we know.
    queued: usize,
    /// At most so many of them it did not ask for.
    unasked: usize,
    /// Bytes that were ever given to the transport.
    sent: u64,
}

/// Who asked, and where the answer goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asker {
    pub(super) conn: ConnId,
    pub(super) tag: u32,
    pub(super) proc: ProcId,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    all: BTreeMap<ConnId, Conn>,
    overdue: Vec<ConnId>,
}

impl Asker {
    /// What the host is told of whoever asks, as the standard wants it with every request.
    pub(super) fn identity(&self) -> [Info; 2] {
        [Info::new(keys::USERID, self.uid), Info::new(keys::GRPID, self.gid)]
    }
}

impl Peer {
    pub(super) fn new(proc: ProcId, uid: u32, gid: u32, role: Role, dialect: Dialect, now: Time) -> Peer {
        Peer {
            proc,
            uid,
            gid,
            role,
            dialect,
            since: now,
            reader: FrameReader::default(),
            requests: 0,
            finalized: false,
            told: BTreeSet::new(),
            reads_files: false,
            sweep: Sweep::default(),
            told_values: BTreeMap::new(),
            pushed: 0,
            queued: 0,
            unasked: 0,
            sent: 0,
        }
    }
}

impl Peer {
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// Bytes of a message that has not arrived whole.
    pub(super) fn incomplete(&self) -> usize {
        self.reader.waiting()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether it has to read before it is told more of what it wants.
    pub(super) fn is_full(&self) -> bool {
        self.queued > FULL_QUEUE
    }

    fn unasked(&self) -> usize {
        self.unasked
    }

    /// Whether what it sends next has to wait for those who read what it has pushed.
    pub(super) fn is_ahead(&self) -> bool {
        self.pushed > FULL_PUSHES
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Up to which change of its values it was told everything of this process.
    pub(super) fn told_of(&self, proc: &ProcId) -> Option<u64> {
        self.told_values.get(proc).copied()
    }

    pub(super) fn note_told(&mut self, proc: &ProcId, upto: u64) {
        if self.told_values.len() >= MAX_TOLD && !self.told_values.contains_key(proc) {
            self.told_values.clear();
        }
        self.told_values.insert(proc.clone(), upto);
    }
}

impl Connections {
    pub(super) fn get(&self, conn: ConnId) -> Option<&Conn> {
        self.all.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Conn> {
        self.all.get_mut(&conn)
    }

    pub(super) fn insert(&mut self, conn: ConnId, state: Conn) {
        self.all.insert(conn, state);
    }

    pub(super) fn remove(&mut self, conn: ConnId) -> Option<Conn> {
        self.all.remove(&conn)
    }

    pub(super) fn peer(&self, conn: ConnId) -> Option<&Peer> {
        match self.all.get(&conn) {
            Some(Conn::Up(peer)) => Some(peer),
            _ => None,
        }
    }

    pub(super) fn peer_mut(&mut self, conn: ConnId) -> Option<&mut Peer> {
        match self.all.get_mut(&conn) {
            Some(Conn::Up(peer)) => Some(peer),
            _ => None,
        }
    }

    /// A process begins anew: nobody was told anything of it.
    pub(super) fn forget_told_of(&mut self, proc: &ProcId) {
        for state in self.all.values_mut() {
            if let Conn::Up(peer) = state {
                peer.told_values.remove(proc);
            }
        }
    }

    pub(super) fn were_told_of(&self, nspace: &Nspace) -> bool {
        let is_told = |peer: &Peer| {
            peer.told.contains(nspace) || peer.told_values.keys().any(|proc| proc.nspace == *nspace)
        };
        self.peers().any(|(_, peer)| is_told(peer))
    }

    /// A job is over.
    pub(super) fn forget_told_in(&mut self, nspace: &Nspace) {
        for state in self.all.values_mut() {
            if let Conn::Up(peer) = state {
                peer.told.remove(nspace);
                peer.told_values.retain(|proc, _| proc.nspace != *nspace);
            }
        }
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = (ConnId, &Peer)> {
        self.all.iter().filter_map(|(conn, state)| match state {
            Conn::Up(peer) => Some((*conn, &**peer)),
            Conn::Shaking(_) => None,
        })
    }

    /// Those that have introduced themselves as this process and are not let in yet.
    pub(super) fn awaiting(&self, proc: &ProcId) -> impl Iterator<Item = (ConnId, &Shaking)> {
        self.all.iter().filter_map(move |(conn, state)| match state {
            Conn::Shaking(shaking) if shaking.awaits(proc) => Some((*conn, &**shaking)),
            Conn::Shaking(_) | Conn::Up(_) => None,
        })
    }

    /// Those that have not introduced themselves.
    pub(super) fn strangers(&self) -> impl Iterator<Item = (ConnId, &Shaking)> {
        self.all.iter().filter_map(|(conn, state)| match state {
            Conn::Shaking(shaking) if shaking.is_stranger() => Some((*conn, &**shaking)),
            Conn::Shaking(_) | Conn::Up(_) => None,
        })
    }
}

impl Server {
    /// Answers a request, unless its asker has gone.
    pub(super) fn reply(&mut self, cx: &mut Cx<'_>, to: &Asker, encode: impl FnOnce(Dialect) -> Vec<u8>) {
        let Some(peer) = self.conns.peer_mut(to.conn) else { return };
        peer.requests = peer.requests.saturating_sub(1);
        let dialect = peer.dialect;
        let mut payload = encode(dialect);
        if payload.len() > SHORT_ANSWER && self.together(to.conn, MAX_QUEUED, Peer::queued) > MAX_QUEUED {
            warn!(proc = %to.proc, limit = MAX_QUEUED, "peer reads slowly: an answer is left out");
            payload = StatusReply(Status::ERR_OUT_OF_RESOURCE).encode(dialect);
        }
        self.send(cx, to.conn, to.tag, &payload);
    }

    pub(super) fn answer(&mut self, cx: &mut Cx<'_>, to: &Asker, status: Status) {
        self.reply(cx, to, |dialect| StatusReply(on_wire(status)).encode(dialect));
    }

    pub(super) fn answer_infos(&mut self, cx: &mut Cx<'_>, to: &Asker, status: Status, info: Vec<Info>) {
        self.reply(cx, to, |dialect| InfoReply { status: on_wire(status), info }.encode(dialect));
    }

    /// Sends a message that nobody asked for, or the bytes of an answer.
    pub(super) fn send(&mut self, cx: &mut Cx<'_>, conn: ConnId, tag: u32, payload: &[u8]) {
        let is_unasked = tag < FIRST_REQUEST_TAG;
        if is_unasked && self.together(conn, MAX_QUEUED, Peer::unasked) > MAX_QUEUED {
            self.conns.overdue.push(conn);
            return;
        }
        let Some(peer) = self.conns.peer_mut(conn) else { return };
        let frame = encode_frame(SERVER_INDEX, tag, payload);
        peer.unasked += if is_unasked { frame.len() } else { 0 };
        peer.queued += frame.len();
        peer.sent += frame.len() as u64;
        cx.out.push(Output::Send { conn, frame });
    }

    pub(super) fn on_writable(&mut self, cx: &mut Cx<'_>, conn: ConnId, queued: usize) {
        if let Some(peer) = self.conns.peer_mut(conn) {
            peer.queued = queued;
            peer.unasked = peer.unasked.min(queued);
            self.on_lane_moved(cx, conn);
            self.go_on_with_gets(cx, conn);
            self.read_frames(cx, conn);
        }
    }

    /// Closes the connections of peers that have let too many bytes wait.
    pub(super) fn give_up_overdue(&mut self, cx: &mut Cx<'_>) {
        while let Some(conn) = self.conns.overdue.pop() {
            if let Some(peer) = self.conns.peer(conn) {
                warn!(proc = %peer.proc, queued = peer.unasked, limit = MAX_QUEUED, "peer does not read: closing its connection");
                self.drop_connection(cx, conn);
            }
        }
    }

    /// Closes a connection from our side, with all that follows for its peer.
    pub(super) fn drop_connection(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        cx.out.push(Output::Close { conn });
        self.on_closed(cx, conn, CloseReason::Local);
    }
}

/// "Already done" is a matter between a host and its library: clients know only success.
fn on_wire(status: Status) -> Status {
    if status == Status::OPERATION_SUCCEEDED { Status::SUCCESS } else { status }
}

/// Stands in the header of what a server sends; nobody looks at it.
const SERVER_INDEX: u32 = 0;
