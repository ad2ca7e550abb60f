//! Everything that is waiting anywhere in the DVM: requesters, what is missing, since when.

use std::time::Duration;

use phalanx_core::Waiting;
use phalanx_spec::{DataType, keys};
use phalanx_wire::{DataArray, Info, ProcId, Value};

use super::names;
use crate::msg::{Found, Wait};
use crate::root::dvm::Dvm;

const MOMENT: Duration = Duration::from_secs(1);

pub(super) fn all_waits(dvm: &Dvm, found: &Found) -> DataArray {
    let waits = found.waits.iter().filter(|wait| !is_under_way(wait));
    let told = waits.filter(|wait| !is_told_better(&wait.waiting, &found.waits));
    DataArray::of_infos(told.map(|wait| {
        let Wait { node, age, waiting } = wait;
        let about = [
            Info::new(names::OPERATION, &*waiting.operation),
            Info::new(names::SUBJECT, waiting.subject.as_str()),
            Info::new(keys::HOSTNAME, &*dvm.nodes.name(*node)),
            Info::new(names::AGE, age.as_millis() as u64),
            Info::new(names::ASKED_BY, procs(&waiting.asked_by)),
            Info::new(names::MISSING, procs(&waiting.missing)),
            Info::new(names::UNBLOCKED_BY, &*waiting.unblocked_by),
        ];
        Info::new(names::WAIT, DataArray::of_infos(about))
    }))
}

/// Any output waits for a moment.
fn is_under_way(wait: &Wait) -> bool {
    wait.waiting.operation == "output" && wait.age < MOMENT
}

/// Whether a server reports waiting for its host, while the host reports the same operation with what is missing.
fn is_told_better(waiting: &Waiting, all: &[Wait]) -> bool {
    let is_asked_by_same = |other: &Waiting| waiting.asked_by.iter().all(|by| other.asked_by.contains(by));
    let tells_better = |other: &Waiting| {
        other.operation == waiting.operation
            && other.unblocked_by != Waiting::HOSTS_ANSWER
            && is_asked_by_same(other)
    };
    waiting.unblocked_by == Waiting::HOSTS_ANSWER && all.iter().any(|wait| tells_better(&wait.waiting))
}

fn procs(procs: &[ProcId]) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::Proc).collect() }
}
