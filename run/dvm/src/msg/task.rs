//! What the root has daemons do, and what has become of the processes that it is done to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::Text;

use super::{ControlRequest, Members, Subject};
use crate::encoding::encoded;
use crate::ranges::Ranges;

/// Names one task; equal on all daemons that carry it out, each of which contributes to the operation of this name when it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId {
    /// The entry in the root's table of operations that it belongs to.
    pub(crate) operation: u64,
    /// Which of that entry's tasks it is.
    pub(crate) number: u32,
    /// The daemons that carry it out.
    pub(crate) daemons: Ranges,
}

#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Do this to processes.
    Control { targets: Members, request: Arc<ControlRequest> },
    /// Tell what you know.
    Survey(Subject),
    /// Take checkpoints of these with the command of their job.
    Checkpoint { targets: Members, name: Text, limit: Duration },
    /// Have the site's program provision nodes.
    Provision { nodes: Text, image: Option<Text>, limit: Duration },
    /// End these, of whom nobody is to hear that they have ended, and keep their places.
    Clear { targets: Members },
    /// Start them again.
    Renew { targets: Members },
}

/// What became of each target: ranks of one job, those with the same result together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    ranks: BTreeMap<Status, Ranges>,
    /// More of why, as some daemon has said it first.
    why: BTreeMap<Status, String>,
}

impl Results {
    pub(crate) fn set(&mut self, ranks: &Ranges, status: Status) {
        if !ranks.is_empty() {
            self.ranks.entry(status).or_default().add(ranks);
        }
    }

    pub(crate) fn explain(&mut self, status: Status, why: String) {
        self.why.entry(status).or_insert(why);
    }

    pub(crate) fn why(&self, status: Status) -> Option<&str> {
        self.why.get(&status).map(String::as_str)
    }

    pub(crate) fn merge(&mut self, more: Results) {
        more.ranks.iter().for_each(|(status, ranks)| self.set(ranks, *status));
        for (status, why) in more.why {
            self.why.entry(status).or_insert(why);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Status, &Ranges)> {
        self.ranks.iter().map(|(status, ranks)| (*status, ranks))
    }
}

encoded!(struct TaskId { operation, number, daemons });
encoded!(enum Task {
    0 Control { targets, request },
    1 Survey(subject),
    2 Clear { targets },
    3 Renew { targets },
    4 Checkpoint { targets, name, limit },
    5 Provision { nodes, image, limit },
});
encoded!(struct Results { ranks, why });
