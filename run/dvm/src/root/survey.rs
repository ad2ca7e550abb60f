//! Surveys: what only the daemons know of a job's processes, or of what is waited for, brought to the root through the
//! tree.
//!
//! A query that needs it waits at the root until all surveys that it has started are in. A job that ends meanwhile is
//! waited for no longer: its end tells the same.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId, Query};

use crate::msg::{Down, Found, OpId, Part, Subject, Survey};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::{Cx, Root, query};

/// The queries that wait.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    last: u64,
    questions: BTreeMap<u64, Question>,
}

impl Surveys {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.questions.values().any(|question| {
            question.from.nspace == *nspace
                || question.awaited.iter().any(|survey| survey.of.concerns(nspace))
        })
    }
}

#[derive(Debug)]
struct Question {
    answer: Answer,
    from: ProcId,
    queries: Vec<Query>,
    awaited: BTreeSet<Survey>,
    found: BTreeMap<Subject, Found>,
    since: Time,
}

impl Root {
    /// Answers the query at once, or when the daemons have told what it is about.
    pub(super) fn ask_daemons(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        queries: &[Query],
        subjects: BTreeSet<Subject>,
    ) {
        let size = self.nodes.size();
        if self.surveys.questions.len() >= MOST_QUESTIONS {
            return answer.done(cx, Status::ERR_OUT_OF_RESOURCE);
        }
        let mut surveys = Vec::new();
        for of in subjects {
            let to = match &of {
                Subject::Waits | Subject::Nodes => Ranges::first(size),
                Subject::Procs { nspace, .. } => match self.jobs.get(nspace) {
                    Some(job) => job.desc.nodes.clone(),
                    None => continue,
                },
            };
            self.surveys.last += 1;
            surveys.push((Survey { number: self.surveys.last, of }, to));
        }
        let question = Question {
            answer,
            from: from.clone(),
            queries: queries.to_vec(),
            awaited: surveys.iter().map(|(survey, _)| survey.clone()).collect(),
            found: BTreeMap::new(),
            since: cx.now,
        };
        if surveys.is_empty() {
            return self.answer_question(cx, question);
        }
        self.surveys.last += 1;
        let number = self.surveys.last;
        self.surveys.questions.insert(number, question);
        for (survey, to) in surveys {
            cx.cast(to.clone(), Down::Survey(survey.clone()));
            // Those that are asked may be lost before anybody has answered.
            cx.wait_for(OpId::Survey(survey), to);
        }
    }

    /// Every daemon's part is here.
    pub(super) fn surveyed(&mut self, cx: &mut Cx<'_>, survey: &Survey, part: Part) {
        let found = match part {
            Part::Found(found) => *found,
            _ => Found::default(),
        };
        self.end_surveys(cx, |other| other == survey, Some(found));
    }

    /// The job is over. Nobody will tell more of it, and what its processes have asked nobody wants to know.
    pub(super) fn end_surveys_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.surveys.questions.retain(|_, question| question.from.nspace != *nspace);
        self.end_surveys(cx, |survey| survey.of.concerns(nspace), None);
    }

    fn end_surveys(&mut self, cx: &mut Cx<'_>, ended: impl Fn(&Survey) -> bool, found: Option<Found>) {
        for question in self.surveys.questions.values_mut() {
            for survey in question.awaited.extract_if(.., |survey| ended(survey)) {
                if let Some(found) = &found {
                    question.found.insert(survey.of, found.clone());
                }
            }
        }
        let all = |question: &mut Question| question.awaited.is_empty();
        let answered: Vec<Question> =
            self.surveys.questions.extract_if(.., |_, question| all(question)).map(|(_, q)| q).collect();
        answered.into_iter().for_each(|question| self.answer_question(cx, question));
    }

    fn answer_question(&mut self, cx: &mut Cx<'_>, question: Question) {
        let Question { answer, from, queries, found, .. } = question;
        let asked = query::Inquiry { now: cx.now, from: &from, found: &found };
        let reply: HostReply = self.answer_queries(&asked, &queries);
        answer.give(cx, reply);
    }

    pub(super) fn explain_surveys(&self) -> Vec<Waiting> {
        let questions = self.surveys.questions.values();
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

/// Queries that wait at one time.
const MOST_QUESTIONS: usize = 1024;
