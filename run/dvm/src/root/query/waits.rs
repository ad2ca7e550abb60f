//! What is waited for anywhere in the DVM: who asked, who has not come, since when.

use phalanx_spec::{DataType, keys};
use phalanx_wire::{DataArray, Info, ProcId, Value};

use super::names;
use crate::msg::{Found, Wait};
use crate::root::Root;

impl Root {
    pub(super) fn all_waits(&self, found: &Found) -> DataArray {
        DataArray::of_infos(found.waits.iter().map(|wait| {
            let Wait { node, age, waiting } = wait;
            let about = [
                Info::new(names::OPERATION, waiting.operation),
                Info::new(names::SUBJECT, waiting.subject.as_str()),
                Info::new(keys::HOSTNAME, &*self.nodes.name(*node)),
                Info::new(names::AGE, age.as_millis() as u64),
                Info::new(names::ASKED_BY, procs(&waiting.asked_by)),
                Info::new(names::MISSING, procs(&waiting.missing)),
                Info::new(names::UNBLOCKED_BY, waiting.unblocked_by),
            ];
            Info::new(names::WAIT, DataArray::of_infos(about))
        }))
    }
}

fn procs(procs: &[ProcId]) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::Proc).collect() }
}
