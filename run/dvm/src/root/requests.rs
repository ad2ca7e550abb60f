//! Named requests of job control: their state while they are carried out, and for a while after.

use std::collections::VecDeque;
use std::time::Duration;

use phalanx_core::{HostReply, Time};
use phalanx_spec::{Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Text, Value};

use crate::root::answer::Asker;
use crate::root::operations::Operations;
use crate::root::query::names;
use crate::root::turn::Cx;

/// The last requests that were answered, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Answered(VecDeque<Request>);

#[derive(Debug)]
struct Request {
    id: Text,
    by: ProcId,
    at: Time,
    status: Status,
    results: Vec<Info>,
}

impl Answered {
    fn keep(&mut self, request: Request) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(request);
    }

    fn forget_old(&mut self, now: Time) {
        while self.0.front().is_some_and(|one| now.since(one.at) > KEPT) {
            self.0.pop_front();
        }
    }

    /// Answers a request of job control, and remembers the result if it has a name.
    pub(super) fn tell(&mut self, cx: &mut Cx<'_>, asker: Asker, (status, results): (Status, Vec<Info>)) {
        let Asker { by, id, answer } = asker;
        self.forget_old(cx.now);
        let mut told: Vec<Info> = id.iter().map(|id| Info::new(keys::JOB_CTRL_ID, id.clone())).collect();
        told.extend(results.iter().cloned());
        if let Some(id) = id {
            self.keep(Request { id, by, at: cx.now, status, results });
        }
        answer.give(cx, HostReply::Infos(status, told));
    }

    /// The requests that a query asks for: those of one name, or all.
    pub(super) fn told(&self, operations: &Operations, now: Time, qualifiers: &[Info]) -> Option<DataArray> {
        let wanted = qualifiers.find(keys::JOB_CTRL_ID).map(Value::as_text);
        let is_wanted = |id: &Text| wanted.is_none_or(|wanted| wanted == Some(id));
        let is_recent = |request: &&Request| now.since(request.at) <= KEPT;
        let answered = self.0.iter().filter(is_recent).filter(|request| is_wanted(&request.id));
        let mut told: Vec<Info> = answered
            .map(|Request { id, by, at, status, results }| {
                let head = about((id, by), "done", now.since(*at));
                let status = [Info::new(names::STATUS, *status)];
                record(head.into_iter().chain(status).chain(results.iter().cloned()))
            })
            .collect();
        for operation in operations.iter() {
            if !operation.kind().is_control() {
                continue;
            }
            let named = operation.askers().iter().filter_map(|asker| Some((asker.id.as_ref()?, &asker.by)));
            for (id, by) in named.filter(|(id, _)| is_wanted(id)) {
                let head = about((id, by), "under way", now.since(operation.since()));
                let results = operation.kind().targets().map(|all| all.told(Status::OPERATION_IN_PROGRESS));
                told.push(record(head.into_iter().chain(results.into_iter().flatten())));
            }
        }
        (wanted.is_none() || !told.is_empty()).then(|| DataArray::of_infos(told))
    }
}

fn about((id, by): (&Text, &ProcId), state: &str, age: Duration) -> [Info; 4] {
    [
        Info::new(keys::JOB_CTRL_ID, id.clone()),
        Info::new(keys::PROCID, by.clone()),
        Info::new(names::STATE, state),
        Info::new(names::AGE, age.as_millis() as u64),
    ]
}

fn record(about: impl Iterator<Item = Info>) -> Info {
    Info::new(names::REQUEST, DataArray::of_infos(about))
}

/// How many answered requests are remembered, and for how long.
const MOST: usize = 256;
const KEPT: Duration = Duration::from_secs(600);
