//! The exit report, read from a journal.

use phalanx_core::Time;
use phalanx_spec::Rank;
use phalanx_wire::ProcId;

use super::history::Journal;
use super::what::What;
use crate::id::NodeId;
use crate::job::{Ender, JobEnd, JobVerdict, Phases, Waited};
use crate::msg::{EndGroup, ExitStatus, FailurePolicy, ProcEnd};
use crate::ranges::Ranges;

/// The exit report of a job that ends at time `at`, process by process. `name` returns the name of a node.
pub(in crate::root) fn end_of(journal: &Journal, at: Time, name: impl Fn(NodeId) -> String) -> JobEnd {
    let duration = at.since(journal.since());
    // A process without a reported end was lost with its node.
    let end = |(rank, group): (u32, Option<&EndGroup>)| ProcEnd {
        proc: ProcId::new(&journal.desc().nspace, Rank(rank)),
        node: journal.desc().node_of(Rank(rank)).map(&name).unwrap_or_default(),
        pid: journal.pid(Rank(rank)),
        status: group.and_then(|group| group.status),
        after: group.map_or_else(|| journal.lost_after(rank).unwrap_or(duration), |group| group.after),
        killed_by_us: group.is_some_and(|group| group.killed_by_us),
        lost_connection: group.is_some_and(|group| group.lost_connection),
    };
    let procs: Vec<ProcEnd> = (0..).zip(journal.ends_by_rank()).map(end).collect();
    let verdict = outcome(journal, &procs);
    let tolerated = tolerated(journal, &procs).filter(|_| verdict.follows_a_failure());
    let decisive = tolerated.as_ref().map(|first| failure_of(journal, first));
    let exit_code = decisive.as_ref().unwrap_or(&verdict).exit_code();
    JobEnd {
        nspace: journal.desc().nspace.clone(),
        exit_code: journal.start_failure().map_or(exit_code, |failure| failure.exit_code()),
        first: tolerated.map(|end| end.proc).or_else(|| first_failed(&verdict, &procs)),
        tool: verdict.wanted_by().and_then(|by| journal.tool(by)).cloned(),
        enders: enders(journal, &procs, &verdict),
        verdict,
        procs,
        duration,
        connected: journal.has_connected(),
        mpi: journal.mpi().map(str::to_owned),
        waited: journal.stuck().iter().map(Waited::of).collect(),
        restarts: journal.restarts().into_iter().collect(),
        phases: Phases { ended: Some(at.since(journal.submitted())), ..journal.phases() },
    }
}

/// Why the job ends with this process: it has failed, or a requester has sent it the signal that ended it.
pub(in crate::root) fn failure_of(journal: &Journal, first: &ProcEnd) -> JobVerdict {
    let Some(ExitStatus::Signal { number, .. }) = first.status else {
        return JobVerdict::Failed { first: first.clone() };
    };
    match journal.sender(number, first.proc.rank) {
        Some(by) => JobVerdict::Killed { by: by.clone(), signal: number, first: Some(first.proc.rank) },
        None => JobVerdict::Failed { first: first.clone() },
    }
}

/// The process that failed first; for a job ended by job control, the first process that was ended.
fn first_failed(verdict: &JobVerdict, procs: &[ProcEnd]) -> Option<ProcId> {
    let is_killed = matches!(verdict, JobVerdict::Killed { .. });
    let is_bad = |end: &&ProcEnd| {
        let is_ended = is_killed && end.status.is_some_and(|status| !status.is_success());
        (end.status.is_some() && end.is_failure()) || is_ended
    };
    let first = || procs.iter().filter(is_bad).min_by_key(|end| end.after).map(|end| &end.proc);
    verdict.culprit().or_else(first).cloned()
}

/// The first rank that had failed when the end of the job was decided, if the job has gone on without it.
fn tolerated(journal: &Journal, procs: &[ProcEnd]) -> Option<ProcEnd> {
    if matches!(journal.desc().on_failure, FailurePolicy::Restart { .. }) {
        return None;
    }
    let mut failed: Vec<(Ranges, Option<&ProcEnd>)> = Vec::new();
    for entry in journal.entries() {
        match entry.what() {
            What::Failed { ranks, first, .. } => failed.push((ranks.clone(), Some(first))),
            What::Lost { ranks, .. } => failed.push((ranks.clone(), None)),
            What::Restarting { ranks, .. } => failed.iter_mut().for_each(|(failed, _)| {
                failed.take(ranks);
            }),
            What::Ending(_) => break,
            _ => {}
        }
    }
    let ends = failed.into_iter().filter_map(|(ranks, first)| match first {
        Some(first) if ranks.contains(first.proc.rank.0) => Some(first),
        _ => procs.get(ranks.iter().next()? as usize),
    });
    ends.min_by_key(|end| end.after).cloned()
}

/// Those that have ended ranks by job control, if the reason for the job's end does not name them all.
fn enders(journal: &Journal, procs: &[ProcEnd], verdict: &JobVerdict) -> Vec<Ender> {
    let mut open: Ranges = procs.iter().filter(|p| p.killed_by_us).map(|p| p.proc.rank.0).collect();
    let mut enders: Vec<Ender> = Vec::new();
    let kills = journal.kills();
    // An order that came during a restart was for the new process, though it is noted before.
    let since = kills.iter().map(|kill| (kill, &kill.ranks));
    for (kill, ranks) in since.chain(kills.iter().rev().map(|kill| (kill, &kill.earlier))) {
        let its = ranks.and(&open);
        its.iter().for_each(|rank| open.remove(rank));
        match enders.iter_mut().find(|ender| ender.by == *kill.by && ender.signal == kill.signal) {
            Some(ender) => ender.ranks.add(&its),
            None if its.is_empty() => {}
            None => {
                let (by, tool) = (kill.by.clone(), journal.tool(kill.by).cloned());
                enders.push(Ender { ranks: its, by, signal: kill.signal, tool });
            }
        }
    }
    let several = enders.iter().any(|ender| ender.by != enders[0].by);
    if several || !matches!(verdict, JobVerdict::Killed { .. }) { enders } else { Vec::new() }
}

/// The reason recorded while the job ran; otherwise the one that its processes' ends show.
fn outcome(journal: &Journal, procs: &[ProcEnd]) -> JobVerdict {
    let first_failure = procs.iter().filter(|end| end.is_failure()).min_by_key(|end| end.after);
    let killer = journal.killer().filter(|_| procs.iter().any(|end| end.killed_by_us));
    // The order to kill may have come after all processes had ended by themselves.
    let has_come_late = |verdict: &&JobVerdict| {
        matches!(verdict, JobVerdict::Killed { first: None, .. }) && !procs.iter().any(|end| end.killed_by_us)
    };
    match (journal.verdict().filter(|verdict| !has_come_late(verdict)), first_failure, killer) {
        (Some(verdict), ..) => verdict.clone(),
        (None, Some(first), _) => failure_of(journal, first),
        (None, None, Some((by, signal))) => JobVerdict::Killed { by: by.clone(), signal, first: None },
        (None, None, None) => JobVerdict::Success,
    }
}
