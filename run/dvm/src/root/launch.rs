//! The start of jobs: from the request until their processes run.

use std::sync::Arc;

use phalanx_core::output::Style;
use phalanx_core::{HostReply, Time};
use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::{App, Info, InfoList, Nspace, ProcId};

use crate::id::NodeId;
use crate::job::{JobRequest, JobVerdict};
use crate::msg::{Down, OpId, Part, Reached, SpawnFailure};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::Root;
use crate::root::answer::{Answer, Asker};
use crate::root::descent::{Descent, RunBy, Separation};
use crate::root::dvm::Dvm;
use crate::root::iof::{self, OUTPUTS};
use crate::root::jobs::RootJob;
use crate::root::journal::What;
use crate::root::operations::Taken;
use crate::root::slots::Cramped;
use crate::root::spawn::{Postponed, Spawning, Unfit, writes_files};
use crate::root::timer::Timer;
use crate::root::turn::Cx;
use crate::root::{debug, lifecycle, placing, plan, slots, spawn};

impl Root {
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
        let (placed, premises) = placing::place(&self.dvm, job)?;
        let size = placed.map.procs.len();
        job.stdin.check(size as u64)?;
        debug::check_ranks(&job.info, size)?;
        let desc = plan::plan(&self.dvm, number, job, &placed, &premises.nodes)?;
        let notes = placed.map.notes.clone();
        let (nspace, desc) = (desc.nspace.clone(), Arc::new(desc));
        let descent = descent_of(&self.dvm, &nspace, job);
        let run_by = descent.run_by.as_ref().map(|by| by.tool.clone());
        let runs_elsewhere = run_by.is_some();
        let logs = lifecycle::ATTRIBUTES.iter().copied().filter(|key| job.info.is_set(key)).collect();
        let journal = self.dvm.journals.begin(cx.now, submitted, (desc.clone(), premises), run_by);
        let ends_alone = Separation::of(job);
        let entry = RootJob::new(desc.clone(), (descent, ends_alone), journal, job.timeout, logs);
        self.inputs.begin(&desc);
        self.readers.begin(&nspace, &job.info, self.dvm.config.limits.output_cache);
        self.next_job = number.wrapping_add(1);
        self.dvm.jobs.insert(nspace.clone(), entry);
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
            self.dvm.tell_user_of(cx, &ProcId::all(&nspace), &text);
        }
        if let Some(limit) = job.timeout {
            self.timers.set(cx.now.after(limit), Timer::Limit(nspace.clone()));
        }
        cx.cast(self.dvm.nodes.all(), Down::Start(desc));
        debug::begin_stops(cx, &self.dvm, &mut self.operations, &nspace, &job.info);
        Ok(nspace)
    }

    pub(super) fn spawn(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        job: &[Info],
        apps: &[App],
    ) {
        let job = match spawn::to_request(&self.dvm, from, job, apps) {
            Ok(job) => job,
            Err(Unfit { status, why }) => {
                // A tool gets each message; the user of a job that spawns again and again gets it once.
                if self.dvm.is_tool(from) || spawn::is_first_unsupported(&mut self.unsupported, from, &why) {
                    spawn::tell_parent(cx, &self.dvm, from, &why);
                }
                return answer.done(cx, status);
            }
        };
        if let Err(bad) = Style::default().overlaid(&job.info) {
            spawn::tell_parent(cx, &self.dvm, from, &bad.to_string());
            return answer.done(cx, Status::ERR_BAD_PARAM);
        }
        spawn::tell_ignored(cx, &self.dvm, &mut self.unsupported, from, &job.info);
        let until = job.start_timeout.map(|limit| cx.now.after(limit));
        let asker = Asker::new(from, answer);
        if self.dvm.nodes.are_up() {
            return self.launch_spawned(cx, asker, cx.now, until, &job);
        }
        if let Some(error) = self.dvm.nodes.failure() {
            return self.refuse_spawn(cx, asker, &error);
        }
        self.operations.begin(cx, Some(asker), until, Postponed(Box::new(job)));
    }

    /// The daemons are up: launches the spawns that have waited for them, in the order of the requests.
    pub(super) fn launch_postponed(&mut self, cx: &mut Cx<'_>) {
        for Taken { kind: Postponed(job), askers, since, until } in
            spawn::take_postponed(&mut self.operations)
        {
            for asker in askers {
                self.launch_spawned(cx, asker, since, until, &job);
            }
        }
    }

    /// The daemons will never be up, or the DVM ends.
    pub(super) fn refuse_postponed(&mut self, cx: &mut Cx<'_>, error: &str) {
        for number in slots::waiting(&self.operations) {
            let cramped = self.operations.take::<Cramped>(number);
            let askers = cramped.into_iter().flat_map(|cramped| cramped.askers);
            askers.for_each(|asker| self.refuse_spawn(cx, asker, error));
        }
        for postponed in spawn::take_postponed(&mut self.operations) {
            postponed.askers.into_iter().for_each(|asker| self.refuse_spawn(cx, asker, error));
        }
    }

    fn refuse_spawn(&mut self, cx: &mut Cx<'_>, asker: Asker, error: &str) {
        spawn::tell_failed(cx, &self.dvm, &asker.by, error);
        asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_NOT_AVAILABLE)));
    }

    /// Slots have come back, or will not: launches or refuses the spawns that have waited for them, in the order of the
    /// requests.
    pub(super) fn launch_cramped(&mut self, cx: &mut Cx<'_>) {
        slots::waiting(&self.operations).into_iter().for_each(|number| self.try_cramped(cx, number));
    }

    pub(super) fn try_cramped(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(cramped) = self.operations.get_mut(number) else { return };
        match slots::waits_until(cx.now, &self.dvm, cramped) {
            Some(at) => self.operations.move_limit(number, at),
            None => self.end_wait_for_slots(cx, number),
        }
    }

    fn end_wait_for_slots(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(Taken { kind, askers, since, .. }) = self.operations.take::<Cramped>(number) else { return };
        let is_late = kind.until.is_some_and(|until| until <= cx.now);
        let otherwise = if is_late { Status::ERR_TIMEOUT } else { Status::ERR_JOB_FAILED_TO_MAP };
        for asker in askers {
            if !slots::has_requester(&self.dvm, &kind.job) {
                asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_LOST_CONNECTION)));
                continue;
            }
            match self.launch(cx, None, kind.submitted, &kind.job) {
                Ok(child) => self.spawned(cx, asker, kind.until, &child, &kind.job),
                Err(error) => {
                    let error = slots::in_vain(&self.dvm.jobs, &error, cx.now.since(since));
                    spawn::tell_failed(cx, &self.dvm, &asker.by, &error);
                    asker.answer.give(cx, HostReply::Spawned(Err(otherwise)));
                }
            }
        }
    }

    /// `submitted`: when the spawn was requested.
    fn launch_spawned(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        submitted: Time,
        until: Option<Time>,
        job: &JobRequest,
    ) {
        match self.launch(cx, None, submitted, job) {
            Ok(child) => self.spawned(cx, asker, until, &child, job),
            Err(_) if !self.shutting_down && slots::may_come(&self.dvm, job) => {
                slots::wait(cx, &self.dvm, &mut self.operations, asker, (submitted, until), job);
            }
            Err(error) => {
                spawn::tell_failed(cx, &self.dvm, &asker.by, &error);
                asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP)));
            }
        }
    }

    /// The job of a spawn is on its way to the daemons.
    fn spawned(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        until: Option<Time>,
        child: &Nspace,
        job: &JobRequest,
    ) {
        let spawning = Spawning { nspace: child.clone() };
        let spawn = self.operations.begin(cx, Some(asker), until, spawning);
        if let Some(job) = self.dvm.jobs.get_mut(child) {
            job.spawn = spawn;
        }
        let run_by = self.dvm.jobs.get_mut(child).and_then(|job| job.descent.run_by.clone());
        let (files, only) = (writes_files(&job.info), job.info.is_set(keys::IOF_FILE_ONLY));
        if let Some(by) = run_by.filter(|_| !(files && only)) {
            // The user's side writes the files, wherever else the output goes.
            let channels = IofChannel(by.channels.0 & OUTPUTS.0);
            iof::pull_for_parent(&mut self.readers, by.node, &by.tool, child, channels, files);
        }
    }

    /// More parts of a job's start have arrived; `arrived` are the daemons that have sent theirs.
    pub(super) fn gather_advanced(&mut self, cx: &mut Cx<'_>, op: &OpId, arrived: &Ranges) {
        let OpId::Started(nspace) = op else { return };
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
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
        if self.dvm.jobs.get(nspace).is_none_or(|job| job.journal.has_begun()) {
            return;
        }
        let concerned = self.dvm.concerned(nspace);
        lifecycle::enter(cx, &mut self.dvm, nspace, What::Began { concerned });
        lifecycle::log_for(cx, &self.dvm, nspace, &[keys::LOG_JOB_EVENTS], "the first process has started");
    }

    pub(super) fn job_started(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(first) = self.dvm.jobs.get(nspace).map(|job| job.descent.first.clone()) else { return };
        let concerned: Arc<[Nspace]> = self.dvm.relations.concerned_by(&self.dvm.jobs, nspace, &first).into();
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        let (mut pids, programs, failed, after) = match part {
            Part::Started { pids, programs, failed, after } => (pids, programs, failed, after),
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
        let what = What::Started { pids, programs, after, whole, concerned };
        lifecycle::enter(cx, &mut self.dvm, nspace, what);
        if whole {
            lifecycle::log_for(cx, &self.dvm, nspace, &[keys::LOG_JOB_EVENTS], "all processes have started");
        }
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
        if told {
            self.answer_spawn(cx, nspace);
        }
        self.inputs.ask(cx, &self.dvm, nspace);
        self.inputs.move_pushes(cx, &self.dvm, nspace);
    }

    pub(super) fn on_connected(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace, reached: Reached) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        let all = job.connect(from, reached);
        let (done, of) = (all.count, job.desc.size);
        let what = What::Connected { count: done, after: all.after };
        self.dvm.journals.append(&mut job.journal, cx.now, what);
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "connecting", done, of });
    }

    /// Each process of the job runs, or never will: answers the spawner, once.
    pub(super) fn answer_spawn(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        let status = job.journal.start_status();
        if let Some(spawn) = job.spawn.take() {
            let why = match job.journal.verdict() {
                Some(JobVerdict::NotStarted { error }) if !status.is_success() => Some(error.clone()),
                // It may have failed already, but it did run.
                _ => None,
            };
            if let Some((parent, error)) = job.desc.parent.clone().zip(why) {
                spawn::tell_failed(cx, &self.dvm, &parent, &error);
            }
            let result = if status.is_success() { Ok(nspace.clone()) } else { Err(status) };
            spawn::end(cx, &mut self.operations, spawn, &result);
        }
        iof::begin_for_parent(cx, &mut self.readers, nspace);
    }

    pub(super) fn on_start_failed(
        &mut self,
        cx: &mut Cx<'_>,
        from: NodeId,
        proc: &ProcId,
        failure: &SpawnFailure,
    ) {
        let error = format!("starting rank {} on {}: {failure}", proc.rank, self.dvm.nodes.name(from));
        let (ranks, failure) = (Ranges::single(proc.rank.0), failure.clone());
        self.dvm.append(cx, &proc.nspace, What::StartFailed { ranks, failure });
        self.end_job(cx, &proc.nspace, JobVerdict::NotStarted { error });
        if self.dvm.jobs.get(&proc.nspace).is_some_and(|job| job.journal.has_started()) {
            self.answer_spawn(cx, &proc.nspace);
        }
    }
}

/// The descent of a job that is about to start.
fn descent_of(dvm: &Dvm, nspace: &Nspace, job: &JobRequest) -> Descent {
    let family = job.parent.as_ref().and_then(|parent| dvm.jobs.get(&parent.nspace)).map(|job| &job.descent);
    let first = family.map_or(nspace, |family| &family.first).clone();
    let run_by = match (&job.parent, family) {
        (None, _) => None,
        (Some(_), Some(family)) if !job.info.is_set(keys::REQUESTOR_IS_TOOL) => {
            let by = family.run_by.clone().filter(|by| dvm.is_tool(&by.tool));
            by.map(|by| RunBy { ends_with_it: by.ends_with_it && !job.info.is_set(keys::NOHUP), ..by })
        }
        (Some(tool), _) => dvm.node_of(tool).map(|node| RunBy {
            tool: tool.clone(),
            node,
            channels: job.forward.unwrap_or(IofChannel::ALL),
            ends_with_it: !job.info.is_set(keys::NOHUP),
        }),
    };
    Descent { first, run_by }
}
