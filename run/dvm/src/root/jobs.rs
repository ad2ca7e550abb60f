//! The jobs: from the request until their processes run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::output::STYLE_ATTRIBUTES;
use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobRequest, JobVerdict};
use crate::msg::{Down, JobDesc, OpId, Part, Reached, SpawnFailure};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::Root;
use crate::root::abilities::Abilities;
use crate::root::debug;
use crate::root::descent::{Descent, Separation};
use crate::root::iof::{Cache, CachePlan};
use crate::root::journal::{Journal, What};
use crate::root::lifecycle;
use crate::root::pauses::Pauses;
use crate::root::spawn::writes_files;
use crate::root::stdin::StdinFlow;
use crate::root::timer::Timer;
use crate::root::turn::Cx;

#[derive(Debug)]
pub(super) struct RootJob {
    pub(super) desc: Arc<JobDesc>,
    /// The operation of its spawner, until that has been answered.
    pub(super) spawn: Option<u64>,
    pub(super) descent: Descent,
    /// Ranks that have failed while the job goes on.
    pub(super) dead: Ranges,
    /// Ranks that job control has ended.
    pub(super) killed: Ranges,
    /// What its ranks have registered for checkpoints.
    pub(super) abilities: Abilities,
    /// How often each rank was started again.
    pub(super) restarts: BTreeMap<u32, u32>,
    /// Ranks that are being started again.
    pub(super) restarting: Ranges,
    pub(super) pauses: Pauses,
    /// Its history.
    pub(super) journal: Journal,
    pub(super) limit: Option<Duration>,
    pub(super) separation: Separation,
    pub(super) stdin: StdinFlow,
    pub(super) cache: Cache,
    /// The channels of each rank that have ended.
    pub(super) streams_over: BTreeMap<Rank, u16>,
    /// The directives of the request on the format of output.
    pub(super) style: Vec<Info>,
    /// Processes that have called init, by daemon.
    connected: BTreeMap<NodeId, Reached>,
    /// The daemons that have reported the end of all their processes.
    pub(super) exited: BTreeSet<NodeId>,
    /// The user was notified that the job is ending.
    pub(super) told_ending: bool,
    /// The kinds of lifecycle lines that the request asks for.
    pub(super) logs: Vec<&'static str>,
    /// Kinds of aggregated log messages that were already shown.
    pub(super) logged: BTreeSet<String>,
}

impl RootJob {
    /// Ranks that have failed while the job goes on, and are not being started again.
    pub(super) fn gone(&self) -> Ranges {
        self.dead.iter().filter(|rank| !self.restarting.contains(*rank)).collect()
    }

    /// What the job is called if all ranks that have not failed stand.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let gone = self.gone();
        self.pauses.word(&self.desc.ranks().iter().filter(|rank| !gone.contains(*rank)).collect())
    }
}

/// The jobs that have not ended everywhere.
pub(super) type Jobs = BTreeMap<Nspace, RootJob>;

impl Root {
    pub(super) fn desc(&self, nspace: &Nspace) -> Option<&JobDesc> {
        self.jobs.get(nspace).map(|job| &*job.desc)
    }

    pub(super) fn launch_submitted(
        &mut self,
        cx: &mut Cx<'_>,
        submitted: Time,
        request: u64,
        job: Box<JobRequest>,
    ) {
        if let Err(error) = self.launch(cx, Some(request), submitted, &job) {
            cx.report(Report::Refused { request, error });
        }
    }

    /// Maps the job and sends it to all daemons. The error states what failed, why, and a hint. `request`: the user's request,
    /// if there is one.
    pub(super) fn launch(
        &mut self,
        cx: &mut Cx<'_>,
        request: Option<u64>,
        submitted: Time,
        job: &JobRequest,
    ) -> Result<Nspace, String> {
        if self.shutting_down {
            return Err("the DVM is shutting down".to_owned());
        }
        let number = self.next_job;
        let (placed, premises) = self.place(job)?;
        let size = placed.map.procs.len();
        job.stdin.check(size as u64)?;
        debug::check_ranks(&job.info, size)?;
        let desc = self.plan(number, job, &placed, &premises.nodes)?;
        let notes = placed.map.notes.clone();
        let (nspace, desc) = (desc.nspace.clone(), Arc::new(desc));
        let descent = self.descent_of(&nspace, job);
        let run_by = descent.run_by.as_ref().map(|by| by.tool.clone());
        let runs_elsewhere = run_by.is_some();
        let entry = RootJob {
            stdin: StdinFlow::new(&desc),
            cache: Cache::new(CachePlan::new(&job.info, self.config.limits.output_cache)),
            streams_over: BTreeMap::new(),
            style: job.info.iter().filter(|info| is_of_style(info)).cloned().collect(),
            desc: desc.clone(),
            spawn: None,
            descent,
            dead: Ranges::new(),
            killed: Ranges::new(),
            abilities: Abilities::default(),
            restarts: BTreeMap::new(),
            restarting: Ranges::new(),
            pauses: Pauses::default(),
            journal: self.journals.begin(cx.now, submitted, (desc.clone(), premises), run_by),
            limit: job.timeout,
            separation: Separation::of(job),
            connected: BTreeMap::new(),
            exited: BTreeSet::new(),
            told_ending: false,
            logs: lifecycle::ATTRIBUTES.iter().copied().filter(|key| job.info.is_set(key)).collect(),
            logged: BTreeSet::new(),
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
            self.tell_user_of(cx, &ProcId::all(&nspace), &text);
        }
        if let Some(limit) = job.timeout {
            self.timers.set(cx.now.after(limit), Timer::Limit(nspace.clone()));
        }
        cx.cast(self.nodes.all(), Down::Start(desc));
        self.begin_stops(cx, &nspace, &job.info);
        Ok(nspace)
    }

    /// More parts of a job's start have arrived; `arrived` are the daemons that have sent theirs.
    pub(super) fn gather_advanced(&mut self, cx: &mut Cx<'_>, op: &OpId, arrived: &Ranges) {
        let OpId::Started(nspace) = op else { return };
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let of = job.desc.size;
        let here = |rank: &u32| arrived.contains(job.desc.places.node.get(*rank));
        let done = (0..of).filter(here).count() as u32;
        let failed = job.journal.start_failures();
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
        if done > failed {
            self.job_began(cx, nspace);
        }
    }

    /// The first of its processes runs.
    pub(super) fn job_began(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get(nspace).filter(|job| !job.journal.has_begun()) else { return };
        let first = job.descent.first.clone();
        let concerned: Arc<[Nspace]> = self.relations.concerned_by(&self.jobs, nspace, &first).into();
        let what = What::Began { concerned: concerned.clone() };
        let number = self.append(cx, nspace, what).unwrap_or_default();
        self.interests.tell_job_start(cx, nspace, self.stamp(number, cx.now), concerned);
        self.log_for(cx, nspace, &[keys::LOG_JOB_EVENTS], "the first process has started");
    }

    pub(super) fn job_started(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(first) = self.jobs.get(nspace).map(|job| job.descent.first.clone()) else { return };
        let concerned: Arc<[Nspace]> = self.relations.concerned_by(&self.jobs, nspace, &first).into();
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let (mut pids, failed, after) = match part {
            Part::Started { pids, failed, after } => (pids, failed, after),
            _ => Default::default(),
        };
        pids.sort_unstable();
        let (done, of) = (pids.len() as u32, job.desc.size);
        let whole = done == of;
        // The report of the failure may still be on its way.
        let told = !failed || job.journal.verdict().is_some();
        if done > 0 {
            self.job_began(cx, nspace);
        }
        let what = What::Started { pids, after, whole, concerned: concerned.clone() };
        let number = self.append(cx, nspace, what).unwrap_or_default();
        if whole {
            self.interests.tell_launch_complete(cx, nspace, self.stamp(number, cx.now), concerned);
            self.log_for(cx, nspace, &[keys::LOG_JOB_EVENTS], "all processes have started");
        }
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
        if told {
            self.answer_spawn(cx, nspace);
        }
        self.ask_stdin(cx, nspace);
        self.move_pushes(cx, nspace);
    }

    pub(super) fn on_connected(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace, reached: Reached) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        job.connected.insert(from, reached);
        let mut all = Reached::default();
        job.connected.values().for_each(|reached| all.merge(*reached));
        let (done, of) = (all.count, job.desc.size);
        let what = What::Connected { count: done, after: all.after };
        self.journals.append(&mut job.journal, cx.now, what);
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
        let (ranks, failure) = (Ranges::single(proc.rank.0), failure.clone());
        self.append(cx, &proc.nspace, What::StartFailed { ranks, failure });
        self.end_job(cx, &proc.nspace, JobVerdict::NotStarted { error });
        if self.jobs.get(&proc.nspace).is_some_and(|job| job.journal.has_started()) {
            self.answer_spawn(cx, &proc.nspace);
        }
    }
}

fn is_of_style(info: &Info) -> bool {
    STYLE_ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str()))
}
