//! What the root asks of this daemon: its processes, what they use, what is waited for here.

use std::collections::BTreeMap;

use phalanx_core::Waiting;
use phalanx_core::server::ServerCall;
use phalanx_spec::ProcState;
use phalanx_wire::Nspace;

use crate::effect::Effect;
use crate::local::procs::{Phase, Pmix, Proc};
use crate::local::{Call, Cx, Local};
use crate::msg::{Found, FoundProc, Measured, OpId, Part, Subject, Survey, Usage, Wait, ended_state};

impl Local {
    /// The root wants to know.
    pub(super) fn on_survey(&mut self, cx: &mut Cx<'_>, survey: Survey) {
        match &survey.of {
            Subject::Waits => self.call(cx, ServerCall::Explain, Call::Explain(survey)),
            Subject::Nodes => cx.effect(Effect::Measure { survey, pids: Vec::new() }),
            Subject::Procs { nspace, usage: true } => {
                let procs = self.jobs.get(nspace).into_iter().flat_map(|job| &job.procs);
                let living = procs.filter(|(_, proc)| proc.phase == Phase::Running);
                let pids = living.filter_map(|(rank, proc)| Some((rank.0, proc.pid?))).collect();
                cx.effect(Effect::Measure { survey, pids });
            }
            Subject::Procs { nspace, usage: false } => {
                let found = Found { procs: self.found_procs(nspace, BTreeMap::new()), ..Found::default() };
                cx.join(OpId::Task(survey.task), Part::Found(Box::new(found)));
            }
        }
    }

    /// The shell has looked what the processes, the daemon and its node use.
    pub(super) fn on_measured(&mut self, cx: &mut Cx<'_>, survey: Survey, measured: Measured) {
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
        cx.join(OpId::Task(survey.task), Part::Found(Box::new(found)));
    }

    /// What is waited for at this node, by anybody.
    pub(super) fn tell_waits(&mut self, cx: &mut Cx<'_>, survey: Survey, waiting: Vec<Waiting>) {
        let node = self.me;
        let waits = waiting.into_iter().take(MOST_WAITS);
        let waits = waits.map(|waiting| Wait { node, age: cx.now.since(waiting.since), waiting }).collect();
        let found = Found { waits, ..Found::default() };
        cx.join(OpId::Task(survey.task), Part::Found(Box::new(found)));
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

/// Waits that one daemon tells of.
const MOST_WAITS: usize = 256;
