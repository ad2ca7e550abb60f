//! From the broadcast description of a job to running processes on this node.
//!
//! The server learns of the job and of each process here. The environment variables that it requests are merged with the job's
//! and the app's, and the shell gets one complete order per process. The root's half is in `root/jobs.rs`.

use std::sync::Arc;

use phalanx_core::server::ServerCall;
use phalanx_spec::{IofChannel, Rank, Status};
use phalanx_topo::CpuSet;
use phalanx_wire::{Nspace, ProcId, Text};

use crate::effect::{Effect, ProcStart, StdinPlan};
use crate::environment::environment;
use crate::local::calls::Call;
use crate::local::iof::stream_window;
use crate::local::procs::{LocalJob, Phase};
use crate::local::turn::Cx;
use crate::local::{Tables, inspect};
use crate::msg::{JobDesc, SpawnFailure, SpawnStep, StdinTarget, Up};

impl Tables {
    pub(super) fn on_start(&mut self, cx: &mut Cx<'_>, desc: &Arc<JobDesc>) {
        let ranks = desc.ranks_on(cx.config.id);
        self.jobs.insert(desc.nspace.clone(), LocalJob::new(desc.clone(), cx.now, &ranks));
        if ranks.is_empty() {
            return;
        }
        self.introduce(cx, &desc.nspace);
        let (uid, gid) = (cx.config.uid, cx.config.gid);
        for rank in ranks.iter() {
            let proc = ProcId::new(&desc.nspace, Rank(rank));
            let register = ServerCall::RegisterClient { proc: proc.clone(), uid, gid };
            cx.call(register, Call::Told("registering a client"));
            cx.call(ServerCall::SetupFork(proc.clone()), Call::SetupFork(proc));
        }
        inspect::begin(cx, desc);
    }

    /// Registers a job with our server, unless it is registered.
    pub(super) fn introduce(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace).filter(|job| !job.registered) else { return };
        job.registered = true;
        let info = job.desc.job_info(cx.config.id, &cx.config.scratch, &self.table, &job.lives);
        cx.call(ServerCall::RegisterNspace(Box::new(info)), Call::Register(nspace.clone()));
    }

    pub(super) fn on_registered(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, status: Status) {
        if status.is_success() {
            return;
        }
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let Some(rank) = job.procs.keys().next().copied() else { return };
        job.procs.values_mut().for_each(|proc| proc.never());
        job.start_failed = true;
        let text = format!("registering job {nspace} with the server of {}: {status}", cx.config.hostname);
        cx.post(Up::Note { about: Some(ProcId::all(nspace)), text });
        let failure = SpawnFailure { step: SpawnStep::Fork, subject: nspace.to_string(), errno: 0 };
        cx.post(Up::StartFailed { proc: ProcId::new(nspace, rank), failure });
        self.try_started(cx, nspace);
        self.try_ended(cx, nspace);
    }

    /// The last missing piece is here: the server's part of the environment.
    pub(super) fn start_proc(&mut self, cx: &mut Cx<'_>, proc: &ProcId, server_env: Vec<(String, String)>) {
        let Some(job) = self.jobs.get_mut(&proc.nspace) else { return };
        let (desc, procs) = (job.desc.clone(), job.procs.len());
        let Some(entry) = job.procs.get_mut(&proc.rank).filter(|entry| entry.phase == Phase::Preparing)
        else {
            return;
        };
        let Some(app) = desc.app(proc.rank).filter(|_| entry.killed.is_none()) else {
            entry.never();
            self.try_started(cx, &proc.nspace);
            self.try_renewals(cx, &proc.nspace);
            return self.try_ended(cx, &proc.nspace);
        };
        entry.phase = Phase::Starting;
        entry.open = [true, true, desc.diag];
        let life = job.lives.get(&proc.rank.0).cloned();
        let cpuset = desc.binding(proc.rank).and_then(|binding| binding.cpuset.as_deref());
        let start = ProcStart {
            proc: proc.clone(),
            argv: match (&desc.restart_command, life.as_ref().and_then(|life| life.from.as_ref())) {
                (Some(shell), Some(_)) => [Text::from("/bin/sh"), "-c".into(), shell.clone()].into(),
                _ => app.argv.clone(),
            },
            env: environment(&desc, app, proc.rank, (&cx.config.hostname, procs), life.as_ref(), server_env),
            cwd: app.cwd.clone(),
            cpus: cpuset.and_then(|list| CpuSet::from_list(list).ok()),
            // Input that its predecessor has not read is lost.
            stdin: if reads_stdin(&desc, proc.rank) && life.is_none() {
                StdinPlan::Pipe
            } else {
                StdinPlan::Null
            },
            diag: desc.diag,
            asked_first: false,
            may_leave: false,
        };
        let bytes = stream_window(&cx.config.limits, procs);
        cx.effect(Effect::Spawn(Box::new(start)));
        let diag = desc.diag.then_some(IofChannel::STDDIAG);
        for channel in [IofChannel::STDOUT, IofChannel::STDERR].into_iter().chain(diag) {
            cx.effect(Effect::Credit { proc: proc.clone(), channel, bytes });
        }
    }

    /// The process is gone; releases everything that waits for it at our server.
    pub(super) fn deregister_client(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        cx.call(ServerCall::DeregisterClient(proc.clone()), Call::Told("forgetting a client"));
    }

    pub(super) fn deregister(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        cx.call(ServerCall::DeregisterNspace(nspace.clone()), Call::Told("forgetting a job"));
    }
}

/// Whether `rank` reads the launcher's standard input.
pub(super) fn reads_stdin(desc: &JobDesc, rank: Rank) -> bool {
    match desc.stdin {
        StdinTarget::Rank(chosen) => rank == chosen,
        StdinTarget::All => true,
        StdinTarget::None => false,
    }
}
