//! Output of a job since its start, as far as it is kept for readers that come later.
//!
//! Each channel keeps a bounded number of bytes: the first or the last ones. What does not fit is counted, so that a reader
//! learns where something is missing, and how much.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use phalanx_spec::{IofChannel, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::root::iof::piece::TapPiece;

/// How much of each channel is kept, and which part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::root) struct CachePlan {
    size: usize,
    oldest_goes: bool,
}

#[derive(Debug, Default)]
pub(in crate::root) struct Cache {
    plan: CachePlan,
    channels: BTreeMap<IofChannel, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    pieces: VecDeque<(ProcId, Arc<[u8]>)>,
    cost: usize,
    /// Bytes of each process that are missing: before its first piece if the oldest go, else behind its last.
    lost: BTreeMap<ProcId, u64>,
    /// Processes with ended streams; kept even where bytes are not.
    ended: Vec<ProcId>,
}

/// The kept output for one reader, and the bytes missing right after it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) pieces: Vec<TapPiece>,
    pub(super) lost: BTreeMap<(ProcId, IofChannel), u64>,
}

impl CachePlan {
    /// From the directives of a spawn; `default` is the size if they give none.
    pub(in crate::root) fn new(directives: &[Info], default: usize) -> CachePlan {
        let size = directives.find(keys::IOF_CACHE_SIZE).and_then(Value::as_u64);
        let size = size.map_or(default, |size| usize::try_from(size).unwrap_or(usize::MAX));
        CachePlan { size: size.min(MOST_PER_CHANNEL), oldest_goes: directives.is_set(keys::IOF_DROP_OLDEST) }
    }
}

impl Cache {
    pub(in crate::root) fn new(plan: CachePlan) -> Cache {
        Cache { plan, channels: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    pub(super) fn forget(&mut self, channels: IofChannel) {
        self.channels.retain(|channel, _| !channels.intersects(*channel));
    }

    pub(super) fn cost(&self) -> usize {
        self.channels.values().map(|kept| kept.cost).sum()
    }

    pub(super) fn add(&mut self, proc: &ProcId, channel: IofChannel, data: &Arc<[u8]>, spare: usize) {
        let kept = self.channels.entry(channel).or_default();
        if data.is_empty() {
            return kept.ended.push(proc.clone());
        }
        let size = self.plan.size.min(kept.cost + spare);
        match self.plan.oldest_goes {
            true => kept.add_newest(proc, data, size),
            false => kept.add_while_room(proc, data, size),
        }
    }

    /// Collects all kept output that a reader wants, in the order in which to send it.
    pub(super) fn replay(
        &self,
        nspace: &Nspace,
        channels: IofChannel,
        wanted: impl Fn(&ProcId) -> bool,
        pid: impl Fn(&ProcId) -> Option<u32>,
        into: &mut Backlog,
    ) {
        for (channel, kept) in self.channels.iter().filter(|(channel, _)| channels.intersects(**channel)) {
            let mut lost = kept.lost.clone();
            let mut push = |proc: &ProcId, data: Arc<[u8]>, lost: u64| {
                into.pieces.push(TapPiece {
                    proc: proc.clone(),
                    pid: pid(proc),
                    channel: *channel,
                    data,
                    lost,
                    number: None,
                    instead: false,
                });
            };
            let wants = |proc: &ProcId| proc.nspace == *nspace && wanted(proc);
            for (proc, data) in kept.pieces.iter().filter(|(proc, _)| wants(proc)) {
                let before = if self.plan.oldest_goes { lost.remove(proc).unwrap_or(0) } else { 0 };
                push(proc, data.clone(), before);
            }
            // Missing bytes that are not reported yet are reported right before the end.
            for proc in kept.ended.iter().filter(|proc| wants(proc)) {
                push(proc, Arc::default(), lost.remove(proc).unwrap_or(0));
            }
            let behind = lost.into_iter().filter(|(proc, _)| wanted(proc));
            into.lost.extend(behind.map(|(proc, bytes)| ((proc, *channel), bytes)));
        }
    }
}

impl Kept {
    fn add_while_room(&mut self, proc: &ProcId, data: &Arc<[u8]>, size: usize) {
        let room = size.saturating_sub(self.cost);
        let missing = self.lost.contains_key(proc);
        let fits = cost(data.len()) <= room && !missing;
        let kept: Arc<[u8]> = match data.get(..room) {
            _ if fits => data.clone(),
            Some(part) if room >= LEAST_COST && !missing => part.into(),
            _ => Arc::default(),
        };
        if kept.len() < data.len() {
            *self.lost.entry(proc.clone()).or_default() += (data.len() - kept.len()) as u64;
        }
        if !kept.is_empty() {
            self.cost += cost(kept.len());
            self.pieces.push_back((proc.clone(), kept));
        }
    }

    fn add_newest(&mut self, proc: &ProcId, data: &Arc<[u8]>, size: usize) {
        self.cost += cost(data.len());
        self.pieces.push_back((proc.clone(), data.clone()));
        while self.cost > size {
            let Some((proc, oldest)) = self.pieces.pop_front() else { return };
            let over = self.cost - size;
            let goes =
                if oldest.len() > over && oldest.len() - over >= LEAST_COST { over } else { oldest.len() };
            self.cost -= cost(oldest.len());
            if let Some(rest) = oldest.get(goes..).filter(|rest| !rest.is_empty()) {
                self.cost += cost(rest.len());
                self.pieces.push_front((proc.clone(), rest.into()));
            }
            *self.lost.entry(proc).or_default() += goes as u64;
        }
    }
}

fn cost(bytes: usize) -> usize {
    bytes.max(LEAST_COST)
}

/// Tiny pieces cost at least their bookkeeping.
const LEAST_COST: usize = 64;
const MOST_PER_CHANNEL: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use phalanx_spec::Rank;

    use super::*;

    /// Rank, bytes, and how many are missing before them.
    type Shown = (u32, Vec<u8>, u64);

    fn kept(oldest_goes: bool, size: usize, writes: &[(u32, usize)]) -> (Vec<Shown>, Vec<(u32, u64)>) {
        let nspace = Nspace::new("job").unwrap();
        let mut cache = Cache::new(CachePlan { size, oldest_goes });
        let mut next = 0u8;
        for (rank, bytes) in writes {
            let data: Vec<u8> = (0..*bytes)
                .map(|_| {
                    next = next.wrapping_add(1);
                    next
                })
                .collect();
            cache.add(&ProcId::new(&nspace, Rank(*rank)), IofChannel::STDOUT, &data.into(), usize::MAX >> 1);
            assert!(cache.cost() <= size);
        }
        let mut backlog = Backlog::default();
        cache.replay(&nspace, IofChannel::STDOUT, |_| true, |_| None, &mut backlog);
        let pieces = backlog.pieces.iter().map(|p| (p.proc.rank.0, p.data.to_vec(), p.lost)).collect();
        (pieces, backlog.lost.iter().map(|((proc, _), lost)| (proc.rank.0, *lost)).collect())
    }

    #[test]
    fn the_newest_go_when_there_is_no_room() {
        let (pieces, lost) = kept(false, 200, &[(0, 100), (1, 150), (0, 10), (1, 70)]);
        let bytes: Vec<_> =
            pieces.iter().map(|(rank, data, lost)| (*rank, data.len(), data[0], *lost)).collect();
        assert_eq!(bytes, [(0, 100, 1, 0), (1, 100, 101, 0)]);
        assert_eq!(lost, [(0, 10), (1, 120)]);
    }

    #[test]
    fn the_oldest_go_when_that_is_asked_for() {
        let (pieces, lost) = kept(true, 200, &[(0, 100), (1, 150), (0, 64)]);
        let bytes: Vec<_> =
            pieces.iter().map(|(rank, data, lost)| (*rank, data.len(), data[0], *lost)).collect();
        assert_eq!(bytes, [(1, 136, 115, 14), (0, 64, 251, 100)]);
        assert_eq!(lost, []);
        let (pieces, lost) = kept(true, 0, &[(0, 100)]);
        assert_eq!((pieces.len(), lost), (0, vec![(0, 100)]));
    }
}
