//! Standard input that has come for processes of this node.

use std::sync::Arc;

use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};

use crate::effect::Effect;
use crate::local::launch::reads_stdin;
use crate::local::procs::Phase;
use crate::local::{Cx, Local};
use crate::msg::Up;
use crate::ranges::Ranges;

impl Local {
    /// The readers of this node.
    fn readers_here(&self, nspace: &Nspace, ranks: &Ranges) -> Vec<ProcId> {
        let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
        let started =
            job.procs.iter().filter(|(_, proc)| matches!(proc.phase, Phase::Starting | Phase::Running));
        let reading = started.filter(|(rank, _)| ranks.contains(rank.0) && reads_stdin(&job.desc, **rank));
        reading.map(|(rank, _)| ProcId::new(nspace, *rank)).collect()
    }

    pub(super) fn give_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges, data: &Arc<[u8]>) {
        // The dead take nothing, and nobody is to wait until they do.
        let job = self.jobs.get(nspace);
        let here = job.iter().flat_map(|job| &job.procs).filter(|(rank, _)| ranks.contains(rank.0));
        let dead: Vec<Rank> =
            here.filter(|(_, proc)| proc.phase == Phase::Gone).map(|(rank, _)| *rank).collect();
        for rank in dead {
            self.on_stdin_refused(cx, &ProcId::new(nspace, rank));
        }
        for proc in self.readers_here(nspace, ranks) {
            cx.effect(Effect::Stdin { proc, data: data.clone() });
        }
    }

    pub(super) fn end_stdin(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, ranks: &Ranges) {
        for proc in self.readers_here(nspace, ranks) {
            cx.effect(Effect::StdinEnd { proc });
        }
    }

    pub(super) fn on_stdin_taken(&mut self, cx: &mut Cx<'_>, proc: &ProcId, bytes: usize) {
        let (nspace, rank) = (proc.nspace.clone(), proc.rank);
        cx.post(Up::StdinTaken { nspace, rank, bytes });
    }

    pub(super) fn on_stdin_refused(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let (nspace, rank) = (proc.nspace.clone(), proc.rank);
        cx.post(Up::StdinRefused { nspace, rank });
    }
}
