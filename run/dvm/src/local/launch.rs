//! From the broadcast description of a job to running processes on this node.
//!
//! The server learns of the job and of each process here. The environment variables that it requests are merged with the job's
//! and the app's, and the shell gets one complete order per process. The root's half is in `root/launch.rs`.

use std::sync::Arc;

use phalanx_core::server::ServerCall;
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_topo::CpuSet;
use phalanx_wire::{ProcId, Text};

use crate::effect::{Effect, ProcStart, StdinPlan};
use crate::environment::environment;
use crate::local::calls::Call;
use crate::local::inspect;
use crate::local::iof::stream_window;
use crate::local::job::{Jobs, LocalJob};
use crate::local::proc::Proc;
use crate::local::stdin::reads_stdin;
use crate::local::turn::Cx;
use crate::msg::{JobDesc, NodeTable, OpId, Part, SpawnFailure, SpawnStep, Up};
use crate::signals::SIGSTOP;

/// Enters a job, and has its processes here prepared.
pub(super) fn begin(cx: &mut Cx<'_>, jobs: &mut Jobs, table: &Arc<NodeTable>, desc: &Arc<JobDesc>) {
    let ranks = desc.ranks_on(cx.config.id);
    let mut job = LocalJob::new(desc.clone(), cx.now, &ranks);
    if !ranks.is_empty() {
        job.introduce(cx, table);
        ranks.iter().for_each(|rank| prepare(cx, &job.id(Rank(rank))));
        inspect::begin(cx, desc);
    }
    jobs.insert(desc.nspace.clone(), job);
}

/// Asks our server for the environment of a process.
pub(super) fn prepare(cx: &mut Cx<'_>, proc: &ProcId) {
    let (uid, gid) = (cx.config.uid, cx.config.gid);
    let register = ServerCall::RegisterClient { proc: proc.clone(), uid, gid };
    cx.call(register, Call::Notice("registering a client"));
    cx.call(ServerCall::SetupFork(proc.clone()), Call::SetupFork(proc.clone()));
}

/// Our server has taken the job's description, or has refused it.
pub(super) fn registered(cx: &mut Cx<'_>, job: &mut LocalJob, status: Status) {
    if status.is_success() {
        return;
    }
    let Some(rank) = job.procs.keys().next().copied() else { return };
    job.procs.values_mut().for_each(Proc::never);
    job.start_failed = true;
    let nspace = &job.desc.nspace;
    let text = format!("registering job {nspace} with the server of {}: {status}", cx.config.hostname);
    cx.post(Up::Note { about: Some(ProcId::all(nspace)), text });
    let failure = SpawnFailure { step: SpawnStep::Fork, subject: nspace.to_string(), errno: 0 };
    cx.post(Up::StartFailed { proc: job.id(rank), failure });
}

/// The last missing piece is here: the server's part of the environment.
pub(super) fn start(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, server_env: Vec<(String, String)>) {
    let (desc, id, procs) = (job.desc.clone(), job.id(rank), job.procs.len());
    let Some(proc) = job.procs.get_mut(&rank).filter(|proc| proc.is_preparing()) else { return };
    let Some(app) = desc.app(rank).filter(|_| proc.killed().is_none()) else { return proc.never() };
    proc.begin(desc.diag);
    let life = job.lives.get(&rank.0).cloned();
    let cpuset = desc.binding(rank).and_then(|binding| binding.cpuset.as_deref());
    let start = ProcStart {
        proc: id.clone(),
        argv: match (&desc.restart_command, life.as_ref().and_then(|life| life.from.as_ref())) {
            (Some(shell), Some(_)) => [Text::from("/bin/sh"), "-c".into(), shell.clone()].into(),
            _ => app.argv.clone(),
        },
        env: environment(&desc, app, rank, (&cx.config.hostname, procs), life.as_ref(), server_env),
        cwd: app.cwd.clone(),
        cpus: cpuset.and_then(|list| CpuSet::from_list(list).ok()),
        // Input that its predecessor has not read is lost.
        stdin: if reads_stdin(&desc, rank) && life.is_none() { StdinPlan::Pipe } else { StdinPlan::Null },
        diag: desc.diag,
        asked_first: false,
        may_leave: false,
    };
    let bytes = stream_window(&cx.config.limits, procs);
    cx.effect(Effect::Spawn(Box::new(start)));
    let diag = desc.diag.then_some(IofChannel::STDDIAG);
    for channel in [IofChannel::STDOUT, IofChannel::STDERR].into_iter().chain(diag) {
        cx.effect(Effect::Credit { proc: id.clone(), channel, bytes });
    }
}

pub(super) fn spawned(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, (pid, program): (u32, Text)) {
    let id = job.id(rank);
    let Some(signals) = job.procs.get_mut(&rank).and_then(|proc| proc.run(pid)) else { return };
    job.started_after = cx.now.since(job.since);
    job.programs.add(program, rank.0);
    for signal in signals {
        let proc = id.clone();
        cx.effect(match signal {
            SIGSTOP => Effect::SignalTree { proc, signal },
            _ => Effect::Signal { proc, signal },
        });
    }
}

pub(super) fn spawn_failed(cx: &mut Cx<'_>, job: &mut LocalJob, rank: Rank, failure: SpawnFailure) {
    let id = job.id(rank);
    let Some(proc) = job.procs.get_mut(&rank).filter(|proc| proc.is_starting()) else { return };
    proc.never();
    job.start_failed = true;
    cx.post(Up::StartFailed { proc: id, failure });
}

/// Contributes to the job's start when each process here runs or never will. Until then the daemon of rank 0 reports that one
/// runs.
pub(super) fn try_started(cx: &mut Cx<'_>, job: &mut LocalJob) {
    if job.reported_start || job.procs.is_empty() {
        return;
    }
    let nspace = job.desc.nspace.clone();
    if job.procs.values().any(Proc::is_pending) {
        let runs = |proc: &Proc| proc.running().is_some();
        if !job.reported_begin && job.procs.contains_key(&Rank(0)) && job.procs.values().any(runs) {
            job.reported_begin = true;
            cx.post(Up::Began { nspace });
        }
        return;
    }
    job.reported_start = true;
    let pids = job.procs.iter().filter_map(|(rank, proc)| Some((rank.0, proc.pid()?))).collect();
    let (failed, after) = (job.start_failed, job.started_after);
    let programs = std::mem::take(&mut job.programs);
    let known = job.procs.iter().filter_map(|(rank, proc)| Some((*rank, proc.pid()?))).collect();
    cx.call(ServerCall::Started { nspace: nspace.clone(), pids: known }, Call::Notice("reporting pids"));
    cx.join(OpId::Started(nspace), Part::Started { pids, programs, failed, after });
}
