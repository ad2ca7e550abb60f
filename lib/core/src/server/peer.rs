//! The peers that completed the handshake.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::keys;
use phalanx_wire::codec::Dialect;
use phalanx_wire::frame::{DEFAULT_LIMIT, Frame, FrameReader, FrameTooLong};
use phalanx_wire::{Info, Nspace, ProcId};

use super::limits::{FULL_PUSHES, FULL_QUEUE, LONGEST_TO_RELEASE_6, MAX_TOLD};
use super::sweep::Sweep;
use crate::machine::{ConnId, Time};
use crate::right::{Right, Rights};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerKind {
    Client,
    Tool,
    /// The process that this server runs in.
    Own,
}

/// A client or tool whose identity is known.
#[derive(Debug)]
pub(super) struct Peer {
    proc: ProcId,
    uid: u32,
    gid: u32,
    role: PeerKind,
    dialect: Dialect,
    /// When it was admitted.
    since: Time,
    reader: FrameReader,
    /// Unanswered requests.
    requests: usize,
    finalized: bool,
    /// Other jobs that it has the data of.
    told: BTreeSet<Nspace>,
    /// It is one of our clients, which reads collected data from files.
    reads_files: bool,
    /// Whether it asks for one rank after the other.
    sweep: Sweep,
    /// Up to which change it has the values of each process, see [`super::values::Values::since`].
    told_values: BTreeMap<ProcId, u64>,
    /// Bytes of standard input that it pushed and no reader has taken yet.
    pushed: usize,
    /// Bytes in its transport's queue, as far as we know.
    queued: usize,
    /// Upper bound of the unsolicited bytes among them.
    unasked: usize,
    /// Total bytes given to the transport.
    sent: u64,
}

/// Where the answer to a request goes: the connection, and the request's tag.
pub(super) type Address = (ConnId, u32);

/// The asker of a request, with the right to answer it: it cannot be copied, and giving the answer uses it up.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) conn: ConnId,
    pub(super) proc: ProcId,
    pub(super) uid: u32,
    pub(super) gid: u32,
    right: Right<Address>,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    all: BTreeMap<ConnId, Box<Peer>>,
    overdue: Vec<ConnId>,
    rights: Rights<Address>,
}

impl Asker {
    /// Where the answer goes, to give it now.
    pub(super) fn into_address(self) -> Address {
        self.right.use_up()
    }

    /// Gives no answer: the peer has finalized or is gone, and has ended its calls itself.
    pub(super) fn forget(self) {
        self.right.use_up();
    }

    pub(super) fn tag(&self) -> u32 {
        self.right.to().1
    }

    /// The asker's identity, which the standard wants in every request to the host.
    pub(super) fn identity(&self) -> [Info; 2] {
        [Info::new(keys::USERID, self.uid), Info::new(keys::GRPID, self.gid)]
    }
}

impl Peer {
    pub(super) fn new(proc: ProcId, uid: u32, gid: u32, role: PeerKind, dialect: Dialect, now: Time) -> Peer {
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

    pub(super) fn proc(&self) -> &ProcId {
        &self.proc
    }

    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    pub(super) fn role(&self) -> PeerKind {
        self.role
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Maximum message size in bytes. Above it the peer would close the connection.
    pub(super) fn longest_message(&self) -> usize {
        if self.dialect.release.major >= 6 { LONGEST_TO_RELEASE_6 } else { DEFAULT_LIMIT }
    }

    /// When it was admitted.
    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// Whether it reads collected data from files, as our clients do.
    pub(super) fn reads_files(&self) -> bool {
        self.reads_files
    }

    pub(super) fn set_reads_files(&mut self, reads_files: bool) {
        self.reads_files = reads_files;
    }

    pub(super) fn feed(&mut self, data: &[u8]) {
        self.reader.feed(data);
    }

    /// The next complete message.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, FrameTooLong> {
        self.reader.next_frame()
    }

    pub(super) fn has_finalized(&self) -> bool {
        self.finalized
    }

    pub(super) fn finalize(&mut self) {
        self.finalized = true;
    }

    pub(super) fn note_answer(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }

    pub(super) fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    pub(super) fn note_sweep(&mut self, width: u32, next: u32) {
        self.sweep.answered(width, next);
    }

    /// The peer asked for something else.
    pub(super) fn end_sweep(&mut self) {
        self.sweep = Sweep::default();
    }

    /// Whether it has the data of another job.
    pub(super) fn was_told_of_job(&self, nspace: &Nspace) -> bool {
        self.told.contains(nspace)
    }

    pub(super) fn note_jobs_told(&mut self, jobs: impl IntoIterator<Item = Nspace>) {
        self.told.extend(jobs);
    }

    /// It pushed standard input that no reader has taken yet.
    pub(super) fn note_pushed(&mut self, bytes: usize) {
        self.pushed += bytes;
    }

    pub(super) fn note_push_taken(&mut self, bytes: usize) {
        self.pushed = self.pushed.saturating_sub(bytes);
    }

    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    /// Bytes of an incomplete message.
    pub(super) fn incomplete(&self) -> usize {
        self.reader.waiting()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Whether it must read before it gets more answers to its gets.
    pub(super) fn is_full(&self) -> bool {
        self.queued > FULL_QUEUE
    }

    pub(super) fn unasked(&self) -> usize {
        self.unasked
    }

    /// A message is handed to its transport.
    pub(super) fn note_sent(&mut self, bytes: usize, is_unasked: bool) {
        self.unasked += if is_unasked { bytes } else { 0 };
        self.queued += bytes;
        self.sent += bytes as u64;
    }

    /// Its transport now holds this many bytes.
    pub(super) fn note_queued(&mut self, queued: usize) {
        self.queued = queued;
        self.unasked = self.unasked.min(queued);
    }

    /// Whether its next requests must wait until readers have taken the input that it pushed.
    pub(super) fn is_ahead(&self) -> bool {
        self.pushed > FULL_PUSHES
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The last change of this process's values that it has received.
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
    pub(super) fn insert(&mut self, conn: ConnId, peer: Peer) {
        self.all.insert(conn, Box::new(peer));
    }

    pub(super) fn remove(&mut self, conn: ConnId) -> Option<Box<Peer>> {
        self.all.remove(&conn)
    }

    pub(super) fn peer(&self, conn: ConnId) -> Option<&Peer> {
        self.all.get(&conn).map(|peer| &**peer)
    }

    pub(super) fn peer_mut(&mut self, conn: ConnId) -> Option<&mut Peer> {
        self.all.get_mut(&conn).map(|peer| &mut **peer)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = (ConnId, &Peer)> {
        self.all.iter().map(|(conn, peer)| (*conn, &**peer))
    }

    /// A peer has sent a request.
    pub(super) fn begin_request(&mut self, conn: ConnId, tag: u32) -> Option<(Asker, &mut Peer)> {
        let peer = self.all.get_mut(&conn)?;
        peer.requests += 1;
        let right = self.rights.make((conn, tag));
        let asker = Asker { conn, proc: peer.proc.clone(), uid: peer.uid, gid: peer.gid, right };
        Some((asker, peer))
    }

    /// The next request of a connected peer with a right to its answer that was dropped unused.
    pub(super) fn next_unanswered(&self) -> Option<Address> {
        std::iter::from_fn(|| self.rights.next_dropped()).find(|(conn, _)| self.all.contains_key(conn))
    }

    /// A peer does not read its unsolicited messages.
    pub(super) fn note_overdue(&mut self, conn: ConnId) {
        self.overdue.push(conn);
    }

    /// The next of these peers, to be closed.
    pub(super) fn take_overdue(&mut self) -> Option<ConnId> {
        self.overdue.pop()
    }

    /// A process is restarted: no peer has any of its values.
    pub(super) fn forget_told_of(&mut self, proc: &ProcId) {
        for peer in self.all.values_mut() {
            peer.told_values.remove(proc);
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
        for peer in self.all.values_mut() {
            peer.told.remove(nspace);
            peer.told_values.retain(|proc, _| proc.nspace != *nspace);
        }
    }
}
