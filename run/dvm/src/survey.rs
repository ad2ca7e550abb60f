//! Surveys: what only the daemons know of a job's processes, or of what is waited for, brought to the root through the
//! tree.
//!
//! A query that needs it waits at the root until all surveys that it has started are in. A job that ends meanwhile is
//! waited for no longer: its end tells the same.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_core::server::ServerCall;
use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::{ProcState, Status};
use phalanx_wire::{Nspace, ProcId, Query};

use crate::daemon::{Call, Cx, Daemon};
use crate::effect::Effect;
use crate::id::NodeId;
use crate::msg::{Down, Found, FoundProc, Measured, OpId, Part, Subject, Survey, Usage, Wait, ended_state};
use crate::procs::{Phase, Pmix, Proc};
use crate::query;
use crate::ranges::Ranges;

/// Root only: the queries that wait.
#[derive(Debug, Default)]
pub(crate) struct Surveys {
    last: u64,
    questions: BTreeMap<u64, Question>,
}

#[derive(Debug)]
struct Question {
    origin: NodeId,
    request: u64,
    from: ProcId,
    queries: Vec<Query>,
    awaited: BTreeSet<Survey>,
    found: BTreeMap<Subject, Found>,
    since: Time,
}

impl Daemon {
    /// Root only: answers the query at once, or when the daemons have told what it is about.
    pub(crate) fn ask_daemons(
        &mut self,
        cx: &mut Cx<'_>,
        (origin, request): (NodeId, u64),
        from: &ProcId,
        queries: &[Query],
        subjects: BTreeSet<Subject>,
    ) {
        let size = self.overlay.size();
        let Some(root) = &mut self.root else { return };
        if root.surveys.questions.len() >= MOST_QUESTIONS {
            return self.refuse(cx, origin, request, Status::ERR_OUT_OF_RESOURCE);
        }
        let mut surveys = Vec::new();
        for of in subjects {
            let to = match &of {
                Subject::Waits | Subject::Nodes => Ranges::first(size),
                Subject::Procs { nspace, .. } => match root.jobs.get(nspace) {
                    Some(job) => job.desc.nodes.clone(),
                    None => continue,
                },
            };
            root.surveys.last += 1;
            surveys.push((Survey { number: root.surveys.last, of }, to));
        }
        let question = Question {
            origin,
            request,
            from: from.clone(),
            queries: queries.to_vec(),
            awaited: surveys.iter().map(|(survey, _)| survey.clone()).collect(),
            found: BTreeMap::new(),
            since: cx.now,
        };
        if surveys.is_empty() {
            return self.answer_question(cx, question);
        }
        root.surveys.last += 1;
        let number = root.surveys.last;
        root.surveys.questions.insert(number, question);
        for (survey, to) in surveys {
            self.cast(cx, to, Down::Survey(survey.clone()));
            // Those that are asked may be lost before anybody has answered.
            self.reconsider_gather(cx, OpId::Survey(survey));
        }
    }

    /// The root wants to know.
    pub(crate) fn on_survey(&mut self, cx: &mut Cx<'_>, survey: &Survey) {
        match &survey.of {
            Subject::Waits => self.call(cx, ServerCall::Explain, Call::Explain(survey.clone())),
            Subject::Nodes => cx.effect(Effect::Measure { survey: survey.clone(), pids: Vec::new() }),
            Subject::Procs { nspace, usage: true } => {
                let procs = self.jobs.get(nspace).into_iter().flat_map(|job| &job.procs);
                let living = procs.filter(|(_, proc)| proc.phase == Phase::Running);
                let pids = living.filter_map(|(rank, proc)| Some((rank.0, proc.pid?))).collect();
                cx.effect(Effect::Measure { survey: survey.clone(), pids });
            }
            Subject::Procs { nspace, usage: false } => {
                let found = Found { procs: self.found_procs(nspace, BTreeMap::new()), ..Found::default() };
                self.contribute(cx, OpId::Survey(survey.clone()), Part::Found(Box::new(found)));
            }
        }
    }

    /// The shell has looked what the processes, the daemon and its node use.
    pub(crate) fn on_measured(&mut self, cx: &mut Cx<'_>, survey: Survey, measured: Measured) {
        let Measured { daemon, node, procs } = measured;
        let found = Found {
            procs: match &survey.of {
                Subject::Procs { nspace, .. } => self.found_procs(nspace, procs.into_iter().collect()),
                Subject::Nodes | Subject::Waits => Vec::new(),
            },
            daemons: daemon.map(|bytes| (self.me, bytes)).into_iter().collect(),
            nodes: node.map(|usage| (self.me, usage)).into_iter().collect(),
            waits: Vec::new(),
        };
        self.contribute(cx, OpId::Survey(survey), Part::Found(Box::new(found)));
    }

    /// Our server has told what it waits for.
    pub(crate) fn on_explained(&mut self, cx: &mut Cx<'_>, survey: Survey, waiting: Vec<Waiting>) {
        let node = self.me;
        let ours = self.explain().into_iter().chain(waiting).take(MOST_WAITS);
        let waits = ours.map(|waiting| Wait { node, age: cx.now.since(waiting.since), waiting }).collect();
        let found = Found { waits, ..Found::default() };
        self.contribute(cx, OpId::Survey(survey), Part::Found(Box::new(found)));
    }

    fn found_procs(&self, nspace: &Nspace, mut usage: BTreeMap<u32, Usage>) -> Vec<FoundProc> {
        let procs = self.jobs.get(nspace).into_iter().flat_map(|job| &job.procs);
        let found = |(rank, proc): (&phalanx_spec::Rank, &Proc)| FoundProc {
            rank: rank.0,
            state: proc.state(),
            stopped: proc.suspended && proc.phase == Phase::Running,
            pid: proc.pid,
            status: proc.status,
            usage: usage.remove(&rank.0),
        };
        procs.map(found).collect()
    }

    /// Root only: every daemon's part is here.
    pub(crate) fn surveyed(&mut self, cx: &mut Cx<'_>, survey: &Survey, part: Part) {
        let found = match part {
            Part::Found(found) => *found,
            _ => Found::default(),
        };
        self.end_surveys(cx, |other| other == survey, Some(found));
    }

    /// Root only: the job is over, and nobody will tell more of it.
    pub(crate) fn end_surveys_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.end_surveys(cx, |survey| survey.of.concerns(nspace), None);
    }

    fn end_surveys(&mut self, cx: &mut Cx<'_>, ended: impl Fn(&Survey) -> bool, found: Option<Found>) {
        let Some(root) = &mut self.root else { return };
        for question in root.surveys.questions.values_mut() {
            for survey in question.awaited.extract_if(.., |survey| ended(survey)) {
                if let Some(found) = &found {
                    question.found.insert(survey.of, found.clone());
                }
            }
        }
        let all = |question: &mut Question| question.awaited.is_empty();
        let answered: Vec<Question> =
            root.surveys.questions.extract_if(.., |_, question| all(question)).map(|(_, q)| q).collect();
        answered.into_iter().for_each(|question| self.answer_question(cx, question));
    }

    fn answer_question(&mut self, cx: &mut Cx<'_>, question: Question) {
        let Question { origin, request, from, queries, found, .. } = question;
        let asked = query::Asked { now: cx.now, from: &from, found: &found };
        let reply: HostReply = self.answer_queries(&asked, &queries);
        self.answer(cx, origin, request, reply);
    }

    pub(crate) fn explain_surveys(&self) -> Vec<Waiting> {
        let questions = self.root.iter().flat_map(|root| root.surveys.questions.values());
        let waiting = |question: &Question| Waiting {
            operation: "query",
            subject: question.queries.iter().flat_map(|q| &q.keys).map(|k| k.to_string_lossy()).collect(),
            asked_by: vec![question.from.clone()],
            missing: Vec::new(),
            since: question.since,
            deadline: None,
            unblocked_by: "the daemons telling what they know, or being declared lost",
        };
        questions.map(waiting).collect()
    }
}

impl Proc {
    fn state(&self) -> ProcState {
        match (self.phase, self.pmix) {
            (Phase::Preparing, _) => ProcState::PREPPED,
            (Phase::Starting, _) => ProcState::LAUNCH_UNDERWAY,
            (Phase::Running, Pmix::Connected | Pmix::Leaving) => ProcState::CONNECTED,
            (Phase::Running, _) => ProcState::RUNNING,
            (Phase::Gone, _) => ended_state(self.status, self.killed.is_some(), self.lost_connection()),
        }
    }
}

/// Queries that wait at one time.
const MOST_QUESTIONS: usize = 1024;
/// Waits that one daemon tells of.
const MOST_WAITS: usize = 256;
