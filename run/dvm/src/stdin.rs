//! The launcher's standard input on its way to the processes that read it.
//!
//! Only as much is read as the slowest reader has room for. A reader that closes its end or ends is no longer waited
//! for; end of file follows the last byte, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use crate::daemon::{Cx, Daemon};
use crate::desc::JobDesc;
use crate::effect::Effect;
use crate::job::StdinTarget;
use crate::launch::reads_stdin;
use crate::msg::{Down, Up};
use crate::procs::Phase;
use crate::ranges::Ranges;

/// The root's account of one job's standard input.
#[derive(Debug, Default)]
pub(crate) struct StdinFlow {
    /// Per reader, how many bytes it has taken.
    readers: BTreeMap<Rank, u64>,
    /// Asked of the shell, all in all, and received from it.
    asked: u64,
    received: u64,
    ended: bool,
}

impl StdinFlow {
    pub(crate) fn new(desc: &JobDesc) -> StdinFlow {
        let readers = match desc.stdin {
            StdinTarget::None => Ranges::new(),
            StdinTarget::FirstRank => Ranges::first(desc.size.min(1)),
            StdinTarget::Rank(rank) if rank.0 < desc.size => Ranges::single(rank.0),
            StdinTarget::Rank(_) => Ranges::new(),
            StdinTarget::All => desc.ranks(),
        };
        StdinFlow { readers: readers.iter().map(|rank| (Rank(rank), 0)).collect(), ..StdinFlow::default() }
    }

    fn ranks(&self) -> Ranges {
        self.readers.keys().map(|rank| rank.0).collect()
    }
}

impl Daemon {
    /// Root only: asks the shell for as much as the slowest reader has room for.
    pub(crate) fn ask_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let window = self.config.limits.stdin_window as u64;
        let Some(job) = self.root_job(nspace).filter(|job| job.running) else { return };
        let flow = &mut job.stdin;
        let Some(slowest) = flow.readers.values().min().filter(|_| !flow.ended) else { return };
        let room = (slowest + window).saturating_sub(flow.asked);
        if room > 0 && (room >= window / 4 || flow.asked == 0) {
            flow.asked += room;
            cx.effect(Effect::StdinCredit { nspace: nspace.clone(), bytes: room as usize });
        }
    }

    pub(crate) fn on_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, data: &[u8]) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.stdin.ended) else { return };
        job.stdin.received += data.len() as u64;
        let ranks = job.stdin.ranks();
        let to = job.desc.nodes_of(&ranks);
        if !ranks.is_empty() && !data.is_empty() {
            let data: Arc<[u8]> = data.into();
            self.cast(cx, to, Down::Stdin { nspace: nspace.clone(), ranks, data });
        }
    }

    pub(crate) fn on_stdin_end(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.stdin.ended) else { return };
        job.stdin.ended = true;
        let ranks = job.stdin.ranks();
        let to = job.desc.nodes_of(&ranks);
        if !ranks.is_empty() {
            self.cast(cx, to, Down::StdinEnd { nspace: nspace.clone(), ranks });
        }
    }

    /// A reader has taken more.
    pub(crate) fn on_stdin_room(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, rank: Rank, bytes: usize) {
        let Some(job) = self.root_job(nspace) else { return };
        if let Some(taken) = job.stdin.readers.get_mut(&rank) {
            *taken = (*taken + bytes as u64).min(job.stdin.received);
        }
        self.ask_stdin(cx, nspace);
    }

    /// A reader reads no more.
    pub(crate) fn on_stdin_lost(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, rank: Rank) {
        if let Some(job) = self.root_job(nspace) {
            job.stdin.readers.remove(&rank);
        }
        self.ask_stdin(cx, nspace);
    }

    /// The readers of this node.
    fn readers_here(&self, nspace: &Nspace, ranks: &Ranges) -> Vec<ProcId> {
        let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
        let started =
            job.procs.iter().filter(|(_, proc)| matches!(proc.phase, Phase::Starting | Phase::Running));
        let reading = started.filter(|(rank, _)| ranks.contains(rank.0) && reads_stdin(&job.desc, **rank));
        reading.map(|(rank, _)| ProcId::new(nspace, *rank)).collect()
    }

    pub(crate) fn give_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges, data: &[u8]) {
        for proc in self.readers_here(nspace, ranks) {
            cx.effect(Effect::Stdin { proc, data: data.to_vec() });
        }
    }

    pub(crate) fn end_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        for proc in self.readers_here(nspace, ranks) {
            cx.effect(Effect::StdinEnd { proc });
        }
    }

    pub(crate) fn on_stdin_taken(&mut self, cx: &mut Cx<'_>, proc: &ProcId, bytes: usize) {
        let (nspace, rank) = (proc.nspace.clone(), proc.rank);
        self.post(cx, Up::StdinTaken { nspace, rank, bytes });
    }

    pub(crate) fn on_stdin_refused(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let (nspace, rank) = (proc.nspace.clone(), proc.rank);
        self.post(cx, Up::StdinRefused { nspace, rank });
    }
}
