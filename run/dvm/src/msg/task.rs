//! What the root has daemons do, and what has become of the processes that it is done to.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_spec::Status;

use super::{ControlRequest, Members, Subject};
use crate::encoding::{Encode, Malformed, Reader, Writer, encoded};
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
}

/// What became of each target: ranks of one job, those with the same result together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results(BTreeMap<Status, Ranges>);

impl Results {
    pub(crate) fn set(&mut self, ranks: &Ranges, status: Status) {
        if !ranks.is_empty() {
            self.0.entry(status).or_default().add(ranks);
        }
    }

    pub(crate) fn merge(&mut self, more: Results) {
        more.0.iter().for_each(|(status, ranks)| self.set(ranks, *status));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Status, &Ranges)> {
        self.0.iter().map(|(status, ranks)| (*status, ranks))
    }
}

encoded!(struct TaskId { operation, number, daemons });
encoded!(enum Task { 0 Control { targets, request }, 1 Survey(subject) });

impl Encode for Results {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Results, Malformed> {
        BTreeMap::decode(from).map(Results)
    }
}
