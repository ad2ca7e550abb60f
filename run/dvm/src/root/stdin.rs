//! Standard input on its way to the processes that read it: the launcher's own, and what tools push.
//!
//! Only as much of the launcher's input is read as the slowest reader has room for. The first piece is small and only looked at: the launcher takes
//! of it what a reader has read, and goes on when that is all of it, so input that no process wants stays where it was. A terminal cannot be
//! looked at, so its launcher sends a piece without bytes first, which asks whether a reader waits. A push is cut into pieces; a piece is sent
//! when all its targets have room, and the push is answered when the last piece has been sent, so a pusher that waits for
//! answers is slowed down to the slowest target. Pushes that share a target keep their order; others may overtake them. A
//! reader that closes its end or ends is no longer waited for; end of file follows the last byte, once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use phalanx_core::host::StdinRequest;
use phalanx_spec::{IofChannel, Rank, Status, keys};
use phalanx_wire::cmd::iof::UNTIL_READ;
use phalanx_wire::{Blob, InfoList, Nspace, ProcId, Value};

use crate::msg::{Down, JobDesc, StdinTarget};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::dvm::Dvm;
use crate::root::turn::{Cx, FromRoot};

/// Attributes of a push that are honoured.
pub(crate) const PUSH_ATTRIBUTES: &[&str] = &[keys::IOF_COMPLETE, keys::IOF_PUSH_STDIN, UNTIL_READ];

/// Standard input of all jobs.
#[derive(Debug, Default)]
pub(super) struct Inputs(BTreeMap<Nspace, StdinFlow>);

/// The root's account of one job's standard input.
#[derive(Debug)]
struct StdinFlow {
    desc: Arc<JobDesc>,
    readers: BTreeMap<Rank, StdinReader>,
    /// Bytes requested from the shell and not received yet, and whether any were ever requested.
    outstanding: usize,
    asked: bool,
    /// The launcher's first piece, and how much of it a reader has read.
    first: usize,
    read: usize,
    ended: bool,
    pushes: VecDeque<Push>,
    pushed_bytes: usize,
    /// Processes that had a push refused for lack of room; their later pushes would follow a gap.
    failed: Vec<ProcId>,
}

/// Bytes sent to one reader, and taken by it.
#[derive(Clone, Copy, Debug, Default)]
struct StdinReader {
    sent: u64,
    taken: u64,
    /// Where the launcher's first piece begins.
    first: u64,
}

#[derive(Debug)]
struct Push {
    by: ProcId,
    ranks: Ranges,
    data: Blob,
    gone: usize,
    /// End of file follows.
    ends: bool,
    /// Answered when all of it has been sent, and, if it is to be `read`, a reader has read it.
    answer: Answer,
    read: Option<UntilRead>,
}

#[derive(Debug, Default)]
struct UntilRead {
    /// Where it begins, for each target; none before it is sent.
    from: Option<BTreeMap<Rank, u64>>,
    /// The most that a target has read of it.
    read: usize,
    /// Without bytes: a target waits for input.
    is_awaited: bool,
}

impl Push {
    /// What a push that is to be read waits for, when all of it has been sent.
    fn is_read(&self) -> bool {
        self.read.as_ref().is_none_or(|until| until.is_awaited && until.read == self.data.len())
    }

    /// It is not waited for any longer.
    fn give_up(self, cx: &mut Cx<'_>) {
        let status = match &self.read {
            None => Status::ERR_IOF_COMPLETE,
            Some(until) if until.read == 0 => UNREAD,
            // Less than the memory bound.
            Some(until) => Status(i32::try_from(until.read).unwrap_or(i32::MAX)),
        };
        self.answer.done(cx, status);
    }

    fn is_partly_sent(&self) -> bool {
        (1..self.data.len()).contains(&self.gone)
    }
}

impl StdinFlow {
    fn new(desc: Arc<JobDesc>) -> StdinFlow {
        let readers = match desc.stdin {
            StdinTarget::None => Ranges::new(),
            StdinTarget::Rank(rank) if rank.0 < desc.size => Ranges::single(rank.0),
            StdinTarget::Rank(_) => Ranges::new(),
            StdinTarget::All => desc.ranks(),
        };
        let readers = readers.iter().map(|rank| (Rank(rank), StdinReader::default())).collect();
        StdinFlow {
            desc,
            readers,
            outstanding: 0,
            asked: false,
            first: 0,
            read: 0,
            ended: false,
            pushes: VecDeque::new(),
            pushed_bytes: 0,
            failed: Vec::new(),
        }
    }

    fn ranks(&self) -> Ranges {
        self.readers.keys().map(|rank| rank.0).collect()
    }

    /// The room that every one of `ranks` has; those that have stopped reading do not count.
    fn room(&self, ranks: &Ranges, window: usize) -> usize {
        let chosen = self.readers.iter().filter(|(rank, _)| ranks.contains(rank.0));
        let under_way = chosen.map(|(_, reader)| reader.sent - reader.taken).max().unwrap_or(0);
        window.saturating_sub(usize::try_from(under_way).unwrap_or(usize::MAX))
    }

    /// Some reader has read all of the first piece, and so wants more.
    fn is_wanted(&self) -> bool {
        self.first > 0 && self.read == self.first
    }

    /// A reader has read something, or waits for it. Returns how much more of the first piece has been read.
    fn note_read(&mut self, rank: Rank, bytes: usize) -> Option<usize> {
        let reader = self.readers.get_mut(&rank)?;
        reader.taken = (reader.taken + bytes as u64).min(reader.sent);
        let taken = reader.taken;
        let read = usize::try_from(taken.saturating_sub(reader.first)).unwrap_or(usize::MAX).min(self.first);
        for push in &mut self.pushes {
            let Some(until) = &mut push.read else { continue };
            let Some(from) = until.from.as_ref().and_then(|from| from.get(&rank)) else { continue };
            let read = usize::try_from(taken.saturating_sub(*from)).unwrap_or(usize::MAX);
            until.read = until.read.max(read.min(push.data.len()));
            until.is_awaited = true;
        }
        let more = read.saturating_sub(self.read);
        self.read += more;
        Some(more)
    }

    fn sent(&mut self, ranks: &Ranges, bytes: usize) {
        let chosen = self.readers.iter_mut().filter(|(rank, _)| ranks.contains(rank.0));
        chosen.for_each(|(_, reader)| reader.sent += bytes as u64);
    }

    /// Those of `ranks` that still read.
    fn reading(&self, ranks: &Ranges) -> Ranges {
        self.readers.keys().map(|rank| rank.0).filter(|rank| ranks.contains(*rank)).collect()
    }
}

impl Inputs {
    /// The job is being started.
    pub(super) fn begin(&mut self, desc: &Arc<JobDesc>) {
        self.0.insert(desc.nspace.clone(), StdinFlow::new(desc.clone()));
    }

    /// Requests as much from the shell as the slowest reader has room for.
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace) {
        let window = dvm.config.limits.stdin_window;
        let Some(flow) = self.0.get_mut(nspace).filter(|_| has_started(dvm, nspace)) else { return };
        if flow.readers.is_empty() || flow.ended {
            return;
        }
        let window = if flow.is_wanted() { window } else { window.min(FIRST_PIECE) };
        let room = flow.room(&flow.ranks(), window).saturating_sub(flow.outstanding);
        if room > 0 && (room >= window / 4 || !flow.asked) {
            flow.asked = true;
            flow.outstanding += room;
            cx.out.push_back(FromRoot::StdinCredit { nspace: nspace.clone(), bytes: room });
        }
    }

    pub(super) fn user_has(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, data: Arc<[u8]>) {
        let Some(flow) = self.0.get_mut(nspace).filter(|flow| !flow.ended) else { return };
        flow.outstanding = flow.outstanding.saturating_sub(data.len());
        if flow.first == 0 {
            flow.first = data.len();
            flow.readers.values_mut().for_each(|reader| reader.first = reader.sent);
        }
        let ranks = flow.ranks();
        self.send_stdin(cx, nspace, ranks, data);
    }

    pub(super) fn user_ends(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace) {
        let Some(flow) = self.0.get_mut(nspace).filter(|flow| !flow.ended) else { return };
        flow.ended = true;
        // A spawned job reads what is pushed, and has no other source.
        if flow.desc.parent.is_none() {
            let ranks = flow.ranks();
            self.send_stdin_end(cx, dvm, nspace, &ranks);
            self.move_pushes(cx, dvm, nspace);
        }
    }

    fn send_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: Ranges, data: Arc<[u8]>) {
        let Some(flow) = self.0.get_mut(nspace).filter(|_| !ranks.is_empty()) else { return };
        flow.sent(&ranks, data.len());
        let to = flow.desc.nodes_of(&ranks);
        cx.cast(to, Down::Stdin { nspace: nspace.clone(), ranks, data });
    }

    /// Sends end of file, once: a reader that has got it reads no more.
    fn send_stdin_end(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, ranks: &Ranges) {
        let Some(flow) = self.0.get_mut(nspace) else { return };
        let ranks = flow.reading(ranks);
        flow.readers.retain(|rank, _| !ranks.contains(rank.0));
        let to = flow.desc.nodes_of(&ranks);
        if ranks.is_empty() {
            return;
        }
        cx.cast(to, Down::StdinEnd { nspace: nspace.clone(), ranks: ranks.clone() });
        for rank in ranks.iter() {
            dvm.tell_stream(cx, Status::ERR_IOF_COMPLETE, ProcId::new(nspace, Rank(rank)), IofChannel::STDIN);
        }
    }

    /// A tool or a rank has input for some processes.
    pub(super) fn push(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, answer: Answer, request: &StdinRequest) {
        let (by, directives, data) = (&request.from, &request.directives, &request.data);
        let mut targets = request.targets.clone();
        // As in RFC0025, the directive names a target.
        targets.extend(directives.find(keys::IOF_PUSH_STDIN).and_then(Value::as_proc).cloned());
        let until_read = directives.is_set(UNTIL_READ);
        let asks = data.is_empty() && until_read;
        let ends = !asks && (data.is_empty() || directives.is_set(keys::IOF_COMPLETE));
        let read = (until_read && !ends).then(UntilRead::default);
        let Some(nspace) = targets.first().map(|target| target.nspace.clone()) else {
            return answer.done(cx, Status::ERR_BAD_PARAM);
        };
        match self.may_push(dvm, by, &nspace, &targets, data.len()) {
            Ok(ranks) => {
                let Some(flow) = self.0.get_mut(&nspace) else { return };
                flow.pushed_bytes += data.len();
                let data = data.clone();
                flow.pushes.push_back(Push { by: by.clone(), ranks, data, gone: 0, ends, answer, read });
                self.move_pushes(cx, dvm, &nspace);
            }
            Err(Status::ERR_IOF_COMPLETE) if read.is_some() => answer.done(cx, UNREAD),
            Err(status) => {
                answer.done(cx, status);
                if status == Status::ERR_OUT_OF_RESOURCE {
                    dvm.tell_stream(cx, Status::ERR_IOF_FAILURE, by.clone(), IofChannel::STDIN);
                }
            }
        }
    }

    /// The readers of a push. If there are none, or the job is over, the status is end of input: OpenPMIx's library stops
    /// reading on it, and deadlocks on any other failure.
    fn may_push(
        &mut self,
        dvm: &Dvm,
        by: &ProcId,
        nspace: &Nspace,
        targets: &[ProcId],
        bytes: usize,
    ) -> Result<Ranges, Status> {
        let is_over = dvm.journals.get(nspace).is_some();
        let unknown = if is_over { Status::ERR_IOF_COMPLETE } else { Status::ERR_NOT_FOUND };
        let flow = self.0.get_mut(nspace).ok_or(unknown)?;
        if !flow.desc.forward.intersects(IofChannel::STDIN) {
            return Err(Status::ERR_IOF_COMPLETE);
        }
        let mut ranks = Ranges::new();
        for target in targets {
            match target.rank {
                _ if target.nspace != *nspace => return Err(Status::ERR_NOT_SUPPORTED),
                Rank::WILDCARD => ranks.add(&flow.desc.ranks()),
                rank if rank.0 < flow.desc.size => ranks.insert(rank.0),
                _ => return Err(Status::ERR_NOT_FOUND),
            }
        }
        let reading = flow.reading(&ranks);
        if reading.is_empty() {
            return Err(Status::ERR_IOF_COMPLETE);
        }
        if flow.failed.contains(by) {
            return Err(Status::ERR_IOF_FAILURE);
        }
        if flow.pushed_bytes + bytes > MOST_PUSHED && !flow.pushes.is_empty() {
            flow.failed.push(by.clone());
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        Ok(reading)
    }

    /// Sends pushes as far as there is room; pushes that share targets keep their order.
    pub(super) fn move_pushes(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace) {
        let Some(flow) = self.0.get_mut(nspace).filter(|_| has_started(dvm, nspace)) else { return };
        let mut waiting = std::mem::take(&mut flow.pushes);
        let mut busy = Ranges::new();
        let mut left = VecDeque::new();
        while let Some(mut push) = waiting.pop_front() {
            let is_sent = !push.ranks.intersects(&busy) && self.move_push(cx, dvm, nspace, &mut push);
            let has_reader = self.0.get(nspace).is_some_and(|flow| !flow.reading(&push.ranks).is_empty());
            match (is_sent, push.is_read()) {
                (true, true) => push.answer.done(cx, Status::SUCCESS),
                (true, false) if !has_reader => push.give_up(cx),
                (true, false) => left.push_back(push),
                (false, _) => {
                    busy.add(&push.ranks);
                    left.push_back(push);
                }
            }
        }
        if let Some(flow) = self.0.get_mut(nspace) {
            flow.pushes = left;
        }
    }

    /// Returns whether all of it has been sent.
    fn move_push(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, push: &mut Push) -> bool {
        let window = dvm.config.limits.stdin_window;
        let Some(flow) = self.0.get(nspace) else { return true };
        if let Some(UntilRead { from: from @ None, .. }) = &mut push.read {
            let targets = flow.readers.iter().filter(|(rank, _)| push.ranks.contains(rank.0));
            *from = Some(targets.map(|(rank, reader)| (*rank, reader.sent)).collect());
            if push.data.is_empty() {
                self.send_stdin(cx, nspace, push.ranks.clone(), Arc::default());
            }
        }
        while let Some(flow) = self.0.get_mut(nspace) {
            let rest = push.data.as_bytes().get(push.gone..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let ranks = flow.reading(&push.ranks);
            // A target that has stopped reading is not waited for.
            let room = if ranks.is_empty() { rest.len() } else { flow.room(&ranks, window) };
            let piece = rest.get(..room.min(rest.len())).unwrap_or_default();
            if piece.is_empty() || (piece.len() < rest.len() && room < window / 4) {
                return false;
            }
            push.gone += piece.len();
            flow.pushed_bytes -= piece.len();
            let piece = piece.into();
            self.send_stdin(cx, nspace, ranks, piece);
        }
        if push.ends {
            self.send_stdin_end(cx, dvm, nspace, &push.ranks);
        }
        true
    }

    /// Whether this job has pushes here. One that is partly sent does not count: its rest is still sent, even after its pusher
    /// has ended.
    pub(super) fn has_pushes_by(&self, nspace: &Nspace) -> bool {
        self.0.values().any(|flow| {
            flow.failed.iter().any(|proc| proc.nspace == *nspace)
                || flow.pushes.iter().any(|push| !push.is_partly_sent() && push.by.nspace == *nspace)
        })
    }

    /// A tool is gone, or all processes of a job. The jobs that they spawned get no more input.
    pub(super) fn end_pushes_of(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, by: &ProcId) {
        let mut fed = Vec::new();
        for (nspace, flow) in &mut self.0 {
            let all = std::mem::take(&mut flow.pushes);
            let (left, gone): (VecDeque<Push>, VecDeque<Push>) =
                all.into_iter().partition(|push| !by.covers(&push.by) || push.is_partly_sent());
            gone.into_iter().for_each(|push| push.answer.done(cx, Status::ERR_LOST_CONNECTION));
            flow.pushes = left;
            flow.pushed_bytes = flow.pushes.iter().map(|push| push.data.len() - push.gone).sum();
            flow.failed.retain(|failed| !by.covers(failed));
            if flow.desc.parent.as_ref().is_some_and(|parent| by.covers(parent)) {
                fed.push((nspace.clone(), flow.ranks()));
            }
        }
        for (nspace, ranks) in fed {
            self.send_stdin_end(cx, dvm, &nspace, &ranks);
            self.move_pushes(cx, dvm, &nspace);
        }
    }

    /// The job is over: refuses pushes to it.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        for push in self.0.remove(nspace).into_iter().flat_map(|flow| flow.pushes) {
            push.give_up(cx);
        }
    }

    /// A reader has taken more, or, with no bytes, waits for input.
    pub(super) fn taken(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, rank: Rank, bytes: usize) {
        let Some(flow) = self.0.get_mut(nspace) else { return };
        let Some(read) = flow.note_read(rank, bytes) else { return };
        if read > 0 || bytes == 0 {
            cx.out.push_back(FromRoot::StdinRead { nspace: nspace.clone(), bytes: read });
        }
        self.move_pushes(cx, dvm, nspace);
        self.ask(cx, dvm, nspace);
    }

    /// A reader has stopped reading.
    pub(super) fn lost(&mut self, cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, rank: Rank) {
        let Some(flow) = self.0.get_mut(nspace) else { return };
        if flow.readers.remove(&rank).is_some() {
            dvm.tell_stream(cx, Status::ERR_IOF_COMPLETE, ProcId::new(nspace, rank), IofChannel::STDIN);
        }
        self.move_pushes(cx, dvm, nspace);
        self.ask(cx, dvm, nspace);
    }
}

fn has_started(dvm: &Dvm, nspace: &Nspace) -> bool {
    dvm.jobs.get(nspace).is_some_and(|job| job.journal.has_started())
}

/// The answer to a push that no reader has read. Libraries take the end of input for success; one that keeps what is unread must know.
const UNREAD: Status = Status::ERR_NOT_FOUND;

/// How much of the launcher's input is shown to its readers before one has read all of it.
const FIRST_PIECE: usize = 4096;

/// The most bytes that may wait for one job's readers, apart from one push; pushes beyond it are refused.
const MOST_PUSHED: usize = 16 << 20;
