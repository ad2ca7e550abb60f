//! Who may steer which jobs.
//!
//! Which users may ask at all, the servers decide by the kernel's word: the owner of the DVM, and root. Their tools may steer every
//! job. Ranks run what somebody has given them to run: how far they may go is for whoever has started the DVM to say.

use phalanx_wire::{Nspace, ProcId};

use crate::config::Steer;
use crate::root::Root;

impl Root {
    /// Whether this process or tool may do something to the ranks of that job.
    pub(super) fn may_steer(&self, by: &ProcId, nspace: &Nspace) -> bool {
        self.config.rules.steer == Steer::Any || self.is_tool(by) || self.descends(nspace, &by.nspace)
    }

    pub(super) fn may_steer_all(&self, by: &ProcId) -> bool {
        self.jobs.keys().all(|nspace| self.may_steer(by, nspace))
    }

    /// Whether a job is this one, or has been spawned by it or by one that it has spawned.
    fn descends(&self, nspace: &Nspace, from: &Nspace) -> bool {
        let mut nspace = nspace.clone();
        loop {
            if nspace == *from {
                return true;
            }
            // Jobs are older than those that they spawn: it ends.
            let desc = self.desc(&nspace).or_else(|| self.journals.get(&nspace).map(|j| &**j.desc()));
            match desc.and_then(|desc| desc.parent.clone()) {
                Some(parent) => nspace = parent.nspace,
                None => return false,
            }
        }
    }
}
