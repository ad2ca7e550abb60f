//! A reader of output at a daemon's server, and the chunks and pieces that it has not taken.

use std::collections::{BTreeMap, VecDeque};

use phalanx_core::Time;
use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

use crate::id::Landing;
use crate::msg::{TapName, charge};
use crate::root::answer::Answer;
use crate::root::iof::piece::TapPiece;
use crate::root::iof::retained::Retained;

/// A chunk that a reader has not taken yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) landing: Landing,
    pub(super) proc: ProcId,
    pub(super) bytes: usize,
    pub(super) since: Time,
    pub(super) readers: usize,
    /// How many of the readers get it instead of the user, and whether one of those has taken it.
    pub(super) instead: usize,
    pub(super) replaced: bool,
    /// The end of a stream, reported to the user once the readers that redirected the stream have taken it.
    pub(super) end: Option<(ProcId, IofChannel)>,
}

/// A reader at a daemon's server.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) sources: Vec<ProcId>,
    pub(super) channels: IofChannel,
    /// The user gets the output, too.
    pub(super) copy: bool,
    /// The reader learns where the processes are.
    pub(super) names_places: bool,
    /// Output may be sent to it.
    pub(super) ready: bool,
    /// Set when it gets nothing new: the request to answer once the rest has been taken.
    pub(super) stopping: Option<Answer>,
    /// Its reader is alive and gets what is held for it.
    pub(super) ends_well: bool,
    pub(super) queue: VecDeque<TapPiece>,
    pub(super) flying: BTreeMap<u64, TapPiece>,
    pub(super) flying_cost: usize,
    pub(super) last: u64,
    /// Bytes that block no writer; if the reader dies, they go to the user.
    pub(super) held: Retained,
    /// Missing bytes to report with the next piece of a stream.
    pub(super) lost: BTreeMap<(ProcId, IofChannel), u64>,
}

impl Tap {
    pub(super) fn new(sources: Vec<ProcId>, channels: IofChannel, copy: bool) -> Tap {
        Tap {
            sources,
            channels,
            copy,
            names_places: false,
            ready: true,
            stopping: None,
            ends_well: false,
            queue: VecDeque::new(),
            flying: BTreeMap::new(),
            flying_cost: 0,
            last: 0,
            held: Retained::default(),
            lost: BTreeMap::new(),
        }
    }

    /// A channel that the spawn did not forward cannot be pulled; the tap of the job's spawner gets it all the same.
    pub(super) fn is_to_get(
        &self,
        name: &TapName,
        proc: &ProcId,
        channel: IofChannel,
        forwarded: bool,
    ) -> bool {
        (forwarded || matches!(name, TapName::Parent(..)))
            && self.stopping.is_none()
            && self.channels.intersects(channel)
            && self.sources.iter().any(|source| source.covers(proc))
    }

    pub(super) fn push(&mut self, mut piece: TapPiece) {
        if !self.lost.is_empty() && piece.number.is_some() {
            piece.lost += self.lost.remove(&(piece.proc.clone(), piece.channel)).unwrap_or(0);
        }
        self.queue.push_back(piece);
    }

    /// The cost of queued pieces that hold up no chunk.
    pub(super) fn unawaited(&self) -> usize {
        let unawaited = self.queue.iter().filter(|piece| piece.number.is_none());
        unawaited.map(|piece| charge(piece.data.len())).sum()
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.flying.is_empty()
    }
}

/// What can be pulled.
pub(in crate::root) const OUTPUTS: IofChannel =
    IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0 | IofChannel::STDDIAG.0);
