//! The jobs: from the request until their processes run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::output::STYLE_ATTRIBUTES;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Info, Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobRequest, JobVerdict};
use crate::msg::{Down, EndGroup, ExitStatus, JobDesc, OpId, Part, ProcEnd, SpawnFailure};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::debug::Stops;
use crate::root::descent::{Descent, Separation};
use crate::root::iof::{Cache, CachePlan};
use crate::root::spawn::writes_files;
use crate::root::stdin::StdinFlow;
use crate::root::timer::Timer;
use crate::root::{Cx, Root};

#[derive(Debug)]
pub(super) struct RootJob {
    pub(super) desc: Arc<JobDesc>,
    /// The operation of whoever has spawned it and is not answered yet.
    pub(super) spawn: Option<u64>,
    pub(super) descent: Descent,
    /// Ranks that have failed while the job goes on.
    pub(super) dead: Ranges,
    pub(super) since: Time,
    pub(super) running: bool,
    pub(super) limit: Option<Duration>,
    pub(super) separation: Separation,
    /// Who has ended some of its processes, by job control, with which signal.
    pub(super) killed_by: Option<(ProcId, i32)>,
    /// Signals that job control has sent to its processes: by whom first, and to which.
    pub(super) signalled: BTreeMap<i32, (ProcId, Ranges)>,
    pub(super) verdict: Option<JobVerdict>,
    /// Rank and pid, by rank.
    pub(super) pids: Vec<(u32, u32)>,
    pub(super) stdin: StdinFlow,
    pub(super) cache: Cache,
    /// The channels of each rank that have ended.
    pub(super) streams_over: BTreeMap<Rank, u16>,
    /// What the request said of how output looks.
    pub(super) style: Vec<Info>,
    pub(super) stops: Stops,
    /// The file of the MPI library that ranks have loaded without connecting, at first or at all.
    pub(super) mpi: Option<String>,
    /// Processes that have called init, by daemon.
    connected: BTreeMap<NodeId, u32>,
    pub(super) ends: Vec<EndGroup>,
    /// The daemons whose processes have all ended, as far as they have said so.
    pub(super) exited: BTreeSet<NodeId>,
    /// The user knows that it ends.
    pub(super) told_ending: bool,
    pub(super) over: bool,
    /// Kinds of log messages that were shown.
    pub(super) logged: BTreeSet<String>,
    /// Starting it has taken longer than the spawn allows.
    pub(super) start_overdue: bool,
    /// Why its first process that could not be started was not.
    pub(super) start_failure: Option<SpawnFailure>,
}

impl RootJob {
    /// Why the job ends with this process: it has failed, or somebody has sent it the signal that ended it.
    pub(super) fn failure(&self, first: &ProcEnd) -> JobVerdict {
        let signal = match first.status {
            Some(ExitStatus::Signal { number, .. }) => number,
            _ => 0,
        };
        match self.signalled.get(&signal) {
            Some((by, ranks)) if ranks.contains(first.proc.rank.0) => {
                JobVerdict::Killed { by: by.clone(), signal }
            }
            _ => JobVerdict::Failed { first: first.clone() },
        }
    }

    pub(super) fn pid(&self, rank: Rank) -> Option<u32> {
        let at = self.pids.binary_search_by_key(&rank.0, |(rank, _)| *rank).ok()?;
        self.pids.get(at).map(|(_, pid)| *pid)
    }

    /// How the spawn went, once all processes run or never will. What fails later is no failure of the spawn.
    pub(super) fn start_status(&self) -> Status {
        match &self.start_failure {
            _ if self.start_overdue => Status::ERR_TIMEOUT,
            Some(failure) => failure.status(),
            None if !self.pids.is_empty() => Status::SUCCESS,
            None => match self.verdict.as_ref().map(JobVerdict::status) {
                Some(status) if !status.is_success() => status,
                _ => Status::ERR_JOB_FAILED_TO_LAUNCH,
            },
        }
    }
}

impl Root {
    pub(super) fn desc(&self, nspace: &Nspace) -> Option<&JobDesc> {
        self.jobs.get(nspace).map(|job| &*job.desc)
    }

    pub(super) fn launch_submitted(&mut self, cx: &mut Cx<'_>, request: u64, job: Box<JobRequest>) {
        if let Err(error) = self.launch(cx, Some(request), &job) {
            cx.report(Report::Refused { request, error });
        }
    }

    /// Maps the job and tells everybody. The error says what, why, and a hint. `request`: the user's, if it is one.
    pub(super) fn launch(
        &mut self,
        cx: &mut Cx<'_>,
        request: Option<u64>,
        job: &JobRequest,
    ) -> Result<Nspace, String> {
        if self.shutting_down {
            return Err("the DVM is shutting down".to_owned());
        }
        let number = self.next_job;
        let (desc, placed) = self.plan(number, job)?;
        let notes = placed.map.notes.clone();
        let (nspace, desc) = (desc.nspace.clone(), Arc::new(desc));
        let descent = self.descent_of(&nspace, job);
        let runs_elsewhere = descent.run_by.is_some();
        let entry = RootJob {
            stdin: StdinFlow::new(&desc),
            cache: Cache::new(CachePlan::new(&job.info, self.config.limits.output_cache)),
            streams_over: BTreeMap::new(),
            style: job.info.iter().filter(|info| is_of_style(info)).cloned().collect(),
            stops: Stops::new(&job.info, desc.size),
            desc: desc.clone(),
            spawn: None,
            descent,
            dead: Ranges::new(),
            since: cx.now,
            running: false,
            limit: job.timeout,
            separation: Separation::of(job),
            killed_by: None,
            signalled: BTreeMap::new(),
            verdict: None,
            pids: Vec::new(),
            mpi: None,
            connected: BTreeMap::new(),
            ends: Vec::new(),
            exited: BTreeSet::new(),
            told_ending: false,
            over: false,
            logged: BTreeSet::new(),
            start_overdue: false,
            start_failure: None,
        };
        self.next_job = number.wrapping_add(1);
        self.jobs.insert(nspace.clone(), entry);
        let placed = Arc::new(placed);
        cx.report(match request {
            Some(request) => Report::Accepted { request, nspace: nspace.clone(), placed },
            None => Report::Spawned {
                nspace: nspace.clone(),
                placed,
                parent: job.parent.as_ref().map(|parent| parent.nspace.clone()),
                info: job.info.clone(),
                elsewhere: runs_elsewhere && writes_files(&job.info),
            },
        });
        for text in notes {
            cx.report(Report::Note { nspace: Some(nspace.clone()), text });
        }
        if let Some(limit) = job.timeout {
            self.timers.set(cx.now.after(limit), Timer::Limit(nspace.clone()));
        }
        cx.cast(self.nodes.all(), Down::Start(desc));
        Ok(nspace)
    }

    /// Another part of a job's start or end has arrived: those of these daemons are here.
    pub(super) fn gather_advanced(&mut self, cx: &mut Cx<'_>, op: &OpId, arrived: &Ranges) {
        let OpId::Started(nspace) = op else { return };
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let of = job.desc.size;
        let here = |rank: &u32| arrived.contains(job.desc.places.node.get(*rank));
        let done = (0..of).filter(here).count() as u32;
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
    }

    pub(super) fn job_started(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.running = true;
        let mut told = true;
        if let Part::Started { mut pids, failed } = part {
            pids.sort_unstable();
            job.pids = pids;
            // What failed may still be on its way.
            told = !failed || job.verdict.is_some();
        }
        let (done, of) = (job.pids.len() as u32, job.desc.size);
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
        if told {
            self.answer_spawn(cx, nspace);
        }
        self.ask_stdin(cx, nspace);
        self.move_pushes(cx, nspace);
    }

    pub(super) fn on_connected(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace, count: u32) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.connected.insert(from, count);
        let (done, of) = (job.connected.values().sum(), job.desc.size);
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "connecting", done, of });
    }

    pub(super) fn on_start_failed(
        &mut self,
        cx: &mut Cx<'_>,
        from: NodeId,
        proc: &ProcId,
        failure: &SpawnFailure,
    ) {
        let error = format!("starting rank {} on {}: {failure}", proc.rank, self.nodes.name(from));
        if let Some(job) = self.jobs.get_mut(&proc.nspace) {
            job.start_failure.get_or_insert(failure.clone());
        }
        self.end_job(cx, &proc.nspace, JobVerdict::NotStarted { error });
        if self.jobs.get_mut(&proc.nspace).is_some_and(|job| job.running) {
            self.answer_spawn(cx, &proc.nspace);
        }
    }
}

fn is_of_style(info: &Info) -> bool {
    STYLE_ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str()))
}
