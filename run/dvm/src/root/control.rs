//! Job control: what processes and tools want done to processes.
//!
//! A request goes to all daemons that host targets, and is answered when each of them has done its part. So success means that
//! signals were sent and paths entered, and a target on a node that was lost is told from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::{HostReply, Time, Waiting};
use phalanx_spec::Status;
use phalanx_wire::{Info, Nspace, ProcId};

use crate::msg::{Collective, Control, Down, Kind, Members, OpId, Orders, Part};
use crate::ranges::Ranges;
use crate::root::answer::Answer;
use crate::root::{Cx, ENOUGH, Root};

/// The requests that are being carried out.
#[derive(Debug, Default)]
pub(super) struct Operations {
    last: u64,
    open: BTreeMap<Collective, Operation>,
    /// Cleanups that all daemons have entered: every process of a large job may ask for the same.
    entered: BTreeSet<(Arc<[Members]>, Arc<Orders>)>,
}

#[derive(Debug)]
struct Operation {
    orders: Arc<Orders>,
    by: ProcId,
    since: Time,
    to: Ranges,
    /// To all who have asked for the same.
    answers: Vec<Answer>,
}

impl Operations {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.entered.iter().any(|(members, _)| members.iter().any(|one| one.nspace == *nspace))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.entered.retain(|(members, _)| members.iter().all(|m| m.nspace != *nspace));
    }

    /// The same cleanup for the same processes, which is being entered.
    fn same(&mut self, members: &Arc<[Members]>, orders: &Orders) -> Option<&mut Operation> {
        let same =
            |(op, one): &(&Collective, &mut Operation)| op.members == *members && *one.orders == *orders;
        Some(self.open.iter_mut().find(same)?.1)
    }
}

impl Root {
    /// What a process or a tool wants done to processes.
    pub(super) fn job_control(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        targets: &[ProcId],
        directives: &[Info],
    ) {
        let read = Orders::read(directives);
        // As OpenPMIx's tools ask for it: nobody in particular is the whole DVM.
        let ends =
            |orders: &Orders| orders.actions.iter().any(|action| matches!(action, Control::Terminate { .. }));
        if targets.is_empty() && self.is_tool(from) && read.as_ref().is_ok_and(ends) {
            answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
            return self.on_shutdown(cx);
        }
        let members = Members::targets(from, targets, |nspace| self.desc(nspace));
        let (orders, members) = match read.and_then(|orders| Ok((orders, members?))) {
            Ok(read) => read,
            Err(status) => return answer.done(cx, status),
        };
        let deadly = orders.actions.iter().filter_map(|action| action.deadly()).collect::<Vec<_>>();
        for Members { nspace, ranks } in members.iter() {
            deadly.iter().for_each(|signal| self.note_killed(nspace, ranks, from, *signal));
            let sent = orders.actions.iter().filter_map(|action| action.sent());
            sent.for_each(|signal| self.note_signalled(nspace, ranks, from, signal));
        }
        self.carry_out(cx, answer, from, members, orders);
    }

    /// Sends a request to the daemons of its targets.
    fn carry_out(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        members: Arc<[Members]>,
        orders: Orders,
    ) {
        let members: Arc<[Members]> = members.iter().cloned().map(|m| self.without_dead(m)).collect();
        let mut to = Ranges::new();
        for Members { nspace, ranks } in members.iter() {
            to.add(&self.desc(nspace).map(|desc| desc.nodes_of(ranks)).unwrap_or_default());
        }
        let operations = &mut self.operations;
        let orders = Arc::new(orders);
        if to.is_empty() || operations.entered.contains(&(members.clone(), orders.clone())) {
            return answer.give(cx, HostReply::Infos(Status::SUCCESS, Vec::new()));
        }
        if orders.actions.is_empty()
            && let Some(same) = operations.same(&members, &orders)
        {
            return same.answers.push(answer);
        }
        operations.last += 1;
        let op = Collective { kind: Kind::Orders, members, id: None, round: operations.last };
        let operation = Operation {
            orders: orders.clone(),
            by: from.clone(),
            since: cx.now,
            to: to.clone(),
            answers: vec![answer],
        };
        operations.open.insert(op.clone(), operation);
        cx.cast(to.clone(), Down::Orders { op: op.clone(), orders });
        // Those that are asked may be lost before anybody has answered.
        cx.wait_for(OpId::Collective(op), to);
    }

    fn without_dead(&self, mut members: Members) -> Members {
        if let Some(job) = self.jobs.get(&members.nspace) {
            let dead = job.dead.and(&members.ranks);
            dead.iter().for_each(|rank| members.ranks.remove(rank));
        }
        members
    }

    /// All daemons have done their part, but for those that were lost.
    pub(super) fn carried_out(&mut self, cx: &mut Cx<'_>, op: &Collective, missing: &Ranges, part: &Part) {
        let Some(operation) = self.operations.open.remove(op) else { return };
        let status = match part {
            Part::Failed(status) => *status,
            _ if missing.is_empty() => Status::SUCCESS,
            _ if missing.count() < operation.to.count() => Status::ERR_PARTIAL_SUCCESS,
            _ => Status::ERR_LOST_CONNECTION,
        };
        let is_cleanup = operation.orders.actions.is_empty();
        if is_cleanup && status.is_success() && self.operations.entered.len() < MOST_ENTERED {
            self.operations.entered.insert((op.members.clone(), operation.orders.clone()));
        }
        operation.answer(cx, status);
    }

    /// Processes are gone before all daemons have done their part. What was to be done to them need not be done; what was to be
    /// entered for them has not been.
    pub(super) fn control_without(&mut self, cx: &mut Cx<'_>, is_gone: impl Fn(&Members) -> bool) {
        let over = self.operations.open.extract_if(.., |op, _| op.members.iter().any(&is_gone));
        for (_, operation) in over.collect::<Vec<_>>() {
            let status = match operation.orders.cleanup {
                Some(_) => Status::ERR_PROC_ABORTED,
                None => Status::SUCCESS,
            };
            operation.answer(cx, status);
        }
    }

    pub(super) fn explain_control(&self) -> Vec<Waiting> {
        let waiting = |(op, operation): (&Collective, &Operation)| Waiting {
            operation: "job control",
            subject: OpId::Collective(op.clone()).subject(),
            asked_by: vec![operation.by.clone()],
            missing: crate::msg::each(&op.members).take(ENOUGH).collect(),
            since: operation.since,
            deadline: None,
            unblocked_by: "the named processes' daemons doing what was asked for, or being declared lost",
        };
        self.operations.open.iter().map(waiting).collect()
    }
}

impl Operation {
    fn answer(self, cx: &mut Cx<'_>, status: Status) {
        self.answers.into_iter().for_each(|answer| answer.give(cx, HostReply::Infos(status, Vec::new())));
    }
}

/// Cleanups that are remembered to be known everywhere.
const MOST_ENTERED: usize = 1024;
