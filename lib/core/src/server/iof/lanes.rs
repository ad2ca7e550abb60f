//! Output on its way to one peer: in order, with no more of it in the transport than keeps it busy.
//!
//! All readers of a piece share it. For the host it is delivered when the last reader's transport has taken it; so credit flows
//! back from the slowest reader. A reader of our own library reports what its program has taken, and is waited for until then: if
//! it dies, output that it had not taken reached no program. Bytes that it holds back for long, or that we hold back for it
//! (partial lines and buffered output), are not waited for: the host gets their number. Readers that allow it lose what finds no
//! room instead, and learn how much was lost where.

use std::collections::BTreeMap;

use phalanx_spec::Status;
use phalanx_wire::Info;
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::iof::{DROPPED, Output as Forwarded, PIECE, Taken};
use phalanx_wire::frame::TAG_IOF;

use super::lane::{Lane, Parcel, PullPiece, Untaken};
use super::pulls::Pulls;
use crate::machine::{CallId, ConnId};
use crate::server::call::ServerReturn;
use crate::server::peer::Asker;
use crate::server::turn::Cx;

#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_conn: BTreeMap<ConnId, Lane>,
    /// Calls of the host that are answered when every reader's transport has taken the bytes.
    deliveries: BTreeMap<CallId, Delivery>,
}

#[derive(Debug)]
struct Delivery {
    waiting: usize,
    /// A reader got all of it.
    reached: bool,
    /// The most that a reader holds back, in case no other reader gets all of it.
    held: usize,
}

/// What one reader got of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// All but this many of the last bytes of the stream up to there.
    AllBut(usize),
    Nothing,
}

impl Lanes {
    /// Registers a call of the host that waits for this many readers.
    pub(super) fn begin(&mut self, id: CallId, waiting: usize, reached: bool) {
        self.deliveries.insert(id, Delivery { waiting, reached, held: 0 });
    }

    /// Queues a piece for its reader, or drops it or older ones.
    pub(super) fn enter_piece(&mut self, cx: &mut Cx<'_>, pulls: &mut Pulls, mut piece: PullPiece) {
        let Some(pulled) = pulls.get_mut(&piece.pull) else { return };
        let conn = pulled.conn;
        let lane = self.by_conn.entry(conn).or_default();
        match &mut pulled.drops {
            None => lane.queue.push_back(Parcel::PullPiece(piece)),
            Some(drops) => {
                piece.delivery = None;
                lane.push_or_drop(drops, piece);
            }
        }
        self.pump(cx, pulls, conn);
    }

    /// Marks the end of these calls' output in the queue: nothing but what is in front of it is waited for. Each has its
    /// number of held bytes.
    pub(super) fn enter_over(
        &mut self,
        cx: &mut Cx<'_>,
        pulls: &mut Pulls,
        pull: u64,
        calls: Vec<(CallId, usize)>,
    ) {
        let Some(pulled) = pulls.get(&pull) else { return };
        let (conn, waits) = (pulled.conn, pulled.drops.is_none());
        if waits && !calls.is_empty() {
            let lane = self.by_conn.entry(conn).or_default();
            lane.queue.extend(calls.into_iter().map(|(id, held)| Parcel::Over { pull, id, held }));
            self.pump(cx, pulls, conn);
        }
    }

    /// Answers the end of a pull after the pull's queued output.
    pub(super) fn say_farewell(
        &mut self,
        cx: &mut Cx<'_>,
        pulls: &mut Pulls,
        to: Asker,
        pull: u64,
        status: Status,
    ) {
        let conn = to.conn;
        // The reader has gone while the host ended its pull.
        if cx.peers.conns.peer(conn).is_none() {
            return;
        }
        let lane = self.by_conn.entry(conn).or_default();
        lane.queue.push_back(Parcel::Farewell { to, pull, status });
        self.pump(cx, pulls, conn);
    }

    /// Gives the transport enough to keep it busy.
    fn pump(&mut self, cx: &mut Cx<'_>, pulls: &mut Pulls, conn: ConnId) {
        loop {
            let Some(peer) = cx.peers.conns.peer(conn).filter(|peer| peer.queued() < LANE_WINDOW) else {
                return;
            };
            let (dialect, sent, is_sent) = (peer.dialect(), peer.sent(), peer.queued() == 0);
            let Some(lane) = self.by_conn.get_mut(&conn) else { return };
            let piece = match lane.queue.pop_front() {
                Some(Parcel::PullPiece(piece)) => piece,
                Some(Parcel::Over { pull, id, held }) => {
                    let tells = pulls.get(&pull).is_some_and(|pulled| pulled.tells);
                    let last = lane.untaken.values_mut().rev().find(|piece| piece.pull == pull);
                    match last {
                        Some(last) => last.calls.push((id, held)),
                        None if tells || is_sent => self.delivered(cx, id, Left::AllBut(held)),
                        None => lane.flying.push_back((sent, id, held)),
                    }
                    continue;
                }
                Some(Parcel::Farewell { to, pull, status }) => {
                    pulls.remove(&pull);
                    cx.answer(to, status);
                    continue;
                }
                None => return,
            };
            let PullPiece { pull, source, channel, data, mut info, lost, delivery } = piece;
            let Some(pulled) = pulls.get_mut(&pull) else {
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
            cx.send(conn, TAG_IOF, &forwarded.encode(dialect));
            let by_transport = delivery.filter(|_| !tells);
            if let (Some(id), Some(peer)) = (by_transport, cx.peers.conns.peer(conn)) {
                let upto = peer.sent();
                if let Some(lane) = self.by_conn.get_mut(&conn) {
                    lane.flying.push_back((upto, id, 0));
                }
            }
        }
    }

    /// The transport has room, or has at least taken something.
    pub(super) fn on_moved(&mut self, cx: &mut Cx<'_>, pulls: &mut Pulls, conn: ConnId) {
        let Some(peer) = cx.peers.conns.peer(conn) else { return };
        let left = peer.sent().saturating_sub(peer.queued() as u64);
        while let Some(lane) = self.by_conn.get_mut(&conn)
            && let Some((_, id, held)) = lane.flying.pop_front_if(|(upto, ..)| *upto <= left)
        {
            self.delivered(cx, id, Left::AllBut(held));
        }
        self.pump(cx, pulls, conn);
    }

    /// A reader reports what its program has taken.
    pub(super) fn on_taken(&mut self, cx: &mut Cx<'_>, conn: ConnId, taken: &Taken) {
        let Some(lane) = self.by_conn.get_mut(&conn) else { return };
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

    /// The peer is gone: releases the calls that wait for it.
    pub(super) fn drop_of(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let Some(lane) = self.by_conn.remove(&conn) else { return };
        let queued = lane.queue.into_iter().filter_map(|parcel| match parcel {
            Parcel::PullPiece(piece) => piece.delivery,
            Parcel::Over { id, .. } => Some(id),
            Parcel::Farewell { to, .. } => {
                to.forget();
                None
            }
        });
        let flying = lane.flying.into_iter().map(|(_, id, _)| id);
        let untaken = lane.untaken.into_values().flat_map(|piece| piece.calls).map(|(id, _)| id);
        let waiting: Vec<CallId> = flying.chain(untaken).chain(queued).collect();
        waiting.into_iter().for_each(|id| self.delivered(cx, id, Left::Nothing));
    }

    /// Records that one reader of a call is done.
    pub(super) fn delivered(&mut self, cx: &mut Cx<'_>, id: CallId, left: Left) {
        let Some(delivery) = self.deliveries.get_mut(&id) else { return };
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
            self.deliveries.remove(&id);
            cx.give(id, result);
        }
    }
}

/// Bytes of output in one peer's transport: enough to keep it busy.
const LANE_WINDOW: usize = 128 << 10;
