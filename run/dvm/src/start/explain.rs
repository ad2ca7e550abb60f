//! What a start waits for, host by host.

use phalanx_core::{Time, Waiting};

use super::phase::Phase;
use super::{Starter, few};

impl Starter {
    /// The state of the hosts that are not up yet.
    pub(crate) fn unfinished(&self, now: Time) -> Option<String> {
        let hosts = self.hosts.iter().zip(&self.plan.fleet.hosts);
        let open = hosts.filter(|(state, _)| !self.booted && state.is_open());
        let far = open.map(|(state, host)| {
            format!("{}: {} for {:.1} s", host.name, state.phase, now.since(state.since).as_secs_f64())
        });
        let far: Vec<String> = far.collect();
        (!far.is_empty()).then(|| few(&far, "; "))
    }

    pub(crate) fn explain(&self) -> impl Iterator<Item = Waiting> {
        let hosts = self.hosts.iter().zip(&self.plan.fleet.hosts);
        let starting = hosts.filter(|(state, _)| state.is_open());
        starting.map(|(state, host)| Waiting {
            operation: "start".into(),
            subject: format!("the daemon of {} ({})", host.name, state.phase),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since: state.since,
            deadline: (state.phase != Phase::Waiting).then(|| state.since.after(self.limits.agent)),
            unblocked_by: self.next_step(&state.phase).into(),
        })
    }

    /// What takes a daemon out of this phase.
    fn next_step(&self, phase: &Phase) -> String {
        let unknown = || {
            let hosts = self.inner.iter().skip(1).zip(&self.plan.fleet.hosts).zip(&self.hosts);
            let unknown = hosts.filter(|((at, _), state)| at.is_none() && !state.is_lost());
            unknown.map(|((_, host), _)| &*host.name).collect::<Vec<_>>()
        };
        match phase {
            Phase::Waiting => "the start of other daemons".into(),
            Phase::Starting => "the command that starts it reaching px there".into(),
            Phase::Settling => "that daemon saying where it can be reached".into(),
            Phase::Joining => match unknown().as_slice() {
                [] => "that daemon coming to the one above it".into(),
                names => format!("the daemons of {} saying where they can be reached", few(names, ", ")),
            },
            Phase::Up | Phase::Lost(_) => String::new(),
        }
    }
}
