//! The readers of each stream, and what each of them has not taken yet.
//!
//! A chunk is held until its last reader has taken it: the user, unless a reader has the stream redirected, and every tap. When
//! a tap is gone, the user gets what only that tap was to read, including what had left for it and was held by its reader when
//! the reader died. Chunks that only taps still want give their link's credit back early, up to a bound, so that one slow tool
//! does not stop a whole subtree.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use phalanx_core::output::STYLE_ATTRIBUTES;
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_wire::{Info, Nspace, ProcId};

use crate::id::{Landing, NodeId};
use crate::msg::{Down, Forward, JobDesc, OutputPiece, TapName, charge};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::dvm::Dvm;
use crate::root::iof::cache::{Cache, CachePlan};
use crate::root::iof::past::Unread;
use crate::root::iof::piece::TapPiece;
use crate::root::iof::tap::{Held, OUTPUTS, Tap};
use crate::root::journal::Journal;
use crate::root::timer::Timer;
use crate::root::turn::{Cx, FromRoot};
use crate::timers::Timers;

#[derive(Debug, Default)]
pub(in crate::root) struct Readers {
    held: BTreeMap<u64, Held>,
    number: u64,
    /// Shown to the user and not yet taken: number and bytes.
    user: VecDeque<(u64, usize)>,
    /// Bytes taken of the first of `user`.
    taken: usize,
    pub(super) taps: BTreeMap<(NodeId, TapName), Tap>,
    /// The cost of everything in flight to taps.
    flying: usize,
    /// Some tap waits because others have too much in flight.
    starved: bool,
    /// Killed jobs: only the user is waited for. The streams of each are those for which a loss was already announced.
    abandoned: BTreeMap<Nspace, BTreeSet<(ProcId, IofChannel)>>,
    /// Jobs that are being ended, with the last result of [`Readers::awaited_of`].
    watched: BTreeMap<Nspace, BTreeMap<(NodeId, TapName), u64>>,
    /// What the caches of all jobs hold.
    cached: usize,
    pub(super) unread: Unread,
    /// Output of the jobs that have not ended.
    pub(super) outputs: BTreeMap<Nspace, Outputs>,
}

/// Output of one job.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) cache: Cache,
    /// The channels of each rank that have ended.
    streams_over: BTreeMap<Rank, u16>,
    /// The directives of the request on the format of output.
    pub(super) style: Vec<Info>,
}

impl Readers {
    /// The job is being started. `request`: the directives of its spawn; `size`: how much of each channel is kept if they give none.
    pub(in crate::root) fn begin(&mut self, nspace: &Nspace, request: &[Info], size: usize) {
        let outputs = Outputs {
            cache: Cache::new(CachePlan::new(request, size)),
            streams_over: BTreeMap::new(),
            style: request.iter().filter(|info| is_of_style(info)).cloned().collect(),
        };
        self.outputs.insert(nspace.clone(), outputs);
    }

    /// Whether a table still has an entry that exists only for running jobs, or output that one of the job's processes is to
    /// read.
    pub(in crate::root) fn know(&self, nspace: &Nspace) -> bool {
        self.abandoned.contains_key(nspace)
            || self.watched.contains_key(nspace)
            || self.unread.is_for(nspace)
            || self.taps.keys().any(|(_, name)| name.is_for(nspace) || name.is_of(nspace))
    }

    pub(super) fn not_taken_by_user(&self) -> impl Iterator<Item = &Held> {
        self.user.iter().filter_map(|(number, _)| self.held.get(number))
    }

    pub(super) fn not_taken_by<'a>(&'a self, tap: &'a Tap) -> impl Iterator<Item = &'a Held> {
        let pieces = tap.queue.iter().chain(tap.flying.values());
        pieces.filter_map(|piece| self.held.get(&piece.number?))
    }

    /// The first piece of this job that each tap has not taken, by number.
    fn awaited_of(&self, nspace: &Nspace) -> BTreeMap<(NodeId, TapName), u64> {
        let first = |tap: &Tap| {
            let pieces = tap.queue.iter().chain(tap.flying.values());
            pieces.filter(|piece| piece.proc.nspace == *nspace).filter_map(|piece| piece.number).min()
        };
        self.taps.iter().filter_map(|(name, tap)| Some((name.clone(), first(tap)?))).collect()
    }

    /// A chunk that is being shown.
    pub(super) fn cache_output(&mut self, proc: &ProcId, channel: IofChannel, data: &Arc<[u8]>) {
        let spare = MOST_CACHED.saturating_sub(self.cached);
        if let Some(Outputs { cache, .. }) = self.outputs.get_mut(&proc.nspace) {
            let before = cache.cost();
            cache.add(proc, channel, data, spare);
            self.cached = self.cached + cache.cost() - before;
        }
    }

    /// Hands a chunk to each of its readers.
    pub(in crate::root) fn show(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, landing: Landing, piece: OutputPiece) {
        let OutputPiece { proc, pid, channel, data } = piece;
        let readers = &mut *self;
        readers.number += 1;
        let number = readers.number;
        let (mut served, mut instead) = (Vec::new(), 0);
        let abandoned = readers.abandoned.contains_key(&proc.nspace);
        let mut missed = false;
        let job = dvm.jobs.get(&proc.nspace);
        let forwarded = job.is_none_or(|job| job.desc.forward.intersects(channel));
        let wants = |name: &TapName, tap: &Tap| tap.is_to_get(name, &proc, channel, forwarded);
        for (name, tap) in readers.taps.iter_mut().filter(|(name, tap)| wants(&name.1, tap)) {
            if abandoned && !(tap.copy && tap.queue.is_empty()) {
                missed = true;
                continue;
            }
            let (proc, data, number) = (proc.clone(), data.clone(), (!abandoned).then_some(number));
            tap.push(TapPiece { proc, pid, channel, data, lost: 0, number, instead: !tap.copy });
            instead += usize::from(!tap.copy);
            served.push(name.clone());
        }
        if missed {
            self.tell_missed(cx, dvm, &proc, channel);
        }
        let readers = &mut *self;
        let to_user = instead == 0;
        let end = (!to_user && data.is_empty()).then(|| (proc.clone(), channel));
        let waited_for = if abandoned { 0 } else { served.len() };
        let (bytes, waiting) = (data.len(), waited_for + usize::from(to_user));
        let (writer, since) = (proc.clone(), cx.now);
        let held =
            Held { landing, proc: writer, bytes, since, readers: waiting, instead, replaced: to_user, end };
        readers.held.insert(number, held);
        if forwarded {
            self.cache_output(&proc, channel, &data);
        }
        if data.is_empty() {
            self.on_stream_over(cx, dvm, &proc, channel);
        }
        if to_user {
            self.user.push_back((number, bytes));
            report(cx, proc, pid, channel, data);
        }
        for name in served {
            self.pump_tap(cx, &name);
        }
        self.on_output_taken(cx, 0);
    }

    fn on_stream_over(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, proc: &ProcId, channel: IofChannel) {
        if let Some(outputs) = self.outputs.get_mut(&proc.nspace) {
            let over = outputs.streams_over.entry(proc.rank).or_default();
            *over |= channel.0;
        }
        dvm.tell_stream(cx, Status::ERR_IOF_COMPLETE, proc.clone(), channel);
    }

    /// Output of these processes that was not shown is lost with their node.
    pub(in crate::root) fn lose_streams(&self, cx: &mut Cx<'_>, dvm: &Dvm, desc: &JobDesc, ranks: &Ranges) {
        let all = if desc.diag { OUTPUTS.0 } else { OUTPUTS.0 & !IofChannel::STDDIAG.0 };
        for rank in ranks.iter().map(Rank) {
            let outputs = self.outputs.get(&desc.nspace);
            let over =
                outputs.and_then(|outputs| outputs.streams_over.get(&rank).copied()).unwrap_or_default();
            if all & !over != 0 {
                let proc = ProcId::new(&desc.nspace, rank);
                dvm.tell_stream(cx, Status::ERR_IOF_FAILURE, proc, IofChannel(all & !over));
            }
        }
    }

    /// The user has taken `bytes` more.
    pub(in crate::root) fn on_output_taken(&mut self, cx: &mut Cx<'_>, bytes: usize) {
        self.taken += bytes;
        while let Some((number, bytes)) = self.user.pop_front_if(|(_, bytes)| *bytes <= self.taken) {
            self.taken -= bytes;
            self.taken_by_one(cx, number);
            // If only taps still want it, its link may be used for other output.
            if let Some(held) = self.held.get(&number) {
                cx.out.push_back(FromRoot::Lend(held.landing));
            }
        }
        if self.user.is_empty() {
            self.taken = 0;
        }
        self.tell_taken(cx, false);
    }

    /// One of its readers has taken the chunk.
    fn taken_by_one(&mut self, cx: &mut Cx<'_>, number: u64) {
        let readers = &mut *self;
        let Some(held) = readers.held.get_mut(&number) else { return };
        held.readers = held.readers.saturating_sub(1);
        if held.readers > 0 {
            return;
        }
        let Some(held) = readers.held.remove(&number) else { return };
        if let Some((proc, channel)) = held.end {
            cx.report(Report::OutputEnd { proc, channel });
        }
        cx.out.push_back(FromRoot::Taken(held.landing));
    }

    /// Has taken output reported to the daemons: at once if `now`, or if the user has taken everything.
    fn tell_taken(&mut self, cx: &mut Cx<'_>, now: bool) {
        cx.out.push_back(FromRoot::TellTaken { at_once: now || self.user.is_empty() });
    }

    /// Sends a tap as much as its own window and that of all taps allow.
    pub(super) fn pump_tap(&mut self, cx: &mut Cx<'_>, name: &(NodeId, TapName)) {
        loop {
            let readers = &mut *self;
            let Some(tap) = readers.taps.get_mut(name).filter(|tap| tap.ready) else { return };
            let Some(cost) = tap.queue.front().map(|piece| charge(piece.data.len())) else { return };
            if tap.flying_cost > 0 {
                if tap.flying_cost + cost > TAP_WINDOW {
                    return;
                }
                if readers.flying + cost > ALL_TAPS_WINDOW {
                    readers.starved = true;
                    return;
                }
            }
            let Some(piece) = tap.queue.pop_front() else { return };
            tap.last += 1;
            tap.flying_cost += cost;
            readers.flying += cost;
            let forward = Forward {
                to: name.1.clone(),
                piece: tap.last,
                proc: piece.proc.clone(),
                pid: piece.pid.filter(|_| tap.names_places),
                names_place: tap.names_places,
                channel: piece.channel,
                data: piece.data.clone(),
                lost: piece.lost,
            };
            tap.flying.insert(tap.last, piece);
            cx.cast(Ranges::single(name.0.0), Down::Output(forward));
        }
    }

    /// A daemon reports which pieces have left its server, and whether the reader is gone.
    pub(in crate::root) fn on_output_left(
        &mut self,
        cx: &mut Cx<'_>,
        origin: NodeId,
        to: &TapName,
        pieces: &[(u64, usize)],
        gone: bool,
    ) {
        let name = (origin, to.clone());
        let mut taken = Vec::new();
        let readers = &mut *self;
        if let Some(tap) = readers.taps.get_mut(&name) {
            for (piece, held) in pieces {
                let Some(piece) = tap.flying.remove(piece) else { continue };
                let cost = charge(piece.data.len());
                tap.flying_cost -= cost;
                readers.flying -= cost;
                tap.held.left(&piece, *held);
                taken.extend(piece.number.map(|number| (number, piece.instead)));
            }
        }
        // Redirected streams are not slowed down by a user that is slow to read other output.
        let without_user = taken.iter().any(|(_, instead)| *instead);
        for (number, instead) in taken {
            if let Some(held) = self.held.get_mut(&number) {
                held.replaced |= instead;
            }
            self.taken_by_one(cx, number);
        }
        if gone {
            self.remove_tap(cx, &name);
        } else {
            self.pump_tap(cx, &name);
            self.try_stopped(cx, &name);
        }
        self.feed_starved(cx);
        self.tell_taken(cx, without_user);
    }

    /// A tap is gone: the user gets what only it was to read.
    pub(super) fn remove_tap(&mut self, cx: &mut Cx<'_>, name: &(NodeId, TapName)) {
        let Some(tap) = self.taps.remove(name) else { return };
        self.flying -= tap.flying_cost;
        for TapPiece { proc, pid, channel, data, .. } in tap.held.into_pieces() {
            let readers = &mut *self;
            // Its writer does not wait for it.
            readers.number += 1;
            readers.user.push_back((readers.number, data.len()));
            report(cx, proc, pid, channel, data);
        }
        for piece in tap.flying.into_values().chain(tap.queue) {
            self.not_taken(cx, piece);
        }
        if let Some(answer) = tap.stopping {
            answer.done(cx, Status::SUCCESS);
        }
        self.feed_starved(cx);
        // The end of a stream needs no taking.
        self.on_output_taken(cx, 0);
    }

    fn feed_starved(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.starved) {
            let names: Vec<_> = self.taps.keys().cloned().collect();
            names.iter().for_each(|name| self.pump_tap(cx, name));
        }
    }

    /// The job is being ended: its pullers get as much time as its processes, renewed whenever one takes something.
    pub(in crate::root) fn watch(
        &mut self,
        cx: &Cx<'_>,
        dvm: &Dvm,
        timers: &mut Timers<Timer>,
        nspace: &Nspace,
    ) {
        let awaited = self.awaited_of(nspace);
        self.watched.insert(nspace.clone(), awaited);
        let grace = dvm.jobs.get(nspace).and_then(|job| job.desc.kill_after);
        let grace = grace.unwrap_or(dvm.config.limits.kill_grace);
        timers.set_once(cx.now.after(grace), Timer::Readers(nspace.clone()));
    }

    pub(in crate::root) fn on_due(
        &mut self,
        cx: &mut Cx<'_>,
        dvm: &Dvm,
        timers: &mut Timers<Timer>,
        nspace: &Nspace,
    ) {
        let Some(before) = self.watched.get(nspace) else { return };
        let now = self.awaited_of(nspace);
        let takes_nothing = |(name, number): (&(NodeId, TapName), &u64)| before.get(name) == Some(number);
        if now.is_empty() || !now.iter().all(takes_nothing) {
            return self.watch(cx, dvm, timers, nspace);
        }
        self.watched.remove(nspace);
        self.abandon_taps_of(cx, dvm, nspace);
    }

    /// The job was killed: stops waiting for readers of its output. What they have not been sent goes to the user, except what
    /// the user already has, and an event announces the loss.
    pub(in crate::root) fn abandon_taps_of(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace) {
        let readers = &mut *self;
        readers.abandoned.entry(nspace.clone()).or_default();
        let (mut unsent, mut sent) = (Vec::new(), Vec::new());
        for tap in readers.taps.values_mut() {
            let (of_job, others): (VecDeque<TapPiece>, _) =
                std::mem::take(&mut tap.queue).into_iter().partition(|piece| piece.proc.nspace == *nspace);
            tap.queue = others;
            unsent.extend(of_job);
            let flying = tap.flying.values_mut().filter(|piece| piece.proc.nspace == *nspace);
            sent.extend(flying.filter_map(|piece| piece.number.take()));
        }
        sent.into_iter().for_each(|number| self.taken_by_one(cx, number));
        unsent.sort_by_key(|piece| piece.number);
        for piece in unsent {
            self.tell_missed(cx, dvm, &piece.proc, piece.channel);
            self.not_taken(cx, piece);
        }
        self.on_output_taken(cx, 0);
    }

    /// Announces that a reader of a killed job does not get everything, once for each stream.
    fn tell_missed(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, proc: &ProcId, channel: IofChannel) {
        let Some(told) = self.abandoned.get_mut(&proc.nspace) else { return };
        if told.insert((proc.clone(), channel)) {
            dvm.tell_stream(cx, Status::ERR_IOF_FAILURE, proc.clone(), channel);
        }
    }

    /// A reader will not get this piece: if no other reader has it, the user gets it.
    fn not_taken(&mut self, cx: &mut Cx<'_>, piece: TapPiece) {
        let readers = &mut *self;
        let Some(number) = piece.number else { return };
        let Some(held) = readers.held.get_mut(&number) else { return };
        held.instead -= usize::from(piece.instead);
        if held.instead == 0 && !held.replaced {
            held.replaced = true;
            held.end = None;
            readers.user.push_back((number, piece.data.len()));
            report(cx, piece.proc, piece.pid, piece.channel, piece.data);
        } else {
            self.taken_by_one(cx, number);
        }
    }

    /// The job is over.
    pub(in crate::root) fn forget_readers_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        // What the job was to read goes to its user.
        let taps = self.taps.keys().filter(|(_, name)| name.is_for(nspace));
        let gone: Vec<_> = taps.cloned().collect();
        gone.iter().for_each(|name| self.remove_tap(cx, name));
        self.abandoned.remove(nspace);
        self.watched.remove(nspace);
        self.taps.values_mut().for_each(|tap| tap.held.forget(nspace));
    }

    /// The node is lost, and with it its readers.
    pub(in crate::root) fn forget_readers_on(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        let there: Vec<_> = self.taps.keys().filter(|(node, _)| *node == lost).cloned().collect();
        there.iter().for_each(|name| self.remove_tap(cx, name));
    }

    pub(super) fn try_stopped(&mut self, cx: &mut Cx<'_>, name: &(NodeId, TapName)) {
        let over = |tap: &&mut Tap| tap.stopping.is_some() && tap.is_drained();
        if let Some(tap) = self.taps.get_mut(name).filter(over) {
            if tap.ends_well {
                tap.held.clear();
            }
            self.remove_tap(cx, name);
        }
    }

    /// The job is over: drops its cached output, unless its spawner may still ask for it.
    pub(in crate::root) fn keep_unread(&mut self, dvm: &Dvm, journal: Arc<Journal>) {
        let Some(Outputs { cache, style, .. }) = self.outputs.remove(&journal.desc().nspace) else { return };
        let is_there = |parent: &ProcId| !cache.is_empty() && dvm.node_of(parent).is_some();
        self.cached -= match journal.desc().parent.clone().filter(is_there) {
            Some(parent) => self.unread.keep(journal, parent, style, cache),
            None => cache.cost(),
        };
    }

    /// The spawner has read it.
    pub(super) fn forget_read(&mut self, reader: &ProcId, sources: &[ProcId], channels: IofChannel) {
        self.cached -= self.unread.forget_read(reader, sources, channels);
    }

    /// Drops the output of jobs that this process has spawned; with a wildcard, of those that its whole job has.
    pub(in crate::root) fn forget_unread_of(&mut self, spawner: &ProcId) {
        self.cached -= self.unread.forget(|job| spawner.covers(job.parent()));
    }
}

fn is_of_style(info: &Info) -> bool {
    STYLE_ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str()))
}

fn report(cx: &mut Cx<'_>, proc: ProcId, pid: Option<u32>, channel: IofChannel, data: Arc<[u8]>) {
    if data.is_empty() {
        cx.report(Report::OutputEnd { proc, channel });
    } else {
        cx.report(Report::Output { proc, pid, channel, data });
    }
}

/// The most that one tap may have in flight between here and its peer's transport.
const TAP_WINDOW: usize = 512 << 10;
/// The same for all taps together, apart from one piece each.
const ALL_TAPS_WINDOW: usize = 8 << 20;
/// What the caches of all jobs may hold together.
const MOST_CACHED: usize = 8 << 20;
