//! The ends of operations, and the only place where one verb acts on the tables of another because of what has been decided.

use phalanx_spec::Status;
use phalanx_wire::ProcId;

use crate::root::Root;
use crate::root::answer::Asker;
use crate::root::checkpoint;
use crate::root::consequence::Consequence;
use crate::root::control;
use crate::root::fate::Fact;
use crate::root::journal::What;
use crate::root::kind::Kind;
use crate::root::log::{self, Logging, Means};
use crate::root::query;
use crate::root::record;
use crate::root::rest;
use crate::root::restart;
use crate::root::slots::Cramped;
use crate::root::spawn::Spawning;
use crate::root::turn::Cx;

impl Root {
    /// The deadline of an operation has passed.
    pub(super) fn on_operation_due(&mut self, cx: &mut Cx<'_>, number: u64) {
        if let Some(Spawning { nspace }) = self.operations.get(number) {
            let nspace = nspace.clone();
            return self.learn(cx, &nspace, Fact::StartLimitPassed);
        }
        if self.operations.get::<Cramped>(number).is_some() {
            return self.try_cramped(cx, number);
        }
        let then = match self.operations.get::<Logging>(number) {
            Some(_) => log::overdue(cx, &mut self.operations, number),
            None => self.operations.finish(cx, number, Status::ERR_TIMEOUT),
        };
        self.carry_out(cx, then);
    }

    /// Dismisses the matching requesters of the chosen operations.
    pub(super) fn dismiss(
        &mut self,
        cx: &mut Cx<'_>,
        chosen: impl Fn(&dyn Kind) -> bool,
        is_gone: impl Fn(&Asker) -> bool,
        status: Status,
    ) {
        let (_, then) = self.operations.dismiss(cx, chosen, is_gone, status);
        self.carry_out(cx, then);
    }

    /// What log requests are served with.
    pub(super) fn means(&mut self) -> Means<'_> {
        let Root { dvm, readers, store, operations, .. } = self;
        Means { dvm, readers, store, operations }
    }

    /// The only place where one verb acts on the tables of another because of what has been decided.
    pub(super) fn carry_out(&mut self, cx: &mut Cx<'_>, all: Vec<Consequence>) {
        for consequence in all {
            match consequence {
                Consequence::Tell { asker, status, results } => {
                    self.answered.tell(cx, asker, (status, results));
                }
                Consequence::Answer { askers, queries, found } => {
                    let waiting = (&self.operations, &self.answered);
                    query::answer(cx, &self.dvm, waiting, askers, &queries, &found);
                }
                // The lines come first: a tool may leave when it has the answer.
                Consequence::Logged { askers, from, status, notes } => {
                    notes.iter().for_each(|text| self.dvm.tell_user_of(cx, &from, text));
                    askers.into_iter().for_each(|asker| asker.answer.done(cx, status));
                }
                // Of a restart, of a spawn that waits for slots, or of a log request.
                Consequence::NextStep(number) => {
                    restart::renew(cx, &mut self.dvm, &mut self.operations, number);
                    self.try_cramped(cx, number);
                    let then = log::next_step(cx, &mut self.means(), number);
                    self.carry_out(cx, then);
                }
                Consequence::Of { nspace, step } => self.take_step(cx, &nspace, step),
                Consequence::Ended { members, by, signal } => {
                    rest::look(&mut self.operations, &self.dvm.jobs, cx, (members, by, signal));
                }
                Consequence::Spared { members, by, signal } => {
                    record::spared(cx, &mut self.dvm, &members, &by, signal);
                }
                Consequence::GoesOn { members, by, signal } => {
                    if let Some(text) = rest::text(&self.dvm.jobs, &members, &by, signal) {
                        self.dvm.tell_user_of(cx, &ProcId::all(&members.nspace), &text);
                    }
                }
                Consequence::Cleanup { members, request } => self.cleanups.enter(members, request),
                Consequence::Checkpointed { members, name } => {
                    checkpoint::checkpointed(cx, &mut self.dvm, &members, &name)
                }
                Consequence::Control { asker, members, request } => {
                    let Root { dvm, operations, cleanups, .. } = self;
                    let then = control::control(cx, dvm, operations, cleanups, asker, &members, request);
                    self.carry_out(cx, then);
                }
                Consequence::Shutdown { by } => self.on_shutdown(cx, Some(&by)),
                Consequence::RestartOver(members) => {
                    restart::restarts_no_more(&mut self.dvm, &members);
                    // A rank that had ended before and was not started gives its slot back.
                    self.slots_changed = true;
                }
                Consequence::Restarted { members, pids, programs } => {
                    restart::tell_restarted(cx, &mut self.dvm, members, pids, programs);
                }
                Consequence::Saw { nspace, stuck } => drop(self.dvm.append(cx, &nspace, What::Stuck(stuck))),
            }
        }
    }
}
