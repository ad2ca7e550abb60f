//! Standard input for processes of this node.

use std::sync::Arc;

use phalanx_spec::Rank;
use phalanx_wire::ProcId;

use crate::effect::Effect;
use crate::local::job::LocalJob;
use crate::local::proc::Proc;
use crate::local::turn::Cx;
use crate::msg::{JobDesc, StdinTarget, Up};
use crate::ranges::Ranges;

pub(super) fn give(cx: &mut Cx<'_>, job: &LocalJob, ranks: &Ranges, data: &Arc<[u8]>) {
    // The dead take nothing: refuse, so that the root does not wait for them.
    for (rank, _) in chosen(job, ranks).filter(|(_, proc)| proc.is_gone()) {
        refused(cx, &ProcId::new(&job.desc.nspace, *rank));
    }
    for proc in readers(job, ranks) {
        cx.effect(Effect::Stdin { proc, data: data.clone() });
    }
}

pub(super) fn end(cx: &mut Cx<'_>, job: &LocalJob, ranks: &Ranges) {
    for proc in readers(job, ranks) {
        cx.effect(Effect::StdinEnd { proc });
    }
}

pub(super) fn taken(cx: &mut Cx<'_>, proc: &ProcId, bytes: usize) {
    let (nspace, rank) = (proc.nspace.clone(), proc.rank);
    cx.post(Up::StdinTaken { nspace, rank, bytes });
}

pub(super) fn refused(cx: &mut Cx<'_>, proc: &ProcId) {
    let (nspace, rank) = (proc.nspace.clone(), proc.rank);
    cx.post(Up::StdinRefused { nspace, rank });
}

/// The processes of this node that can read.
fn readers<'a>(job: &'a LocalJob, ranks: &'a Ranges) -> impl Iterator<Item = ProcId> + 'a {
    let started = chosen(job, ranks).filter(|(_, proc)| proc.is_alive());
    let reading = started.filter(|(rank, _)| reads_stdin(&job.desc, **rank));
    reading.map(|(rank, _)| ProcId::new(&job.desc.nspace, *rank))
}

fn chosen<'a>(job: &'a LocalJob, ranks: &'a Ranges) -> impl Iterator<Item = (&'a Rank, &'a Proc)> {
    job.procs.iter().filter(|(rank, _)| ranks.contains(rank.0))
}

/// Whether `rank` reads the launcher's standard input.
pub(super) fn reads_stdin(desc: &JobDesc, rank: Rank) -> bool {
    match desc.stdin {
        StdinTarget::Rank(chosen) => rank == chosen,
        StdinTarget::All => true,
        StdinTarget::None => false,
    }
}
