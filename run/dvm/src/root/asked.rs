//! The kinds of operations, with one line of dispatch each.

use phalanx_core::HostReply;
use phalanx_spec::Status;

use crate::root::Root;
use crate::root::checkpoint::Checkpointing;
use crate::root::control::Controlling;
use crate::root::debug::Stop;
use crate::root::group::Assembly;
use crate::root::kind::Kind;
use crate::root::last_look::LastLook;
use crate::root::operations::{Asker, Operation};
use crate::root::provision::Provisioning;
use crate::root::publish::Lookup;
use crate::root::restart::Restarting;
use crate::root::spawn::{Postponed, Spawning};
use crate::root::survey::Question;
use crate::root::turn::Cx;

/// What was asked for, and the results so far.
#[derive(Debug)]
pub(super) enum Asked {
    Control(Controlling),
    Checkpoint(Box<Checkpointing>),
    Restart(Box<Restarting>),
    Provision(Provisioning),
    Query(Question),
    Spawn(Spawning),
    Postponed(Postponed),
    Lookup(Lookup),
    Stop(Stop),
    Group(Assembly),
    LastLook(LastLook),
}

impl Asked {
    pub(super) fn is_of_askers(&self) -> bool {
        self.kind().is_of_askers()
    }

    pub(super) fn kind(&self) -> &dyn Kind {
        match self {
            Asked::Control(kind) => kind,
            Asked::Checkpoint(kind) => &**kind,
            Asked::Restart(kind) => &**kind,
            Asked::Provision(kind) => kind,
            Asked::Query(kind) => kind,
            Asked::Spawn(kind) => kind,
            Asked::Postponed(kind) => kind,
            Asked::Lookup(kind) => kind,
            Asked::Stop(kind) => kind,
            Asked::Group(kind) => kind,
            Asked::LastLook(kind) => kind,
        }
    }

    pub(super) fn kind_mut(&mut self) -> &mut dyn Kind {
        match self {
            Asked::Control(kind) => kind,
            Asked::Checkpoint(kind) => &mut **kind,
            Asked::Restart(kind) => &mut **kind,
            Asked::Provision(kind) => kind,
            Asked::Query(kind) => kind,
            Asked::Spawn(kind) => kind,
            Asked::Postponed(kind) => kind,
            Asked::Lookup(kind) => kind,
            Asked::Stop(kind) => kind,
            Asked::Group(kind) => kind,
            Asked::LastLook(kind) => kind,
        }
    }
}

impl Root {
    /// The deadline of an operation has passed.
    pub(super) fn on_operation_due(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(Asked::Spawn(spawning)) = self.operations.get(number).map(|one| &one.asked) {
            let nspace = spawning.nspace.clone();
            return self.on_start_limit(cx, &nspace);
        }
        if let Some(operation) = self.end_operation(number) {
            self.answer_operation(cx, operation, Status::ERR_TIMEOUT);
        }
    }

    /// Removes what the tables of a verb hold of an operation that has ended.
    pub(super) fn forget_asked(&mut self, number: u64, asked: &Asked) {
        match asked {
            Asked::Lookup(lookup) => self.store.forget_waiting(number, lookup),
            Asked::Group(assembly) => self.assemblies.forget(assembly),
            Asked::Stop(stop) => self.forget_stop(number, &stop.nspace),
            _ => {}
        }
    }

    /// Answers the askers of an operation that has ended. `status`: success if the daemons have finished all tasks.
    pub(super) fn answer_operation(&mut self, cx: &mut Cx<'_>, operation: Operation, status: Status) {
        let Operation { asked, askers, .. } = operation;
        match asked {
            Asked::Control(control) => self.answer_control(cx, askers, control, status),
            Asked::Checkpoint(one) => self.answer_checkpoint(cx, askers, *one, status),
            Asked::Restart(one) => self.answer_restart(cx, askers, *one, status),
            Asked::Provision(one) => self.answer_provision(cx, askers, &one, status),
            Asked::Group(assembly) => self.answer_group(cx, askers, assembly, &Err(status)),
            Asked::Query(question) if status.is_success() => {
                for Asker { by, answer, .. } in askers {
                    let reply: HostReply = self.answer_question(cx, &by, &question);
                    answer.give(cx, reply);
                }
            }
            Asked::LastLook(look) => self.note_last_look(cx, look),
            asked => {
                let failure = asked.kind().failure(status);
                askers.into_iter().for_each(|asker| asker.answer.give(cx, failure.clone()));
            }
        }
    }
}
