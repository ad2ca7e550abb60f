//! The queue for one peer, in order, and how a lossy reader loses bytes.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::{Blob, Info, InfoList, ProcId, Value};

use crate::machine::CallId;
use crate::server::peer::Asker;

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Parcel>,
    /// Calls in the transport: where in the peer's byte stream each one ends, and how many of its bytes are held back.
    pub(super) flying: VecDeque<(u64, CallId, usize)>,
    /// Pieces that the reader has not reported as taken, by number.
    pub(super) untaken: BTreeMap<u64, Untaken>,
    pub(super) last_piece: u64,
}

#[derive(Debug)]
pub(super) struct Untaken {
    pub(super) pull: u64,
    /// The calls that complete when it is taken, and how many of their bytes are held.
    pub(super) calls: Vec<(CallId, usize)>,
}

#[derive(Debug)]
pub(super) enum Parcel {
    PullPiece(PullPiece),
    /// The output of this call is in front of this, except for the bytes that are held.
    Over {
        pull: u64,
        id: CallId,
        held: usize,
    },
    /// The answer to the end of a pull, after the pull's output.
    Farewell {
        to: Asker,
        pull: u64,
        status: Status,
    },
}

#[derive(Debug)]
pub(super) struct PullPiece {
    pub(super) pull: u64,
    pub(super) source: ProcId,
    pub(super) channel: IofChannel,
    pub(super) data: Blob,
    pub(super) info: Vec<Info>,
    /// Bytes of this stream that were lost right before it.
    pub(super) lost: u64,
    pub(super) delivery: Option<CallId>,
}

/// How a lossy reader loses bytes.
#[derive(Debug)]
pub(super) struct Drops {
    oldest: bool,
    /// Maximum bytes in the queue, per channel.
    size: usize,
    waiting: BTreeMap<IofChannel, usize>,
    /// Bytes lost since the last queued piece, by stream.
    lost: BTreeMap<(ProcId, IofChannel), u64>,
}

impl Drops {
    /// A reader opts in to losing bytes; the size alone drops nothing. The last level wins.
    pub(super) fn from_levels(levels: &[&[Info]]) -> Option<Drops> {
        let find = |key| levels.iter().rev().find_map(|level| level.find(key));
        let is_set = |key| find(key).is_some_and(Value::is_true);
        let (oldest, newest) = (is_set(keys::IOF_DROP_OLDEST), is_set(keys::IOF_DROP_NEWEST));
        let size = find(keys::IOF_CACHE_SIZE).and_then(Value::as_u64);
        (oldest || newest).then(|| Drops::new(oldest, size))
    }

    /// Queued bytes have gone to the transport.
    pub(super) fn left(&mut self, channel: IofChannel, bytes: usize) {
        if let Some(waiting) = self.waiting.get_mut(&channel) {
            *waiting = waiting.saturating_sub(cost(bytes));
        }
    }

    fn new(oldest: bool, size: Option<u64>) -> Drops {
        let size = size.map_or(DEFAULT_CACHE, |size| usize::try_from(size).unwrap_or(usize::MAX));
        Drops { oldest, size: size.min(MAX_CACHE), waiting: BTreeMap::new(), lost: BTreeMap::new() }
    }
}

impl Lane {
    pub(super) fn push_or_drop(&mut self, drops: &mut Drops, mut piece: PullPiece) {
        let (stream, bytes) = ((piece.source.clone(), piece.channel), piece.data.len());
        let size = drops.size;
        let waiting = drops.waiting.entry(piece.channel).or_default();
        if *waiting + cost(bytes) > size && drops.oldest {
            *waiting -=
                self.drop_oldest(&mut drops.lost, &piece, (*waiting + cost(bytes)).saturating_sub(size));
        }
        let room = size.saturating_sub(*waiting);
        // The end of a stream is never lost, nor is a piece at the front of the queue.
        if bytes > 0 && cost(bytes) > room && *waiting > 0 {
            *drops.lost.entry(stream).or_default() += bytes as u64;
            return;
        }
        *waiting += cost(bytes);
        piece.lost += drops.lost.remove(&stream).unwrap_or(0);
        self.queue.push_back(Parcel::PullPiece(piece));
    }

    /// Makes room by dropping queued pieces of the same pull and channel. Returns how much was freed.
    fn drop_oldest(
        &mut self,
        lost: &mut BTreeMap<(ProcId, IofChannel), u64>,
        new: &PullPiece,
        wanted: usize,
    ) -> usize {
        let (pull, channel) = (new.pull, new.channel);
        let mut freed = 0;
        self.queue.retain_mut(|parcel| {
            let Parcel::PullPiece(piece) = parcel else { return true };
            if piece.pull != pull || piece.channel != channel {
                return true;
            }
            let stream = (piece.source.clone(), channel);
            if freed < wanted && !piece.data.is_empty() {
                freed += cost(piece.data.len());
                *lost.entry(stream).or_default() += piece.lost + piece.data.len() as u64;
                return false;
            }
            // The next piece that stays carries the number of bytes lost before it.
            piece.lost += lost.remove(&stream).unwrap_or(0);
            true
        });
        freed
    }
}

/// The cost of a queued piece: at least that of its frame.
fn cost(bytes: usize) -> usize {
    bytes + PIECE_COST
}

const PIECE_COST: usize = 64;
/// Default and maximum queue sizes of a lossy reader.
const DEFAULT_CACHE: usize = 64 << 10;
const MAX_CACHE: usize = 4 << 20;
