//! Which processes and tools may steer which jobs.
//!
//! Which users may connect at all is decided by the servers from the kernel's credentials: the owner of the DVM, and root.
//! Their tools may steer every job. Ranks run arbitrary programs, so the DVM's configuration sets how far they may go.

use phalanx_wire::{Nspace, ProcId};

use crate::config::Steer;
use crate::root::Root;

impl Root {
    /// Whether this process or tool may act on the ranks of that job.
    pub(super) fn may_steer(&self, by: &ProcId, nspace: &Nspace) -> bool {
        self.config.rules.steer == Steer::Any || self.is_tool(by) || self.descends(nspace, &by.nspace)
    }

    pub(super) fn may_steer_all(&self, by: &ProcId) -> bool {
        self.jobs.keys().all(|nspace| self.may_steer(by, nspace))
    }

    /// Whether a job is this one or a descendant of it.
    fn descends(&self, nspace: &Nspace, from: &Nspace) -> bool {
        let mut nspace = nspace.clone();
        loop {
            if nspace == *from {
                return true;
            }
            // Terminates, as jobs are older than those that they spawn.
            let desc = self.desc(&nspace).or_else(|| self.journals.get(&nspace).map(|j| &**j.desc()));
            match desc.and_then(|desc| desc.parent.clone()) {
                Some(parent) => nspace = parent.nspace,
                None => return false,
            }
        }
    }
}
