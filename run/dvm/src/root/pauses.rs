//! Which ranks of a job are paused, and why. A rank goes on when no reason is left.

use std::collections::BTreeMap;

use phalanx_core::{Time, Waiting};
use phalanx_wire::Nspace;

use crate::msg::{Control, Pauser};
use crate::ranges::Ranges;

#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<Pauser, Pause>);

#[derive(Debug)]
struct Pause {
    ranks: Ranges,
    since: Time,
}

impl Pauses {
    /// Notes a control action on these ranks.
    pub(super) fn note(&mut self, now: Time, ranks: &Ranges, control: Control, pauser: &Pauser) {
        match control {
            Control::Suspend => {
                let new = || Pause { ranks: Ranges::new(), since: now };
                self.0.entry(pauser.clone()).or_insert_with(new).ranks.add(ranks);
            }
            Control::Resume => self.end(ranks, |one| one == pauser),
            Control::Terminate { .. } | Control::Kill => self.forget(ranks),
            Control::Signal(_) => {}
        }
    }

    pub(super) fn forget(&mut self, ranks: &Ranges) {
        self.end(ranks, |_| true);
    }

    fn end(&mut self, ranks: &Ranges, is_meant: impl Fn(&Pauser) -> bool) {
        self.0.retain(|pauser, pause| {
            if is_meant(pauser) {
                ranks.iter().for_each(|rank| pause.ranks.remove(rank));
            }
            !pause.ranks.is_empty()
        });
    }

    /// The ranks that are paused for this reason.
    pub(super) fn by(&self, pauser: &Pauser) -> Option<&Ranges> {
        self.0.get(pauser).map(|pause| &pause.ranks)
    }

    fn of(&self, is_meant: impl Fn(&Pauser) -> bool) -> Ranges {
        let mut all = Ranges::new();
        let meant = self.0.iter().filter(|(pauser, _)| is_meant(pauser));
        meant.for_each(|(_, pause)| all.add(&pause.ranks));
        all
    }

    /// Those of these ranks that stand because their launcher does.
    pub(super) fn suspended(&self, ranks: &Ranges) -> Ranges {
        self.of(|pauser| *pauser != Pauser::Request).and(ranks)
    }

    /// What `px ps` calls these ranks, if all of them stand: *paused* by request, *suspended* with their launcher.
    pub(super) fn word(&self, ranks: &Ranges) -> Option<&'static str> {
        let all = |paused: Ranges| !ranks.is_empty() && paused.and(ranks).count() == ranks.count();
        match (all(self.of(|one| *one == Pauser::Request)), all(self.suspended(ranks))) {
            (true, true) => Some("paused, suspended"),
            (false, true) => Some("suspended"),
            _ => all(self.of(|_| true)).then_some("paused"),
        }
    }

    pub(super) fn explain(&self, nspace: &Nspace) -> impl Iterator<Item = Waiting> {
        self.0.iter().map(move |(pauser, pause)| {
            let (operation, unblocked_by) = match pauser {
                Pauser::Request => ("pause", "a request to resume, such as px ctl resume"),
                Pauser::User | Pauser::Launcher(_) => ("suspension", "SIGCONT to its launcher, or fg"),
            };
            Waiting {
                operation: operation.into(),
                subject: format!("{nspace}:{}", pause.ranks),
                asked_by: Vec::new(),
                missing: match pauser {
                    Pauser::Launcher(launcher) => vec![launcher.clone()],
                    Pauser::Request | Pauser::User => Vec::new(),
                },
                since: pause.since,
                deadline: None,
                unblocked_by: unblocked_by.into(),
            }
        })
    }
}
