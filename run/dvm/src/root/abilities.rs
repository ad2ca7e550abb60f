//! What the ranks of a job can do for a checkpoint, and the checkpoints that they have taken.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::Rank;
use phalanx_wire::Text;

use crate::msg::{Method, Registration};
use crate::ranges::Ranges;

/// What the ranks of a job have registered, and the checkpoints that they have taken.
#[derive(Debug, Default)]
pub(super) struct Abilities {
    pub(super) methods: BTreeMap<Vec<Method>, Ranges>,
    pub(super) preemptible: Ranges,
    /// Checkpoints that all targets have taken, the oldest first.
    taken: VecDeque<(Text, Ranges)>,
}

impl Abilities {
    /// Replaces what the rank registered before.
    pub(super) fn register(&mut self, rank: Rank, registration: &Registration) {
        if let Some(methods) = &registration.methods {
            self.forget_methods(rank.0);
            self.methods.entry(methods.clone()).or_default().insert(rank.0);
        }
        match registration.preemptible {
            Some(true) => self.preemptible.insert(rank.0),
            Some(false) => self.preemptible.remove(rank.0),
            None => {}
        }
    }

    /// These ranks have ended or are being replaced.
    pub(super) fn forget(&mut self, ranks: &Ranges) {
        for rank in ranks.iter() {
            self.forget_methods(rank);
            self.preemptible.remove(rank);
        }
    }

    fn forget_methods(&mut self, rank: u32) {
        self.methods.values_mut().for_each(|ranks| ranks.remove(rank));
        self.methods.retain(|_, ranks| !ranks.is_empty());
    }

    /// The latest checkpoint that all of these ranks have taken.
    pub(super) fn last_of(&self, ranks: &Ranges) -> Option<&Text> {
        let taken = self.taken.iter().rev().find(|(_, by)| by.and(ranks) == *ranks);
        taken.map(|(name, _)| name)
    }

    pub(super) fn keep(&mut self, name: &Text, ranks: &Ranges) {
        self.taken.retain(|(known, _)| known != name);
        if self.taken.len() >= MOST_TAKEN {
            self.taken.pop_front();
        }
        self.taken.push_back((name.clone(), ranks.clone()));
    }
}

/// Checkpoints remembered per job.
const MOST_TAKEN: usize = 16;
