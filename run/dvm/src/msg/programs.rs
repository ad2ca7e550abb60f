//! The files that the ranks of a job were started from.

use std::collections::BTreeMap;

use phalanx_wire::Text;

use crate::encoding::encoded;
use crate::ranges::Ranges;

/// The ranks by the path of the file that was executed: usually one path per app, or one per kind of host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Programs {
    ranks: BTreeMap<Text, Ranges>,
}

impl Programs {
    pub(crate) fn add(&mut self, file: Text, rank: u32) {
        self.ranks.entry(file).or_default().insert(rank);
    }

    pub(crate) fn merge(&mut self, more: Programs) {
        for (file, ranks) in more.ranks {
            self.ranks.entry(file).or_default().add(&ranks);
        }
    }

    /// Removes these ranks, and returns what is known of them.
    pub(crate) fn take(&mut self, ranks: &Ranges) -> Programs {
        let taken = self.ranks.iter_mut().map(|(file, of)| (file.clone(), of.take(ranks)));
        let taken = taken.filter(|(_, of)| !of.is_empty()).collect();
        self.ranks.retain(|_, of| !of.is_empty());
        Programs { ranks: taken }
    }

    pub(crate) fn of(&self, rank: u32) -> Option<&Text> {
        self.ranks.iter().find(|(_, ranks)| ranks.contains(rank)).map(|(file, _)| file)
    }

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        let one = |(file, ranks): (&Text, &Ranges)| {
            file.as_bytes().len()
                + size_of::<(Text, Ranges)>()
                + ranks.spans().count() * size_of::<(u32, u32)>()
        };
        self.ranks.iter().map(one).sum()
    }
}

encoded!(struct Programs { ranks });
