//! What tables hold of a job: nothing once it is over, which builds with debug assertions check at each daemon.
//!
//! Not counted is the history, which is bounded, and what others have: publications that outlive their job, pulls of its
//! output.

use phalanx_wire::Nspace;

use crate::daemon::Daemon;

impl Daemon {
    /// The tables that hold something of this job.
    pub(crate) fn traces_of(&self, nspace: &Nspace) -> Vec<&'static str> {
        let root = self.root.as_ref();
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("timers", self.timers.holds(|timer| timer.concerns(nspace))),
            ("rounds of collectives", self.rounds.know(nspace)),
            ("values asked for", self.has_modexes_of(nspace)),
            ("the root's jobs", root.is_some_and(|root| root.jobs.contains_key(nspace))),
            ("lookups", root.is_some_and(|root| root.store.waits_for_any_of(nspace))),
            ("groups with survivors", root.is_some_and(|root| root.survivals.know(nspace))),
            ("cleanups", root.is_some_and(|root| root.spreads.know(nspace))),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}
