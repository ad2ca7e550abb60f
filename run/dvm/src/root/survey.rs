//! Queries for what only the daemons know: about a job's processes, or about waiting operations. They are sent through the
//! tree.
//!
//! Such a query waits until all daemons have answered. It stops waiting for a job that ends meanwhile: the report of its end
//! has the same facts.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Rank, Status};
use phalanx_wire::{Nspace, ProcId, Query};

use crate::msg::{Found, Part, Subject, Task};
use crate::ranges::Ranges;
use crate::root::answer::{Answer, Asker};
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::jobs::Jobs;
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::query;
use crate::root::turn::Cx;

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

/// Answers the query at once, or when the daemons have reported what it needs.
pub(super) fn ask(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    answer: Answer,
    from: &ProcId,
    queries: &[Query],
) -> Vec<Consequence> {
    let tasks: Vec<(Subject, Ranges)> = query::subjects(from, queries)
        .into_iter()
        .filter_map(|of| {
            let daemons = match &of {
                // Do not wait for daemons that are still starting.
                Subject::Waits | Subject::Nodes if !dvm.nodes.are_up() => dvm.nodes.present(),
                Subject::Waits | Subject::Nodes => Ranges::first(dvm.nodes.size()),
                Subject::Procs { nspace, .. } | Subject::Stuck { nspace } => {
                    dvm.jobs.get(nspace)?.desc.nodes.clone()
                }
                Subject::Stacks { nspace, ranks } => {
                    let desc = &dvm.jobs.get(nspace)?.desc;
                    let all = Ranges::first(desc.size);
                    let wanted = ranks.as_ref().map_or_else(|| all.clone(), |ranks| ranks.and(&all));
                    wanted.iter().filter_map(|rank| Some(desc.node_of(Rank(rank))?.0)).collect()
                }
            };
            Some((of, daemons))
        })
        .collect();
    let asker = Asker::new(from, answer);
    if tasks.is_empty() {
        let (askers, queries) = (vec![asker], queries.to_vec());
        return vec![Consequence::Answer { askers, queries, found: BTreeMap::new() }];
    }
    let awaited = tasks.iter().map(|(of, _)| of.clone()).collect();
    let question = Question { queries: queries.to_vec(), awaited, found: BTreeMap::new() };
    let Some(number) = operations.begin(cx, Some(asker), None, question) else { return Vec::new() };
    for (of, daemons) in tasks {
        operations.give_task(cx, number, daemons, Task::Survey(of));
    }
    Vec::new()
}

/// The job is over: stops waiting for reports on it.
pub(super) fn end_those_of(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
) -> Vec<Consequence> {
    let mut waiting = Vec::new();
    for (number, question) in operations.of_mut::<Question>() {
        question.awaited.retain(|of| !of.concerns(nspace));
        waiting.push(number);
    }
    let of_job = |task: &Task| matches!(task, Task::Survey(of) if of.concerns(nspace));
    waiting.into_iter().flat_map(|number| operations.drop_tasks(cx, number, of_job)).collect()
}
