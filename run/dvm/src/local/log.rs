//! Lines that processes log: the shell writes them, and the root gets the result.

use phalanx_spec::Status;

use crate::local::turn::Cx;
use crate::msg::{OpId, Part, Results, TaskId};
use crate::ranges::Ranges;

pub(super) fn written(cx: &mut Cx<'_>, task: TaskId, result: Result<(), String>) {
    let mut results = Results::default();
    match result {
        Ok(()) => results.set(&Ranges::single(0), Status::SUCCESS),
        Err(why) => {
            results.set(&Ranges::single(0), Status::ERROR);
            results.explain(Status::ERROR, why);
        }
    }
    cx.join(OpId::Task(task), Part::Results(results));
}
