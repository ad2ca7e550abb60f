//! Queries for what only the daemons know: about a job's processes, or about waiting operations. They are sent through the
//! tree.
//!
//! Such a query waits until all daemons have answered. It stops waiting for a job that ends meanwhile: the report of its end
//! has the same facts.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId, Query};

use crate::msg::{Found, Part, Subject, Task};
use crate::ranges::Ranges;
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::control::MOST_OPEN;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::turn::Cx;
use crate::root::{Root, query};

/// A query that waits.
#[derive(Debug)]
pub(super) struct Question {
    queries: Vec<Query>,
    /// What the daemons have yet to report.
    awaited: BTreeSet<Subject>,
    found: BTreeMap<Subject, Found>,
}

impl Kind for Question {
    fn name(&self) -> &'static str {
        "query"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.awaited.iter().any(|of| of.concerns(nspace))
    }

    fn task_done(&mut self, task: &Task, _: &Ranges, part: Part, _: &Jobs) {
        let Task::Survey(subject) = task else { return };
        self.awaited.remove(subject);
        let found = match part {
            Part::Found(found) => *found,
            _ => Found::default(),
        };
        self.found.insert(subject.clone(), found);
    }

    fn answer(self: Box<Self>, cx: &mut Cx<'_>, askers: Vec<Asker>, status: Status) -> Vec<Consequence> {
        if status.is_success() {
            return vec![Consequence::Answer { askers, queries: self.queries, found: self.found }];
        }
        askers.into_iter().for_each(|asker| asker.answer.done(cx, status));
        Vec::new()
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        let keys = self.queries.iter().flat_map(|query| &query.keys).map(|key| key.to_string_lossy());
        Explained {
            subject: keys.collect::<Vec<_>>().join(" "),
            unblocked_by: "the daemons telling what they know",
            ..Explained::default()
        }
    }
}

impl Root {
    /// Answers the query at once, or when the daemons have reported what it needs.
    pub(super) fn ask_daemons(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        queries: &[Query],
        subjects: BTreeSet<Subject>,
    ) {
        let tasks: Vec<(Subject, Ranges)> = subjects
            .into_iter()
            .filter_map(|of| {
                let daemons = match &of {
                    // Do not wait for daemons that are still starting.
                    Subject::Waits | Subject::Nodes if !self.nodes.are_up() => self.nodes.present(),
                    Subject::Waits | Subject::Nodes => Ranges::first(self.nodes.size()),
                    Subject::Procs { nspace, .. } | Subject::Stuck { nspace } => {
                        self.jobs.get(nspace)?.desc.nodes.clone()
                    }
                };
                Some((of, daemons))
            })
            .collect();
        let asker = Asker::new(from, answer);
        if tasks.is_empty() {
            return self.answer_askers(cx, vec![asker], queries, &BTreeMap::new());
        }
        let awaited = tasks.iter().map(|(of, _)| of.clone()).collect();
        let question = Question { queries: queries.to_vec(), awaited, found: BTreeMap::new() };
        let Some(number) = self.operations.begin(cx, Some(asker), None, question) else { return };
        for (of, daemons) in tasks {
            self.operations.give_task(cx, number, daemons, Task::Survey(of));
        }
    }

    /// The job is over: stops waiting for reports on it.
    pub(super) fn end_surveys_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let mut waiting = Vec::new();
        for (number, question) in self.operations.of_mut::<Question>() {
            question.awaited.retain(|of| !of.concerns(nspace));
            waiting.push(number);
        }
        let of_job = |task: &Task| matches!(task, Task::Survey(of) if of.concerns(nspace));
        for number in waiting {
            let then = self.operations.drop_tasks(cx, number, of_job);
            self.carry_out(cx, then);
        }
    }

    pub(super) fn answer_askers(
        &self,
        cx: &mut Cx<'_>,
        askers: Vec<Asker>,
        queries: &[Query],
        found: &BTreeMap<Subject, Found>,
    ) {
        for Asker { by, answer, .. } in askers {
            let asked = query::Inquiry { now: cx.now, from: &by, found };
            answer.give(cx, self.answer_queries(&asked, queries));
        }
    }
}
