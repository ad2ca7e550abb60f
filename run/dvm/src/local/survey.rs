//! Queries of the root to this daemon: its processes, what they use, what is waiting here.

use std::collections::BTreeMap;

use phalanx_core::server::ServerCall;
use phalanx_core::{Time, Waiting};
use phalanx_wire::Nspace;

use crate::effect::Effect;
use crate::local::calls::Call;
use crate::local::commands::Commands;
use crate::local::job::{Jobs, LocalJob};
use crate::local::proc::Proc;
use crate::local::turn::Cx;
use crate::msg::{Found, FoundProc, Measured, OpId, Part, Stuck, Subject, Survey, Usage, Wait};
use crate::ranges::Ranges;

/// Answers a query, or starts to collect the answer.
pub(super) fn carry_out(cx: &mut Cx<'_>, jobs: &Jobs, commands: &mut Commands, survey: Survey) {
    match &survey.of {
        Subject::Waits | Subject::Stuck { .. } => cx.call(ServerCall::Explain, Call::Explain(survey)),
        Subject::Stacks { nspace, ranks } => {
            commands.read_stacks(cx, jobs, &survey.task, (nspace, ranks.as_ref()))
        }
        Subject::Nodes => cx.effect(Effect::Measure { survey, pids: Vec::new() }),
        Subject::Procs { nspace, usage: true } => {
            let procs = jobs.get(nspace).into_iter().flat_map(|job| &job.procs);
            let pids = procs.filter_map(|(rank, proc)| Some((rank.0, proc.running()?))).collect();
            cx.effect(Effect::Measure { survey, pids });
        }
        Subject::Procs { nspace, usage: false } => {
            let procs = found_procs(jobs.get(nspace), BTreeMap::new());
            tell(cx, survey, Found { procs, ..Found::default() });
        }
    }
}

/// The shell has measured what the processes, the daemon and its node use.
pub(super) fn tell_measured(cx: &mut Cx<'_>, jobs: &Jobs, survey: Survey, measured: Measured) {
    let me = cx.config.id;
    let Measured { daemon, node, procs } = measured;
    let found = Found {
        procs: match &survey.of {
            Subject::Procs { nspace, .. } => found_procs(jobs.get(nspace), procs.into_iter().collect()),
            Subject::Nodes | Subject::Waits | Subject::Stuck { .. } | Subject::Stacks { .. } => Vec::new(),
        },
        daemons: daemon.map(|bytes| (me, bytes)).into_iter().collect(),
        nodes: node.map(|usage| (me, usage)).into_iter().collect(),
        ..Found::default()
    };
    tell(cx, survey, found);
}

/// Contributes everything that waits at this node.
pub(super) fn tell_waits(cx: &mut Cx<'_>, survey: Survey, waiting: Vec<Waiting>) {
    if let Subject::Stuck { nspace } = &survey.of {
        let stuck = stuck(nspace, &waiting, cx.now);
        return tell(cx, survey, Found { stuck, ..Found::default() });
    }
    let node = cx.config.id;
    let waits = waiting.into_iter().take(MOST_WAITS);
    let waits = waits.map(|waiting| Wait { node, age: cx.now.since(waiting.since), waiting }).collect();
    tell(cx, survey, Found { waits, ..Found::default() });
}

/// The operations in which processes of a job wait, among all that wait here.
fn stuck(nspace: &Nspace, waiting: &[Waiting], now: Time) -> Vec<Stuck> {
    let mut all = Vec::new();
    for one in waiting {
        let of_job = one.asked_by.iter().filter(|by| by.nspace == *nspace);
        let ranks: Ranges = of_job.map(|by| by.rank.0).collect();
        // The server and the host both report an operation that the host carries out.
        let is_known = |known: &Stuck| {
            known.operation == one.operation && ranks.iter().all(|rank| known.ranks.contains(rank))
        };
        if !ranks.is_empty() && !all.iter().any(is_known) {
            let (operation, subject) = (one.operation.to_string(), one.subject.clone());
            let longest = now.since(one.since);
            Stuck::merge(&mut all, vec![Stuck { operation, subject, ranks, longest }]);
        }
    }
    all
}

fn tell(cx: &mut Cx<'_>, survey: Survey, found: Found) {
    cx.join(OpId::Task(survey.task), Part::Found(Box::new(found)));
}

fn found_procs(job: Option<&LocalJob>, mut usage: BTreeMap<u32, Usage>) -> Vec<FoundProc> {
    let procs = job.into_iter().flat_map(|job| &job.procs);
    let found = |(rank, proc): (&phalanx_spec::Rank, &Proc)| FoundProc {
        rank: rank.0,
        state: proc.state(),
        stopped: proc.is_paused() && proc.running().is_some(),
        pid: proc.pid(),
        status: proc.exit_of().map(|exit| exit.status),
        usage: usage.remove(&rank.0),
    };
    procs.map(found).collect()
}

/// The most waits that one daemon reports.
const MOST_WAITS: usize = 256;
