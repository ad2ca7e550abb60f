//! Which processes and tools may steer which jobs, and which targets a request names.
//!
//! Which users may connect at all is decided by the servers from the kernel's credentials: the owner of the DVM, and root.
//! Their tools may steer every job. Ranks run arbitrary programs, so the DVM's configuration sets how far they may go.

use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId};

use crate::config::Steer;
use crate::msg::Members;
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;
use crate::root::targets::Targets;

/// Whether this process or tool may act on the ranks of that job.
pub(super) fn may_steer(dvm: &Dvm, by: &ProcId, nspace: &Nspace) -> bool {
    dvm.config.rules.steer == Steer::Any || dvm.is_tool(by) || descends(dvm, nspace, &by.nspace)
}

pub(super) fn may_steer_all(dvm: &Dvm, by: &ProcId) -> bool {
    dvm.jobs.keys().all(|nspace| may_steer(dvm, by, nspace))
}

/// Whether a job is this one or a descendant of it.
fn descends(dvm: &Dvm, nspace: &Nspace, from: &Nspace) -> bool {
    let mut nspace = nspace.clone();
    loop {
        if nspace == *from {
            return true;
        }
        // Terminates, as jobs are older than those that they spawn.
        let desc = dvm.desc(&nspace).or_else(|| dvm.journals.get(&nspace).map(|j| &**j.desc()));
        match desc.and_then(|desc| desc.parent.clone()) {
            Some(parent) => nspace = parent.nspace,
            None => return false,
        }
    }
}

/// The named processes; none named means all of the requester's job. The error names unknown ones, and those that the
/// requester may not steer.
pub(super) fn targets_of(dvm: &Dvm, from: &ProcId, named: &[ProcId]) -> Result<Vec<Members>, Targets> {
    let whole = ProcId::all(&from.nspace);
    let named = if named.is_empty() { std::slice::from_ref(&whole) } else { named };
    let mut known: Vec<Members> = Vec::new();
    let mut refused = Targets::default();
    for ProcId { nspace, rank } in named {
        let size = size_of(dvm, nspace).unwrap_or(0);
        let members = Members {
            nspace: nspace.clone(),
            ranks: match *rank {
                Rank::WILDCARD => Ranges::first(size.max(1)),
                Rank(rank) => Ranges::single(rank),
            },
        };
        match *rank {
            _ if size == 0 => refused.refuse(members, Status::ERR_NOT_FOUND, Some(NO_JOB)),
            _ if !may_steer(dvm, from, nspace) => {
                refused.refuse(members, Status::ERR_NO_PERMISSIONS, None);
            }
            Rank(rank) if rank >= size && Rank(rank) != Rank::WILDCARD => {
                let why = format!("no such rank: the job has {size}");
                refused.refuse(members, Status::ERR_BAD_PARAM, Some(&why));
            }
            _ => add(&mut known, nspace, &members.ranks),
        }
    }
    if refused.is_empty() { Ok(known) } else { Err(refused) }
}

/// The size of a running job, or of one that has ended lately.
fn size_of(dvm: &Dvm, nspace: &Nspace) -> Option<u32> {
    let live = dvm.desc(nspace).map(|desc| desc.size);
    live.or_else(|| dvm.journals.get(nspace).map(|journal| journal.desc().size))
}

/// Gives a result to targets that have failed while their job goes on, and to those in ended jobs.
pub(super) fn with_the_dead(dvm: &Dvm, members: &[Members]) -> Targets {
    let mut targets = Targets::of(members);
    for target in targets.iter_mut() {
        let dead = match dvm.jobs.get(&target.nspace) {
            Some(job) => job.gone(),
            None => target.open.clone(),
        };
        target.set(&dead, Status::ERR_NOT_FOUND);
    }
    targets
}

fn add(members: &mut Vec<Members>, nspace: &Nspace, ranks: &Ranges) {
    match members.iter_mut().find(|m| m.nspace == *nspace) {
        Some(same) => same.ranks.add(ranks),
        None => members.push(Members { nspace: nspace.clone(), ranks: ranks.clone() }),
    }
}

const NO_JOB: &str = "no such job is known";
