//! Queries for what only the daemons know: about a job's processes, or about waiting operations. They are sent through the
//! tree.
//!
//! Such a query waits until all daemons have answered. It stops waiting for a job that ends meanwhile: the report of its end
//! has the same facts.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_core::HostReply;
use phalanx_wire::{Nspace, ProcId, Query};

use crate::msg::{Found, Part, Subject, Task};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::asked::Asked;
use crate::root::control::MOST_OPEN;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Asker;
use crate::root::turn::Cx;
use crate::root::{Root, query};

/// A query that waits.
#[derive(Debug)]
pub(super) struct Question {
    queries: Vec<Query>,
    /// By task.
    awaited: BTreeMap<u32, Subject>,
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
        self.awaited.values().any(|of| of.concerns(nspace))
    }

    fn task_done(&mut self, task: u32, _: &Ranges, part: Part, _: &Jobs) {
        let Some(subject) = self.awaited.remove(&task) else { return };
        let found = match part {
            Part::Found(found) => *found,
            _ => Found::default(),
        };
        self.found.insert(subject, found);
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
        let (awaited, found) = (BTreeMap::new(), BTreeMap::new());
        let question = Question { queries: queries.to_vec(), awaited, found };
        if tasks.is_empty() {
            return answer.give(cx, self.answer_question(cx, from, &question));
        }
        let asked = Asked::Query(question);
        let asker = Asker::new(from, answer);
        let Some(number) = self.begin_operation(cx, Some(asker), None, asked) else { return };
        for (of, daemons) in tasks {
            let task = self.give_task(cx, number, daemons, Task::Survey(of.clone()));
            if let Some(Asked::Query(question)) = self.operations.get_mut(number).map(|one| &mut one.asked) {
                question.awaited.insert(task, of);
            }
        }
    }

    /// The job is over: stops waiting for reports on it.
    pub(super) fn end_surveys_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let mut ended = Vec::new();
        for (number, operation) in self.operations.iter_mut() {
            if let Asked::Query(question) = &mut operation.asked {
                let of_job = question.awaited.extract_if(.., |_, of| of.concerns(nspace));
                ended.push((number, of_job.map(|(task, _)| task).collect::<Vec<_>>()));
            }
        }
        ended.iter().for_each(|(number, tasks)| self.drop_tasks(cx, *number, tasks));
    }

    pub(super) fn answer_question(&self, cx: &Cx<'_>, from: &ProcId, question: &Question) -> HostReply {
        let asked = query::Inquiry { now: cx.now, from, found: &question.found };
        self.answer_queries(&asked, &question.queries)
    }
}
