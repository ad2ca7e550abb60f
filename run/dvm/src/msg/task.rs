//! Tasks that the root gives to daemons, and the results for the processes concerned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_spec::Status;
use phalanx_wire::Text;

use super::{ControlRequest, LogLine, Mail, Members, Subject};
use crate::encoding::encoded;
use crate::ranges::Ranges;

/// Names one task; equal on all daemons that carry it out. Each contributes to the operation of this name when it is done.
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
    /// Act on processes.
    Control { targets: Members, request: Arc<ControlRequest> },
    /// Report what is known about this subject.
    Survey(Subject),
    /// Take checkpoints of these with the command of their job.
    Checkpoint { targets: Members, name: Text, limit: Duration },
    /// Have the site's program provision nodes.
    Provision { nodes: Text, image: Option<Text>, limit: Duration },
    /// End these processes without reporting their ends, and keep their places.
    Clear { targets: Members },
    /// Start them again.
    Renew { targets: Members },
    /// Report at once which processes of all jobs have ended or are about to, and for so long all that follow.
    TellFreed { limit: Duration },
    /// Write a line for a process that logs; the root has given it this number.
    Log { item: u32, line: LogLine },
    /// Send a mail for it.
    Mail { item: u32, mail: Mail, limit: Duration },
}

/// The result of each target: ranks of one job, grouped by equal results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    ranks: BTreeMap<Status, Ranges>,
    /// Details of a status, from the first daemon that gave any.
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
    6 TellFreed { limit },
    7 Log { item, line },
    8 Mail { item, mail, limit },
});
encoded!(struct Results { ranks, why });
