//! What tables hold of a job: nothing once it is deregistered, which builds with debug assertions check.
//!
//! Not counted is what belongs to others: the pull of a job's output is its reader's, a process set its host's, and a meeting
//! with processes of other jobs is kept until those have been told that it has failed.

use phalanx_wire::Nspace;

use super::Server;

impl Server {
    /// The tables that hold something of this job.
    pub(super) fn traces_of(&self, nspace: &Nspace) -> Vec<&'static str> {
        let tables = [
            ("jobs", self.jobs.contains_key(nspace)),
            ("early clients", self.early_clients.knows(nspace)),
            ("what peers were told", self.conns.were_told_of(nspace)),
            ("values of other nodes", self.modex.blocks(nspace).next().is_some()),
            ("collected values", self.is_collected(nspace)),
            ("gets", self.gets.concern(nspace)),
            ("collectives", self.collectives.are_all_of(nspace)),
            ("groups", self.groups.are_all_of(nspace)),
            ("events", self.events.are_from(nspace)),
            ("upcalls", self.upcalls.wait_for_any_of(nspace)),
        ];
        tables.into_iter().filter(|(_, has)| *has).map(|(table, _)| table).collect()
    }
}
