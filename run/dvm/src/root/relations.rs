//! Which jobs concern each other, because one descends from the other or they are connected.
//!
//! What happens to a job is told to ranks of these jobs if they want to know. All other jobs are strangers.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_wire::Nspace;

use crate::msg::Members;
use crate::root::Root;

#[derive(Debug, Default)]
pub(super) struct Relations {
    /// How often these processes of several jobs have connected without disconnecting. The rounds of collectives bound it.
    connected: BTreeMap<Arc<[Members]>, u32>,
}

impl Relations {
    pub(super) fn connect(&mut self, members: &Arc<[Members]>) {
        if members.len() > 1 {
            *self.connected.entry(members.clone()).or_default() += 1;
        }
    }

    pub(super) fn disconnect(&mut self, members: &Arc<[Members]>) {
        if let Some(times) = self.connected.get_mut(members) {
            *times -= 1;
            if *times == 0 {
                self.connected.remove(members);
            }
        }
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.connected.keys().any(|members| includes(members, nspace))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.connected.retain(|members, _| !includes(members, nspace));
    }
}

impl Root {
    /// The jobs whose ranks may hear what happens to this one.
    pub(super) fn concerned_by(&self, nspace: &Nspace, first: &Nspace) -> Vec<Nspace> {
        let family =
            self.jobs.iter().filter(|(_, job)| job.descent.first == *first).map(|(nspace, _)| nspace);
        let connections = self.relations.connected.keys().filter(|members| includes(members, nspace));
        let connected = connections.flat_map(|members| members.iter().map(|members| &members.nspace));
        let mut all: Vec<Nspace> = std::iter::once(nspace).chain(family).chain(connected).cloned().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn includes(members: &[Members], nspace: &Nspace) -> bool {
    members.iter().any(|members| members.nspace == *nspace)
}
