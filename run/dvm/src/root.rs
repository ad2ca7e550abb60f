//! The root's table of jobs: from the request to the report of its end.
//!
//! Here alone is decided what the end of one process means for the others. The first reason for a job's end is the one
//! that is told; whatever it causes is a consequence, not a culprit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::output::STYLE_ATTRIBUTES;
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Info, Nspace, ProcId};

use crate::cleanup::Spreads;
use crate::daemon::{Cx, Daemon};
use crate::debug::Stops;
use crate::descent::{self, RunBy};
use crate::effect::{Effect, Report};
use crate::event::Interests;
use crate::group::Assemblies;
use crate::history::{History, Past};
use crate::id::NodeId;
use crate::iof::{Cache, CachePlan};
use crate::job::{JobEnd, JobRequest, JobVerdict};
use crate::msg::{
    Control, Down, EndGroup, ExitStatus, FailurePolicy, JobDesc, OpId, Part, ProcEnd, SpawnFailure,
};
use crate::publish::Store;
use crate::ranges::Ranges;
use crate::relations::Relations;
use crate::signals::{SIGKILL, SIGTERM};
use crate::spawn::writes_files;
use crate::stdin::StdinFlow;
use crate::survey::Surveys;
use crate::survivors::Survivals;
use crate::timers::Timer;
use crate::tool::Tools;

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) jobs: BTreeMap<Nspace, RootJob>,
    pub(crate) next_job: u32,
    pub(crate) store: Store,
    pub(crate) interests: Interests,
    pub(crate) relations: Relations,
    pub(crate) last_context: u64,
    pub(crate) assemblies: Assemblies,
    pub(crate) survivals: Survivals,
    pub(crate) spreads: Spreads,
    pub(crate) tools: Tools,
    pub(crate) surveys: Surveys,
    pub(crate) history: History,
    shutting_down: bool,
}

#[derive(Debug)]
pub(crate) struct RootJob {
    pub(crate) desc: Arc<JobDesc>,
    pub(crate) asked_by: AskedBy,
    /// The job that its spawner, and that one's spawner, descend from; its own namespace if no job has spawned it.
    pub(crate) origin: Nspace,
    pub(crate) since: Time,
    pub(crate) running: bool,
    pub(crate) limit: Option<Duration>,
    pub(crate) run_by: Option<RunBy>,
    /// It may go on when its parent has ended well.
    pub(crate) is_separate: bool,
    /// Who has ended some of its processes, by job control, with which signal.
    killed_by: Option<(ProcId, i32)>,
    pub(crate) verdict: Option<JobVerdict>,
    /// Rank and pid, by rank.
    pub(crate) pids: Vec<(u32, u32)>,
    pub(crate) stdin: StdinFlow,
    pub(crate) cache: Cache,
    /// The channels of each rank that have ended.
    pub(crate) streams_over: BTreeMap<Rank, u16>,
    /// What the request said of how output looks.
    pub(crate) style: Vec<Info>,
    pub(crate) stops: Stops,
    /// Processes that have called init, by daemon.
    connected: BTreeMap<NodeId, u32>,
    ends: Vec<EndGroup>,
    /// The daemons whose processes have all ended, as far as they have said so.
    exited: BTreeSet<NodeId>,
    /// The user knows that it ends.
    told_ending: bool,
    over: bool,
    /// Kinds of log messages that were shown.
    pub(crate) logged: BTreeSet<String>,
    /// Starting it has taken longer than the spawn allows.
    start_overdue: bool,
    /// Why its first process that could not be started was not.
    start_failure: Option<SpawnFailure>,
}

#[derive(Clone, Debug)]
pub(crate) enum AskedBy {
    User(u64),
    /// A process, through its daemon's request.
    Process {
        node: NodeId,
        request: u64,
    },
    /// Who asked has its answer.
    Answered,
}

impl RootJob {
    pub(crate) fn pid(&self, rank: Rank) -> Option<u32> {
        let at = self.pids.binary_search_by_key(&rank.0, |(rank, _)| *rank).ok()?;
        self.pids.get(at).map(|(_, pid)| *pid)
    }

    /// How the spawn went, once all processes run or never will. What fails later is no failure of the spawn.
    pub(crate) fn start_status(&self) -> Status {
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
    pub(crate) fn new(first_job: u32) -> Root {
        Root {
            jobs: BTreeMap::new(),
            next_job: first_job,
            store: Store::default(),
            interests: Interests::default(),
            relations: Relations::default(),
            last_context: 0,
            assemblies: Assemblies::default(),
            survivals: Survivals::default(),
            spreads: Spreads::default(),
            tools: Tools::default(),
            surveys: Surveys::default(),
            history: History::default(),
            shutting_down: false,
        }
    }
}

impl Daemon {
    pub(crate) fn root_job(&mut self, nspace: &Nspace) -> Option<&mut RootJob> {
        self.root.as_mut()?.jobs.get_mut(nspace)
    }

    pub(crate) fn launch_submitted(&mut self, cx: &mut Cx<'_>, request: u64, job: Box<JobRequest>) {
        if let Err(error) = self.launch(cx, AskedBy::User(request), &job) {
            cx.report(Report::Refused { request, error });
        }
    }

    /// Maps the job and tells everybody. The error says what, why, and a hint.
    pub(crate) fn launch(
        &mut self,
        cx: &mut Cx<'_>,
        asked_by: AskedBy,
        job: &JobRequest,
    ) -> Result<Nspace, String> {
        let Some(root) = &mut self.root else {
            return Err("jobs are accepted by the root daemon".to_owned());
        };
        if root.shutting_down {
            return Err("the DVM is shutting down".to_owned());
        }
        let number = root.next_job;
        let (desc, placed) = self.plan(number, job)?;
        let notes = placed.map.notes.clone();
        let (nspace, desc) = (desc.nspace.clone(), Arc::new(desc));
        let run_by = self.run_by(job);
        let entry = RootJob {
            stdin: StdinFlow::new(&desc),
            cache: Cache::new(CachePlan::new(&job.info, self.config.limits.output_cache)),
            streams_over: BTreeMap::new(),
            style: job.info.iter().filter(|info| is_of_style(info)).cloned().collect(),
            stops: Stops::new(&job.info, desc.size),
            desc: desc.clone(),
            asked_by: asked_by.clone(),
            origin: self.origin_of(&desc),
            since: cx.now,
            running: false,
            limit: job.timeout,
            run_by: run_by.clone(),
            is_separate: descent::is_separate(job),
            killed_by: None,
            verdict: None,
            pids: Vec::new(),
            connected: BTreeMap::new(),
            ends: Vec::new(),
            exited: BTreeSet::new(),
            told_ending: false,
            over: false,
            logged: BTreeSet::new(),
            start_overdue: false,
            start_failure: None,
        };
        if let Some(root) = &mut self.root {
            root.next_job = number.wrapping_add(1);
            root.jobs.insert(nspace.clone(), entry);
        }
        let placed = Arc::new(placed);
        cx.report(match asked_by {
            AskedBy::User(request) => Report::Accepted { request, nspace: nspace.clone(), placed },
            _ => Report::Spawned {
                nspace: nspace.clone(),
                placed,
                parent: job.parent.as_ref().map(|parent| parent.nspace.clone()),
                info: job.info.clone(),
                elsewhere: run_by.is_some() && writes_files(&job.info),
            },
        });
        for text in notes {
            cx.report(Report::Note { nspace: Some(nspace.clone()), text });
        }
        if let Some(limit) = job.timeout {
            self.timers.set(cx.now.after(limit), Timer::Limit(nspace.clone()));
        }
        if let Some(limit) = job.start_timeout {
            self.timers.set(cx.now.after(limit), Timer::StartLimit(nspace.clone()));
        }
        self.cast_all(cx, Down::Start(desc));
        Ok(nspace)
    }

    /// Another part of a job's start or end has arrived at the root.
    pub(crate) fn gather_advanced(&mut self, cx: &mut Cx<'_>, op: &OpId) {
        let OpId::Started(nspace) = op else { return };
        let Some(arrived) = self.overlay.arrived_parts(op) else { return };
        let Some(job) = self.root_job(nspace) else { return };
        let of = job.desc.size;
        let here = |rank: &u32| arrived.contains(job.desc.places.node.get(*rank));
        let done = (0..of).filter(here).count() as u32;
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "starting", done, of });
    }

    pub(crate) fn job_started(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(job) = self.root_job(nspace) else { return };
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

    pub(crate) fn on_connected(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace, count: u32) {
        let Some(job) = self.root_job(nspace) else { return };
        job.connected.insert(from, count);
        let (done, of) = (job.connected.values().sum(), job.desc.size);
        cx.report(Report::Progress { nspace: nspace.clone(), phase: "connecting", done, of });
    }

    pub(crate) fn on_start_failed(
        &mut self,
        cx: &mut Cx<'_>,
        from: NodeId,
        proc: &ProcId,
        failure: &SpawnFailure,
    ) {
        let error = format!("starting rank {} on {}: {failure}", proc.rank, self.node_name(from));
        if let Some(job) = self.root_job(&proc.nspace) {
            job.start_failure.get_or_insert(failure.clone());
        }
        self.end_job(cx, &proc.nspace, JobVerdict::NotStarted { error });
        if self.root_job(&proc.nspace).is_some_and(|job| job.running) {
            self.answer_spawn(cx, &proc.nspace);
        }
    }

    /// A process has ended badly.
    pub(crate) fn on_proc_failed(&mut self, cx: &mut Cx<'_>, end: &ProcEnd) {
        let nspace = &end.proc.nspace;
        let Some(job) = self.root_job(nspace).filter(|job| !job.over) else { return };
        if job.desc.on_failure.ends_job(end) {
            self.tell_proc_event(cx, end);
            return self.end_job(cx, nspace, JobVerdict::Failed { first: end.clone() });
        }
        let (ranks, mut to) = (Ranges::single(end.proc.rank.0), job.desc.nodes.clone());
        to.insert(NodeId::ROOT.0);
        self.cast(cx, to, Down::Dead { nspace: nspace.clone(), ranks });
        self.tell_proc_event(cx, end);
    }

    pub(crate) fn on_abort(
        &mut self,
        cx: &mut Cx<'_>,
        from: &ProcId,
        status: Status,
        message: &str,
        procs: &[ProcId],
    ) {
        let mut chosen: BTreeMap<Nspace, Ranges> = BTreeMap::new();
        let whole = ProcId::all(&from.nspace);
        for proc in if procs.is_empty() { std::slice::from_ref(&whole) } else { procs } {
            let Some(job) = self.root_job(&proc.nspace) else { continue };
            let all = job.desc.ranks();
            let ranks = chosen.entry(proc.nspace.clone()).or_default();
            if proc.rank == Rank::WILDCARD { ranks.add(&all) } else { ranks.insert(proc.rank.0) }
        }
        for (nspace, ranks) in chosen {
            let Some(job) = self.root_job(&nspace) else { continue };
            if ranks.count() >= job.desc.size || job.desc.on_failure != FailurePolicy::Continue {
                let verdict = JobVerdict::Aborted { by: from.clone(), status, message: message.to_owned() };
                self.end_job(cx, &nspace, verdict);
            } else {
                let to = job.desc.nodes_of(&ranks);
                self.note_killed(&nspace, &ranks, from, SIGTERM);
                self.cast(cx, to, Down::Control { nspace, ranks: Some(ranks), action: TERMINATE });
            }
        }
    }

    pub(crate) fn on_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(limit) = self.root_job(nspace).and_then(|job| job.limit) else { return };
        self.end_job(cx, nspace, JobVerdict::TimedOut { limit });
    }

    /// Whoever has spawned the job waits no longer for its processes to run.
    pub(crate) fn on_start_limit(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.running) else { return };
        let seconds = cx.now.since(job.since).as_secs();
        let error = format!("the job has not started within {seconds} s, the time limit of the spawn");
        job.start_overdue = true;
        self.end_job(cx, nspace, JobVerdict::NotStarted { error });
        self.answer_spawn(cx, nspace);
    }

    /// The user wants something done to a job.
    pub(crate) fn on_control(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, control: Control) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.over) else { return };
        let to = job.desc.nodes.clone();
        match control {
            Control::Signal(_) | Control::Suspend | Control::Resume => {}
            Control::Terminate { signal } => {
                return self.end_job(cx, nspace, JobVerdict::Cancelled { signal });
            }
            Control::Kill => {
                job.verdict.get_or_insert(JobVerdict::Cancelled { signal: SIGKILL });
                self.tell_ending(cx, nspace);
                self.abandon_taps_of(cx, nspace);
            }
        }
        self.cast(cx, to, Down::Control { nspace: nspace.clone(), ranks: None, action: control });
    }

    /// A process ends processes of a job, by job control.
    pub(crate) fn note_killed(&mut self, nspace: &Nspace, ranks: &Ranges, by: &ProcId, signal: i32) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.over) else { return };
        job.killed_by.get_or_insert_with(|| (by.clone(), signal));
        if ranks.count() >= job.desc.size {
            job.verdict.get_or_insert_with(|| JobVerdict::Killed { by: by.clone(), signal });
        }
    }

    /// The job is to end, for this reason unless it had one already.
    pub(crate) fn end_job(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, verdict: JobVerdict) {
        let Some(job) = self.root_job(nspace).filter(|job| job.verdict.is_none() && !job.over) else {
            return;
        };
        job.verdict = Some(verdict);
        let to = job.desc.nodes.clone();
        self.tell_ending(cx, nspace);
        self.watch_readers(cx, nspace);
        self.cast(cx, to, Down::Control { nspace: nspace.clone(), ranks: None, action: TERMINATE });
    }

    /// All processes of one daemon have ended.
    pub(crate) fn on_node_exited(&mut self, cx: &mut Cx<'_>, from: NodeId, nspace: &Nspace) {
        let Some(job) = self.root.as_mut().and_then(|root| root.jobs.get_mut(nspace)) else { return };
        job.exited.insert(from);
        let is_gone = |node: u32| job.exited.contains(&NodeId(node)) || self.overlay.is_lost(NodeId(node));
        if job.desc.nodes.iter().all(is_gone) {
            self.tell_ending(cx, nspace);
        }
    }

    fn tell_ending(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.root_job(nspace) else { return };
        if !std::mem::replace(&mut job.told_ending, true) {
            cx.report(Report::Ending { nspace: nspace.clone() });
        }
    }

    /// Processes on a lost node are lost with it.
    pub(crate) fn lose_processes(&mut self, cx: &mut Cx<'_>, node: NodeId, why: &str) {
        let name = self.node_name(node);
        let Some(root) = &mut self.root else { return };
        let concerned = |job: &&RootJob| job.desc.nodes.contains(node.0) && !job.over;
        let jobs: Vec<Arc<JobDesc>> =
            root.jobs.values().filter(concerned).map(|job| job.desc.clone()).collect();
        cx.report(Report::Note {
            nspace: None,
            text: format!("node {name} (daemon {}) is lost: {why}", node.0),
        });
        for desc in jobs {
            self.lose_streams(cx, &desc, &desc.ranks_on(node));
            if desc.on_failure == FailurePolicy::Continue {
                let dead = Down::Dead { nspace: desc.nspace.clone(), ranks: desc.ranks_on(node) };
                let mut to = desc.nodes.clone();
                to.insert(NodeId::ROOT.0);
                self.cast(cx, to, dead);
            } else {
                self.end_job(cx, &desc.nspace, JobVerdict::NodeLost { node: name.to_string() });
            }
            // Nobody else may be left to contribute.
            self.reconsider_gather(cx, OpId::Started(desc.nspace.clone()));
            self.reconsider_gather(cx, OpId::Ended(desc.nspace.clone()));
        }
    }

    pub(crate) fn job_ended(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, part: Part) {
        let Some(job) = self.root_job(nspace).filter(|job| !job.over) else { return };
        job.over = true;
        if let Part::Ends(ends) = part {
            job.ends = ends;
        }
        self.withdraw_published(cx, nspace);
        if let Some(root) = &mut self.root {
            root.spreads.forget(nspace);
            root.survivals.forget(nspace);
        }
        self.cast_all(cx, Down::Forget { nspace: nspace.clone() });
    }

    /// Nothing of the job is left here: the user is told of its end.
    pub(crate) fn tell_end(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(mut job) = self.root.as_mut().and_then(|root| root.jobs.remove(nspace)) else { return };
        self.answer_spawn_of(cx, &job);
        self.refuse_pushes(cx, std::mem::take(&mut job.stdin));
        let (desc, since) = (job.desc.clone(), job.since);
        // A job that its parent was told had failed to start is nobody's job.
        let is_known = desc.parent.is_none() || job.start_status().is_success();
        let concerned = self.concerned_by(nspace, &job.origin);
        self.end_for_parent(cx, nspace);
        self.forget_readers_of(nspace);
        self.forget_unread_of(&ProcId::all(nspace));
        self.keep_unread(&mut job);
        let run_by = job.run_by.take().map(|by| by.tool);
        let end = self.job_end(cx.now, job);
        self.end_children(cx, &end);
        if is_known {
            self.tell_job_end_event(cx, &end, concerned);
        }
        if let Some(root) = &mut self.root {
            root.relations.forget(nspace);
            root.history.add(Past { desc, run_by, end: end.clone(), since, ended: cx.now });
        }
        cx.report(Report::Ended(Box::new(end)));
        self.stop_when_idle(cx);
    }

    fn job_end(&self, now: Time, job: RootJob) -> JobEnd {
        let desc = &job.desc;
        let lost = ProcEnd {
            proc: ProcId::new(&desc.nspace, Rank(0)),
            node: String::new(),
            pid: None,
            status: None,
            after: now.since(job.since),
            killed_by_us: false,
            lost_connection: false,
        };
        let named = |rank: u32, end: &ProcEnd| ProcEnd {
            proc: ProcId::new(&desc.nspace, Rank(rank)),
            node: desc.node_of(Rank(rank)).map(|node| self.node_name(node).to_string()).unwrap_or_default(),
            pid: job.pid(Rank(rank)),
            ..end.clone()
        };
        let mut procs: Vec<ProcEnd> = (0..desc.size).map(|rank| named(rank, &lost)).collect();
        for group in &job.ends {
            for rank in group.ranks.iter() {
                if let Some(end) = procs.get_mut(rank as usize) {
                    end.status = group.status;
                    end.after = group.after;
                    end.killed_by_us = group.killed_by_us;
                    end.lost_connection = group.lost_connection;
                }
            }
        }
        let first_failure = procs.iter().filter(|end| end.is_failure()).min_by_key(|end| end.after);
        let killed_by = job.killed_by.filter(|_| procs.iter().any(|end| end.killed_by_us));
        let verdict = match (job.verdict, first_failure, killed_by) {
            (Some(verdict), ..) => verdict,
            (None, Some(first), _) => JobVerdict::Failed { first: first.clone() },
            (None, None, Some((by, signal))) => JobVerdict::Killed { by, signal },
            (None, None, None) => JobVerdict::Success,
        };
        JobEnd {
            nspace: desc.nspace.clone(),
            exit_code: job.start_failure.map_or_else(|| verdict.exit_code(), |failure| failure.exit_code()),
            verdict,
            procs,
            duration: now.since(job.since),
        }
    }

    pub(crate) fn on_shutdown(&mut self, cx: &mut Cx<'_>) {
        let Some(root) = &mut self.root else { return };
        root.shutting_down = true;
        let jobs: Vec<Nspace> = root.jobs.keys().cloned().collect();
        for nspace in jobs {
            self.end_job(cx, &nspace, JobVerdict::Cancelled { signal: SIGTERM });
        }
        self.stop_when_idle(cx);
    }

    fn stop_when_idle(&mut self, cx: &mut Cx<'_>) {
        if self.root.as_ref().is_some_and(|root| root.shutting_down && root.jobs.is_empty()) {
            self.cast_all(cx, Down::Stop);
        }
    }

    /// This daemon is done: what it started must not outlive it.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>) {
        if self.over {
            return;
        }
        self.over = true;
        self.overlay.stop();
        for (nspace, job) in std::mem::take(&mut self.jobs) {
            for (rank, _) in job.procs.iter().filter(|(_, proc)| proc.is_alive()) {
                cx.effect(Effect::Signal { proc: ProcId::new(&nspace, *rank), signal: SIGKILL });
            }
            if !job.procs.is_empty() {
                cx.effect(Effect::Forget { nspace, scratch: job.desc.scratch.clone() });
            }
        }
        cx.effect(Effect::Stop);
    }
}

fn is_of_style(info: &Info) -> bool {
    STYLE_ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str()))
}

impl JobVerdict {
    /// As a query for the job's status is answered.
    pub(crate) fn status(&self) -> Status {
        match self {
            JobVerdict::Success => Status::SUCCESS,
            JobVerdict::Aborted { .. } => Status::ERR_JOB_ABORTED,
            JobVerdict::NotStarted { .. } => Status::ERR_JOB_FAILED_TO_LAUNCH,
            JobVerdict::TimedOut { .. } | JobVerdict::Cancelled { .. } | JobVerdict::ParentEnded { .. } => {
                Status::ERR_JOB_CANCELED
            }
            JobVerdict::Killed { .. } => Status::ERR_JOB_KILLED_BY_CMD,
            JobVerdict::NodeLost { .. } => Status::ERR_JOB_ABORTED_BY_SYS_EVENT,
            JobVerdict::Failed { first } => match first.status {
                Some(ExitStatus::Signal { .. }) => Status::ERR_JOB_ABORTED_BY_SIG,
                _ => Status::ERR_JOB_NON_ZERO_TERM,
            },
        }
    }

    /// Whose fault it is.
    pub(crate) fn culprit(&self) -> Option<&ProcId> {
        match self {
            JobVerdict::Failed { first } => Some(&first.proc),
            JobVerdict::Aborted { by, .. } | JobVerdict::Killed { by, .. } => Some(by),
            _ => None,
        }
    }

    /// What is to be said beside the word.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            JobVerdict::Aborted { message, .. } => Some(message),
            JobVerdict::NotStarted { error } => Some(error),
            JobVerdict::NodeLost { node } => Some(node),
            JobVerdict::ParentEnded { parent } => Some(parent.as_str()),
            _ => None,
        }
    }

    /// In one word, for tables.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            JobVerdict::Success => "success",
            JobVerdict::Failed { .. } => "failed",
            JobVerdict::Aborted { .. } => "aborted",
            JobVerdict::NotStarted { .. } => "not started",
            JobVerdict::TimedOut { .. } => "timed out",
            JobVerdict::Cancelled { .. } => "cancelled",
            JobVerdict::Killed { .. } => "killed",
            JobVerdict::ParentEnded { .. } => "parent ended",
            JobVerdict::NodeLost { .. } => "node lost",
        }
    }

    /// What the launcher exits with.
    pub fn exit_code(&self) -> i32 {
        match self {
            JobVerdict::Success => 0,
            JobVerdict::Failed { first } => match first.status {
                Some(ExitStatus::Code(0)) | None => 1,
                Some(status) => status.shell_code(),
            },
            JobVerdict::Aborted { status, .. } => match status.0 & 0xff {
                0 => 1,
                code => code,
            },
            JobVerdict::NotStarted { .. } => 126,
            JobVerdict::TimedOut { .. } => 124,
            JobVerdict::Cancelled { signal } | JobVerdict::Killed { signal, .. } => 128 + signal,
            JobVerdict::ParentEnded { .. } => 128 + SIGTERM,
            JobVerdict::NodeLost { .. } => 1,
        }
    }
}

/// What daemons are told when a job is to end.
const TERMINATE: Control = Control::Terminate { signal: SIGTERM };
