//! Output on its way to one peer: in order, and no more of it in the transport than keeps it busy.
//!
//! A piece is shared by all who read it and ends, for the host, when the last reader's transport has taken it; so credit flows
//! back from the slowest of them. A reader of our own library says what its program has taken, and is waited for until then:
//! what it has not taken when it dies reached nobody. What it, or we for it, hold back for long (lines, and what is collected)
//! is not waited for: the host is told how much that is. Readers who allow it lose what finds no room instead, and learn how much
//! was lost where.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::{IofChannel, Status};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::iof::{DROPPED, Output as Forwarded, PIECE, Taken};
use phalanx_wire::frame::TAG_IOF;
use phalanx_wire::{Blob, Info, ProcId};

use super::super::peer::Asker;
use super::super::{Cx, Server, ServerReturn};
use super::{OutputTo, Pulled};
use crate::machine::{CallId, ConnId, Output};

#[derive(Debug, Default)]
pub(in crate::server) struct Lanes {
    by_conn: BTreeMap<ConnId, Lane>,
    /// Calls of the host that are answered when every reader's transport has taken the bytes.
    deliveries: BTreeMap<CallId, Delivery>,
}

#[derive(Debug)]
struct Delivery {
    waiting: usize,
    /// Somebody got it.
    reached: bool,
    /// The most that somebody holds back, if others do not get all of it.
    held: usize,
}

/// What has left one reader of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// All but so many of the last bytes of the stream up to there.
    AllBut(usize),
    Nothing,
}

#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<Parcel>,
    /// What the transport holds: up to which of the peer's bytes, whom that concerns, and what is held of it.
    flying: VecDeque<(u64, CallId, usize)>,
    /// What the reader has not said to have taken, by the numbers of the pieces.
    untaken: BTreeMap<u64, Untaken>,
    last_piece: u64,
}

#[derive(Debug)]
struct Untaken {
    pull: u64,
    /// The calls that are over when it has been taken, and what is held of them.
    calls: Vec<(CallId, usize)>,
}

#[derive(Debug)]
enum Parcel {
    Piece(Piece),
    /// What this call brought is before this, but for so many bytes that are held.
    Over {
        pull: u64,
        id: CallId,
        held: usize,
    },
    /// The end of a pull, said behind what the pull brought.
    Farewell {
        to: Asker,
        pull: u64,
        status: Status,
    },
}

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) pull: u64,
    pub(super) source: ProcId,
    pub(super) channel: IofChannel,
    pub(super) data: Blob,
    pub(super) info: Vec<Info>,
    /// Bytes of this stream that were lost right before.
    pub(super) lost: u64,
    pub(super) delivery: Option<CallId>,
}

/// How a reader that may lose bytes loses them.
#[derive(Debug)]
pub(super) struct Drops {
    oldest: bool,
    /// Bytes that may wait, per channel.
    size: usize,
    waiting: BTreeMap<IofChannel, usize>,
    /// Lost since the last piece that is on its way, by stream.
    lost: BTreeMap<(ProcId, IofChannel), u64>,
}

impl Drops {
    pub(super) fn new(oldest: bool, size: Option<u64>) -> Drops {
        let size = size.map_or(DEFAULT_CACHE, |size| usize::try_from(size).unwrap_or(usize::MAX));
        Drops { oldest, size: size.min(MAX_CACHE), waiting: BTreeMap::new(), lost: BTreeMap::new() }
    }
}

impl Server {
    /// The host has output of a process. The call is answered when it has left, or at once if nobody wants it.
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(in crate::server) fn on_output(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        to: &OutputTo,
        source: &ProcId,
        channel: IofChannel,
        data: &Blob,
        info: &[Info],
    ) {
        self.pull_for_forebear(to, source);
        let readers = self.streams.readers(to, source, channel);
        if readers.is_empty() {
            let result = ServerReturn::Done(Status::ERR_NOT_FOUND);
            return cx.out.push(Output::Return { id, result });
        }
        let waits = |pull: &&u64| self.streams.pulls.get(pull).is_some_and(|pulled| pulled.drops.is_none());
        // One more than there are, so that nothing ends before all have it.
        let waiting = readers.iter().filter(waits).count() + 1;
        let reached = waiting <= readers.len();
        self.streams.lanes.deliveries.insert(id, Delivery { waiting, reached, held: 0 });
        for pull in readers {
            if self.streams.pulls.get(&pull).is_some_and(|pulled| pulled.format.is_some()) {
                self.hand_to_dress(cx, (id, pull), (source, channel), data, info);
                continue;
            }
            let (source, data, info) = (source.clone(), data.clone(), info.to_vec());
            self.enter_piece(cx, Piece { pull, source, channel, data, info, lost: 0, delivery: Some(id) });
        }
        self.delivered(cx, id, Left::Nothing);
    }

    /// Queues a piece for its reader, or drops it, or others in its stead.
    pub(super) fn enter_piece(&mut self, cx: &mut Cx<'_>, mut piece: Piece) {
        let Some(pulled) = self.streams.pulls.get_mut(&piece.pull) else { return };
        let conn = pulled.conn;
        let lane = self.streams.lanes.by_conn.entry(conn).or_default();
        match &mut pulled.drops {
            None => lane.queue.push_back(Parcel::Piece(piece)),
            Some(drops) => {
                piece.delivery = None;
                lane.push_or_drop(drops, piece);
            }
        }
        self.pump(cx, conn);
    }

    /// Nobody waits longer for what these calls brought than for what is before this; so much of it is held.
    pub(super) fn enter_over(&mut self, cx: &mut Cx<'_>, pull: u64, calls: Vec<(CallId, usize)>) {
        let Some(pulled) = self.streams.pulls.get(&pull) else { return };
        let (conn, waits) = (pulled.conn, pulled.drops.is_none());
        if waits && !calls.is_empty() {
            let lane = self.streams.lanes.by_conn.entry(conn).or_default();
            lane.queue.extend(calls.into_iter().map(|(id, held)| Parcel::Over { pull, id, held }));
            self.pump(cx, conn);
        }
    }

    /// Answers the end of a pull behind what is on its way for it.
    pub(super) fn say_farewell(&mut self, cx: &mut Cx<'_>, to: &Asker, pull: u64, status: Status) {
        let lane = self.streams.lanes.by_conn.entry(to.conn).or_default();
        lane.queue.push_back(Parcel::Farewell { to: to.clone(), pull, status });
        self.pump(cx, to.conn);
    }

    /// Hands the transport as much as keeps it busy.
    fn pump(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        loop {
            let Some(peer) = self.conns.peer(conn).filter(|peer| peer.queued() < LANE_WINDOW) else { return };
            let (dialect, sent, is_sent) = (peer.dialect, peer.sent(), peer.queued() == 0);
            let Some(lane) = self.streams.lanes.by_conn.get_mut(&conn) else { return };
            let piece = match lane.queue.pop_front() {
                Some(Parcel::Piece(piece)) => piece,
                Some(Parcel::Over { pull, id, held }) => {
                    let tells = self.streams.pulls.get(&pull).is_some_and(|pulled| pulled.tells);
                    let last = lane.untaken.values_mut().rev().find(|piece| piece.pull == pull);
                    match last {
                        Some(last) => last.calls.push((id, held)),
                        None if tells || is_sent => self.delivered(cx, id, Left::AllBut(held)),
                        None => lane.flying.push_back((sent, id, held)),
                    }
                    continue;
                }
                Some(Parcel::Farewell { to, pull, status }) => {
                    self.streams.pulls.remove(&pull);
                    self.answer(cx, &to, status);
                    continue;
                }
                None => return,
            };
            let Piece { pull, source, channel, data, mut info, lost, delivery } = piece;
            let Some(pulled) = self.streams.pulls.get_mut(&pull) else {
                if let Some(id) = delivery {
                    self.delivered(cx, id, Left::Nothing);
                }
                continue;
            };
            if lost > 0 {
                info.push(Info::new(DROPPED, lost));
            }
            pulled.left(channel, data.len());
            let tells = pulled.tells && pulled.drops.is_none();
            if tells {
                lane.last_piece += 1;
                let calls = delivery.map(|id| (id, 0)).into_iter().collect();
                lane.untaken.insert(lane.last_piece, Untaken { pull, calls });
                info.push(Info::new(PIECE, lane.last_piece));
            }
            let forwarded = Forwarded { source, channel, handle: pulled.handle, info, data };
            self.send(cx, conn, TAG_IOF, &forwarded.encode(dialect));
            let by_transport = delivery.filter(|_| !tells);
            if let (Some(id), Some(peer)) = (by_transport, self.conns.peer(conn)) {
                let upto = peer.sent();
                if let Some(lane) = self.streams.lanes.by_conn.get_mut(&conn) {
                    lane.flying.push_back((upto, id, 0));
                }
            }
        }
    }

    /// The transport has room, or has at least taken something.
    pub(in crate::server) fn on_lane_moved(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let Some(peer) = self.conns.peer(conn) else { return };
        let left = peer.sent().saturating_sub(peer.queued() as u64);
        while let Some(lane) = self.streams.lanes.by_conn.get_mut(&conn)
            && let Some((_, id, held)) = lane.flying.pop_front_if(|(upto, ..)| *upto <= left)
        {
            self.delivered(cx, id, Left::AllBut(held));
        }
        self.pump(cx, conn);
    }

    /// A reader says what its program has taken.
    pub(in crate::server) fn on_taken(&mut self, cx: &mut Cx<'_>, conn: ConnId, taken: &Taken) {
        let Some(lane) = self.streams.lanes.by_conn.get_mut(&conn) else { return };
        let mut gone = BTreeMap::new();
        for (first, last) in taken.spans.iter().filter(|(first, last)| first <= last) {
            let pieces = lane.untaken.extract_if(*first..=*last, |_, _| true);
            gone.extend(pieces.map(|(number, piece)| (number, (piece, 0))));
        }
        for (number, held) in &taken.held {
            let held = usize::try_from(*held).unwrap_or(usize::MAX);
            gone.extend(lane.untaken.remove(number).map(|piece| (*number, (piece, held))));
        }
        for (piece, held_there) in gone.into_values() {
            for (id, held) in piece.calls {
                self.delivered(cx, id, Left::AllBut(held.max(held_there)));
            }
        }
    }

    /// The peer is gone: nobody waits for it.
    pub(super) fn drop_lane(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let Some(lane) = self.streams.lanes.by_conn.remove(&conn) else { return };
        let queued = lane.queue.into_iter().filter_map(|parcel| match parcel {
            Parcel::Piece(piece) => piece.delivery,
            Parcel::Over { id, .. } => Some(id),
            Parcel::Farewell { .. } => None,
        });
        let flying = lane.flying.into_iter().map(|(_, id, _)| id);
        let untaken = lane.untaken.into_values().flat_map(|piece| piece.calls).map(|(id, _)| id);
        let waiting: Vec<CallId> = flying.chain(untaken).chain(queued).collect();
        waiting.into_iter().for_each(|id| self.delivered(cx, id, Left::Nothing));
    }

    /// One reader less that the host has to wait for.
    pub(super) fn delivered(&mut self, cx: &mut Cx<'_>, id: CallId, left: Left) {
        let Some(delivery) = self.streams.lanes.deliveries.get_mut(&id) else { return };
        delivery.waiting -= 1;
        match left {
            Left::AllBut(0) => delivery.reached = true,
            Left::AllBut(held) => delivery.held = delivery.held.max(held),
            Left::Nothing => {}
        }
        if delivery.waiting == 0 {
            let result = match (delivery.reached, delivery.held) {
                (true, _) => ServerReturn::Done(Status::SUCCESS),
                (false, 0) => ServerReturn::Done(Status::ERR_NOT_FOUND),
                (false, held) => ServerReturn::Held(held),
            };
            self.streams.lanes.deliveries.remove(&id);
            cx.out.push(Output::Return { id, result });
        }
    }
}

impl Pulled {
    /// Whether somebody else is to get what it has not taken.
    pub(super) fn is_owed(&self) -> bool {
        self.instead && self.drops.is_none()
    }

    /// Bytes that waited have gone to the transport.
    fn left(&mut self, channel: IofChannel, bytes: usize) {
        if let Some(waiting) = self.drops.as_mut().and_then(|drops| drops.waiting.get_mut(&channel)) {
            *waiting = waiting.saturating_sub(cost(bytes));
        }
    }
}

impl Lane {
    fn push_or_drop(&mut self, drops: &mut Drops, mut piece: Piece) {
        let (stream, bytes) = ((piece.source.clone(), piece.channel), piece.data.len());
        let size = drops.size;
        let waiting = drops.waiting.entry(piece.channel).or_default();
        if *waiting + cost(bytes) > size && drops.oldest {
            *waiting -=
                self.drop_oldest(&mut drops.lost, &piece, (*waiting + cost(bytes)).saturating_sub(size));
        }
        let room = size.saturating_sub(*waiting);
        // The end of a stream is never lost, nor is a piece that nothing is in front of.
        if bytes > 0 && cost(bytes) > room && *waiting > 0 {
            *drops.lost.entry(stream).or_default() += bytes as u64;
            return;
        }
        *waiting += cost(bytes);
        piece.lost += drops.lost.remove(&stream).unwrap_or(0);
        self.queue.push_back(Parcel::Piece(piece));
    }

    /// Makes room among what waits of the same pull and channel. Returns how much.
    fn drop_oldest(
        &mut self,
        lost: &mut BTreeMap<(ProcId, IofChannel), u64>,
        new: &Piece,
        wanted: usize,
    ) -> usize {
        let (pull, channel) = (new.pull, new.channel);
        let mut freed = 0;
        self.queue.retain_mut(|parcel| {
            let Parcel::Piece(piece) = parcel else { return true };
            if piece.pull != pull || piece.channel != channel {
                return true;
            }
            let stream = (piece.source.clone(), channel);
            if freed < wanted && !piece.data.is_empty() {
                freed += cost(piece.data.len());
                *lost.entry(stream).or_default() += piece.lost + piece.data.len() as u64;
                return false;
            }
            // What stays says what was lost before it.
            piece.lost += lost.remove(&stream).unwrap_or(0);
            true
        });
        freed
    }
}

/// What a waiting piece costs: tiny ones are not cheaper than their frame.
fn cost(bytes: usize) -> usize {
    bytes + PIECE_COST
}

/// Bytes of output in one peer's transport: enough to keep it busy.
const LANE_WINDOW: usize = 128 << 10;
const PIECE_COST: usize = 64;
/// What waits for a reader that may lose bytes, unless it says how much.
const DEFAULT_CACHE: usize = 64 << 10;
const MAX_CACHE: usize = 4 << 20;
