//! All connections of one engine, by number, and its listener.
//!
//! A peer that does not read is not read from either, nor is one with messages that have to wait for others: this bounds
//! what a peer can make us hold. A connection that the machine closes may still deliver what was sent before, for a short
//! time; its input is ignored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use phalanx_core::{CloseReason, ConnId, PeerCred, Time};
use phalanx_wire::uri;

use super::bell::Bell;
use super::epoll::{BELL, Interest, Poller, Ready};
use phalanx_shell::Trust;
use phalanx_shell::listen::Listener;
use phalanx_shell::net::Link;

pub(super) struct Links {
    poller: Arc<Poller>,
    listener: Option<Listener>,
    /// Whether the poller watches the listener, and until when it does not.
    listens: bool,
    pause: Option<Time>,
    all: BTreeMap<ConnId, Entry>,
    last: u64,
    /// Connections with changed queues.
    touched: BTreeSet<ConnId>,
    /// Connections with messages that have to wait for others.
    held: BTreeSet<ConnId>,
    ended: VecDeque<(ConnId, CloseReason)>,
    trouble: Arc<Mutex<Option<io::Error>>>,
    /// The users whose servers are trusted.
    trust: Arc<Mutex<Trust>>,
}

struct Entry {
    link: Link,
    watched: Interest,
    /// The machine has closed it; its peer has until then to take what was sent.
    closing: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Interruption,
    Listener,
    Link(ConnId),
}

impl Token {
    pub(super) fn of(ready: &Ready) -> Token {
        match ready.token {
            BELL => Token::Interruption,
            LISTENER => Token::Listener,
            other => Token::Link(ConnId(other - FIRST_LINK)),
        }
    }
}

/// The result of a read.
pub(super) enum Arrival {
    Bytes(usize),
    /// Bytes on a connection that the machine has closed.
    Discarded,
    Nothing,
}

impl Links {
    pub(super) fn new(
        bell: Arc<Bell>,
        listener: Option<Listener>,
        trouble: Arc<Mutex<Option<io::Error>>>,
        trust: Arc<Mutex<Trust>>,
    ) -> io::Result<Links> {
        let poller = Poller::new(bell, Interest::NOTHING)?;
        for socket in listener.iter().flat_map(Listener::sockets) {
            poller.add(socket, LISTENER, Interest::READ)?;
        }
        Ok(Links {
            poller: Arc::new(poller),
            listens: listener.is_some(),
            listener,
            pause: None,
            all: BTreeMap::new(),
            last: 0,
            touched: BTreeSet::new(),
            held: BTreeSet::new(),
            ended: VecDeque::new(),
            trouble,
            trust,
        })
    }

    /// The poller of the links; a thread may wait on it while others use the links.
    pub(super) fn poller(&self) -> Arc<Poller> {
        self.poller.clone()
    }

    /// What is ready at this moment.
    pub(super) fn ready(&self) -> io::Result<Vec<Ready>> {
        self.poller.wait(Some(Duration::ZERO))
    }

    /// When `on_time` is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.all.values().filter_map(|entry| entry.closing).chain(self.pause).min()
    }

    pub(super) fn on_time(&mut self, now: Time) {
        let is_overdue = |entry: &Entry| entry.closing.is_some_and(|until| until <= now);
        let overdue: Vec<ConnId> =
            self.all.iter().filter(|(_, entry)| is_overdue(entry)).map(|(conn, _)| *conn).collect();
        overdue.into_iter().for_each(|conn| self.remove(conn));
        if self.pause.is_some_and(|until| until <= now) {
            self.pause = None;
        }
        self.watch_listener();
    }

    /// Starts to connect; `finish_connecting` or `next_ended` reports the outcome.
    pub(super) fn connect(&mut self, conn: ConnId, address: &str) {
        let parsed = uri::parse_address(address).map_err(io::Error::other);
        let link = parsed.and_then(|address| Link::connect(address, &self.trusted()));
        if let Err(error) = link.and_then(|link| self.insert(conn, link)) {
            self.note(error);
            self.ended.push_back((conn, CloseReason::Error));
        }
    }

    /// Whether the connection has just been established.
    pub(super) fn finish_connecting(&mut self, conn: ConnId) -> bool {
        let Some(entry) = self.all.get_mut(&conn) else { return false };
        match entry.link.finish_connecting() {
            Ok(false) => false,
            Ok(true) => self.is_trusted(conn),
            Err(error) => {
                self.lose(conn, error);
                false
            }
        }
    }

    /// Leaves an untrusted server before anything is sent.
    fn is_trusted(&mut self, conn: ConnId) -> bool {
        let trust = self.trusted();
        let Some(entry) = self.all.get_mut(&conn) else { return false };
        let checked = entry.link.server_owner().map(|owner| owner.map_or(Ok(()), |owner| trust.check(owner)));
        match checked {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => {
                self.note(error);
                self.end(conn, CloseReason::Foreign);
            }
            Err(error) => self.lose(conn, error),
        }
        false
    }

    fn trusted(&self) -> Trust {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Accepts the next connection, with the peer's identity from the kernel.
    pub(super) fn accept(&mut self, now: Time) -> Option<(ConnId, Option<PeerCred>)> {
        if self.all.len() >= MAX_CONNECTIONS {
            self.watch_listener();
            return None;
        }
        match self.listener.as_mut()?.accept() {
            Ok(None) => None,
            Ok(Some((socket, peer))) => {
                self.last += 1;
                let conn = ConnId(self.last);
                let inserted = self.insert(conn, Link::accepted(socket));
                inserted.map_err(|error| self.note(error)).ok().map(|()| (conn, peer))
            }
            // Out of descriptors or memory: the callers keep waiting, but we must not spin.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                self.pause = Some(now.after(ACCEPT_PAUSE));
                self.watch_listener();
                None
            }
        }
    }

    fn insert(&mut self, conn: ConnId, link: Link) -> io::Result<()> {
        let watched = interest(&link, false, false);
        self.poller.add(&link, token(conn), watched)?;
        self.all.insert(conn, Entry { link, watched, closing: None });
        Ok(())
    }

    pub(super) fn push(&mut self, conn: ConnId, frame: Vec<u8>) {
        if let Some(entry) = self.all.get_mut(&conn).filter(|entry| entry.closing.is_none()) {
            entry.link.push(frame);
            self.touched.insert(conn);
        }
    }

    /// Ends a connection when what was sent before has left, or its time limit is over.
    pub(super) fn close(&mut self, conn: ConnId, now: Time) {
        let Some(entry) = self.all.get_mut(&conn).filter(|entry| entry.closing.is_none()) else { return };
        entry.closing = Some(now.after(LINGER));
        self.touched.insert(conn);
        self.ended.push_back((conn, CloseReason::Local));
    }

    pub(super) fn touch(&mut self, conn: ConnId) {
        self.touched.insert(conn);
    }

    pub(super) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    pub(super) fn next_touched(&mut self) -> Option<ConnId> {
        self.touched.pop_first()
    }

    /// The next ended connection, to be reported to the machine.
    pub(super) fn next_ended(&mut self) -> Option<(ConnId, CloseReason)> {
        self.ended.pop_front()
    }

    /// Sends what there is room for. Returns how much still waits, unless the connection is closing.
    pub(super) fn flush(&mut self, conn: ConnId) -> Option<usize> {
        let entry = self.all.get_mut(&conn)?;
        let closing = entry.closing.is_some();
        let flushed = entry.link.flush().and_then(|()| {
            if closing && entry.link.queued() == 0 {
                entry.link.end_writing()?;
            }
            let interest = interest(&entry.link, closing, self.held.contains(&conn));
            if interest == std::mem::replace(&mut entry.watched, interest) {
                return Ok(());
            }
            self.poller.set(&entry.link, token(conn), interest)
        });
        let queued = entry.link.queued();
        match flushed {
            Err(error) => {
                self.lose(conn, error);
                None
            }
            Ok(()) => (!closing).then_some(queued),
        }
    }

    /// Stops reading from this connection for now.
    pub(super) fn hold(&mut self, conn: ConnId) {
        self.held.insert(conn);
        self.touched.insert(conn);
    }

    /// Reads again from connections that need not be held any longer.
    pub(super) fn read_again(&mut self, is_full: impl Fn(ConnId) -> bool) {
        self.touched.extend(self.held.extract_if(.., |conn| !is_full(*conn)));
    }

    pub(super) fn read(&mut self, conn: ConnId, buffer: &mut [u8]) -> Arrival {
        let Some(entry) = self.all.get_mut(&conn) else { return Arrival::Nothing };
        match entry.link.read(buffer) {
            Ok(None) => Arrival::Nothing,
            Ok(Some(0)) => {
                self.end(conn, CloseReason::Eof);
                Arrival::Nothing
            }
            Ok(Some(_)) if entry.closing.is_some() => Arrival::Discarded,
            Ok(Some(count)) => Arrival::Bytes(count),
            Err(error) => {
                self.lose(conn, error);
                Arrival::Nothing
            }
        }
    }

    fn lose(&mut self, conn: ConnId, error: io::Error) {
        self.note(error);
        self.end(conn, CloseReason::Error);
    }

    fn end(&mut self, conn: ConnId, reason: CloseReason) {
        if self.all.get(&conn).is_some_and(|entry| entry.closing.is_none()) {
            self.ended.push_back((conn, reason));
        }
        self.remove(conn);
    }

    fn remove(&mut self, conn: ConnId) {
        if let Some(entry) = self.all.remove(&conn) {
            // Closing the descriptor would do the same, unless a forked child still holds it.
            let _ = self.poller.remove(&entry.link);
        }
        self.touched.remove(&conn);
        self.held.remove(&conn);
        self.watch_listener();
    }

    /// Stops accepting while there is no room, or shortly after an accept has failed.
    fn watch_listener(&mut self) {
        let Some(listener) = &self.listener else { return };
        let listens = self.pause.is_none() && self.all.len() < MAX_CONNECTIONS;
        if listens != self.listens {
            let interest = if listens { Interest::READ } else { Interest::NOTHING };
            if listener.sockets().all(|socket| self.poller.set(socket, LISTENER, interest).is_ok()) {
                self.listens = listens;
            }
        }
    }

    fn note(&self, error: io::Error) {
        tracing::debug!(%error, "a connection");
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl Drop for Links {
    /// Sends what finds room: closing with unread input would reset the connection.
    fn drop(&mut self) {
        for entry in self.all.values_mut() {
            let _ = entry.link.flush().and_then(|()| entry.link.end_writing());
        }
    }
}

fn interest(link: &Link, closing: bool, held: bool) -> Interest {
    Interest { read: closing || !held && link.queued() <= HIGH_MARK, write: link.wants_to_write() }
}

fn token(conn: ConnId) -> u64 {
    conn.0.wrapping_add(FIRST_LINK)
}

const LISTENER: u64 = 1;
const FIRST_LINK: u64 = 2;
/// A connection with more unsent bytes than this is not read from.
const HIGH_MARK: usize = 1 << 20;
/// How long a closed connection waits for its peer to take the last bytes.
const LINGER: Duration = Duration::from_secs(2);
/// Beside the ranks of the largest nodes, room for as many silent ones: the server closes those in time.
const MAX_CONNECTIONS: usize = 8192;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
