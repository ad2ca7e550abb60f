//! What follows when processes of a job have come further: what this daemon then contributes and reports, and what the end of a
//! job means for all tables.

use phalanx_core::server::ServerCall;
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::effect::Effect;
use crate::local::Tables;
use crate::local::calls::Call;
use crate::local::end;
use crate::local::job::LocalJob;
use crate::local::launch;
use crate::local::restart;
use crate::local::turn::Cx;
use crate::signals::SIGKILL;

impl Tables {
    /// Does something to a job, and what follows from it.
    pub(super) fn in_job(
        &mut self,
        cx: &mut Cx<'_>,
        nspace: &Nspace,
        verb: impl FnOnce(&mut Cx<'_>, &mut LocalJob),
    ) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        verb(cx, job);
        self.progress(cx, nspace);
    }

    /// Does what the states of a job's processes here complete, unless it was done.
    pub(super) fn progress(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        launch::try_started(cx, job);
        restart::advance(cx, job);
        self.rounds.try_expected(cx, &self.jobs);
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        end::tell_over(cx, job);
        restart::contribute(cx, job);
        end::try_ended(cx, job);
        self.freed.note(cx, job);
    }

    /// The job is over everywhere.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(mut job) = self.jobs.remove(nspace) else { return };
        self.commands.end_those_of(cx, nspace);
        cx.timers.cancel(|timer| timer.concerns(nspace));
        self.rounds.forget(nspace);
        self.rounds.try_expected(cx, &self.jobs);
        self.modexes.forget(cx, nspace);
        self.freed.forget(nspace);
        job.procs.values_mut().for_each(|proc| proc.acknowledge_losses(cx));
        let all = job.procs.keys().map(|rank| rank.0).collect();
        job.answer_held(cx, &all, Status::SUCCESS, None);
        self.requests.forget(cx, nspace);
        if job.registered {
            cx.call(ServerCall::DeregisterNspace(nspace.clone()), Call::Notice("forgetting a job"));
        }
        if !job.procs.is_empty() {
            cx.effect(Effect::Forget {
                nspace: nspace.clone(),
                scratch: job.desc.directory(&cx.config.scratch),
            });
        }
        debug_assert!(self.traces_of(cx, nspace).is_empty(), "{nspace}: {:?}", self.traces_of(cx, nspace));
    }

    /// The tables that still hold something of this job; none must once the job is over.
    ///
    /// Not counted: what is on its way to the root, which acknowledges it within a second.
    fn traces_of(&self, cx: &Cx<'_>, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("calls of the server", cx.calls.know(nspace)),
            ("requests to the root", self.requests.know(nspace)),
            ("output given to the server", self.delivering.know(nspace)),
            ("timers", cx.timers.holds(|timer| timer.concerns(nspace))),
            ("commands", self.commands.know(nspace)),
            ("rounds of collectives", self.rounds.know(nspace)),
            ("values asked for", self.modexes.know(nspace)),
            ("slots told of", self.freed.know(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }

    /// Ends everything that this daemon has started.
    pub(super) fn stop(&mut self, cx: &mut Cx<'_>) {
        for (nspace, job) in std::mem::take(&mut self.jobs) {
            for (rank, _) in job.procs.iter().filter(|(_, proc)| proc.is_alive()) {
                cx.effect(Effect::Signal { proc: ProcId::new(&nspace, *rank), signal: SIGKILL });
            }
            if !job.procs.is_empty() {
                cx.effect(Effect::Forget { nspace, scratch: job.desc.directory(&cx.config.scratch) });
            }
        }
        cx.effect(Effect::Stop);
    }
}
