//! What tables hold of a job: nothing once it is over, which builds with debug assertions check at each daemon.

use phalanx_wire::Nspace;

use crate::daemon::Daemon;

impl Daemon {
    /// The tables that hold something of this job.
    pub(crate) fn traces_of(&self, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("timers", self.timers.holds(|timer| timer.concerns(nspace))),
            ("rounds of collectives", self.rounds.know(nspace)),
            ("values asked for", self.has_modexes_of(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}
