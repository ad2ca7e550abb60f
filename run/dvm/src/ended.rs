//! What tables hold of a job: nothing once it is over, which builds with debug assertions check at each daemon.
//!
//! Not counted is what is on its way to the root, which acknowledges it within a second whatever it is about.

use phalanx_wire::Nspace;

use crate::daemon::Daemon;

impl Daemon {
    /// The tables that hold something of this job.
    pub(crate) fn traces_of(&self, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("operations under way", self.overlay.open_operations().any(|(op, ..)| op.concerns(nspace))),
            ("calls of the server", self.has_calls_for(nspace)),
            ("requests to the root", self.has_requests_of(nspace)),
            ("output given to the server", self.delivering.know(nspace)),
            ("timers", self.timers.holds(|timer| timer.concerns(nspace))),
            ("rounds of collectives", self.rounds.know(nspace)),
            ("values asked for", self.has_modexes_of(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}
