//! Jobs started by jobs: their ancestry, the tool that runs all of them, and what happens to them when their parent ends.
//!
//! A job spawned by a rank belongs to the user or tool that runs the rank's job, which sees its output and waits for its end.

use phalanx_spec::{IofChannel, keys};
use phalanx_wire::{InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::job::{JobRequest, JobVerdict};
use crate::signals::SIGHUP;

/// Where a job comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Descent {
    /// The first ancestor; the job's own namespace if no job has spawned it.
    pub(super) first: Nspace,
    /// The tool that has started it or its first ancestor. `None`: the user has.
    pub(super) run_by: Option<RunBy>,
}

/// A tool that runs a job and all that descend from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunBy {
    pub(super) tool: ProcId,
    pub(super) node: NodeId,
    /// The channels that the tool wants to see.
    pub(super) channels: IofChannel,
    /// The job ends with the tool (`PMIX_NOHUP` was not given).
    pub(super) ends_with_it: bool,
}

/// Whether a job ends with its parent, as its spawn requested (`PMIX_SPAWN_CHILD_SEP`, `PMIX_NOHUP`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separation {
    /// `PMIX_SPAWN_CHILD_SEP` is true: it does not end with its parent.
    Separate,
    /// `PMIX_NOHUP` is true: nor does it when the tool that runs its parent is gone.
    Nohup,
    /// `PMIX_SPAWN_CHILD_SEP` is false: it does.
    Tied,
    /// Not given: it does unless its parent has ended well.
    Unsaid,
}

impl Separation {
    pub(super) fn of(job: &JobRequest) -> Separation {
        match job.info.find(keys::SPAWN_CHILD_SEP).map(Value::is_true) {
            Some(false) => Separation::Tied,
            _ if job.info.is_set(keys::NOHUP) => Separation::Nohup,
            Some(true) => Separation::Separate,
            None => Separation::Unsaid,
        }
    }

    /// Whether a child goes on after its parent has ended like this. A job that the user ends takes all its children with it.
    pub(super) fn survives(self, end: &JobVerdict) -> bool {
        match self {
            Separation::Separate => {
                !matches!(end, JobVerdict::Cancelled { .. } | JobVerdict::TimedOut { .. })
            }
            Separation::Nohup => match end {
                JobVerdict::Cancelled { signal } => *signal == SIGHUP,
                end => !matches!(end, JobVerdict::TimedOut { .. }),
            },
            Separation::Tied => false,
            Separation::Unsaid => *end == JobVerdict::Success,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use phalanx_wire::Info;

    use super::*;

    #[test]
    fn children_outlive_their_parent_as_their_spawn_has_said() {
        let ends = [
            JobVerdict::Success,
            JobVerdict::NotStarted { error: String::new() },
            JobVerdict::Cancelled { signal: SIGHUP },
            JobVerdict::Cancelled { signal: 2 },
            JobVerdict::TimedOut { limit: Duration::ZERO },
        ];
        let sep = |value: bool| Info::new(keys::SPAWN_CHILD_SEP, value);
        let nohup = Info::new(keys::NOHUP, true);
        for (info, survives) in [
            (vec![], [true, false, false, false, false]),
            (vec![sep(false), nohup.clone()], [false; 5]),
            (vec![sep(true)], [true, true, false, false, false]),
            (vec![nohup.clone()], [true, true, true, false, false]),
            (vec![sep(true), nohup], [true, true, true, false, false]),
        ] {
            let separation = Separation::of(&JobRequest { info, ..JobRequest::default() });
            assert_eq!(ends.each_ref().map(|end| separation.survives(end)), survives, "{separation:?}");
        }
    }
}
