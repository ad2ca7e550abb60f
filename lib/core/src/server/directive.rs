//! What directives of a request have in common.
//!
//! Each verb file has a table of the attributes it honours. `query` reports these tables, and a directive that is marked as
//! required but is in no table is refused here. Verbs that the host carries out do not refuse: the host gets all directives
//! and decides.

use std::time::Duration;

use phalanx_spec::{DataType, Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Value};
use tracing::warn;

/// Refuses a required directive that is not supported.
pub(super) fn refuse_unknown(
    verb: &str,
    from: &ProcId,
    info: &[Info],
    honoured: &[&str],
) -> Result<(), Status> {
    match unknown(info, honoured) {
        None => Ok(()),
        Some(directive) => {
            warn!(verb, %from, key = %directive.key, "a required attribute is not supported: refused");
            Err(Status::ERR_NOT_SUPPORTED)
        }
    }
}

/// The first required directive that is not in the table.
pub(super) fn unknown<'a>(info: &'a [Info], honoured: &[&str]) -> Option<&'a Info> {
    info.iter().find(|info| info.is_required() && !honoured.iter().any(|key| info.key == **key))
}

/// `pmix.timeout`, in seconds. None, or zero: for ever.
pub(super) fn timeout(info: &[Info]) -> Option<Duration> {
    let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64)?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// The processes in an attribute's value: one, or an array of them.
pub(super) fn procs_of(value: &Value) -> Vec<ProcId> {
    match value {
        Value::Proc(proc) => vec![proc.clone()],
        Value::DataArray(array) => array.items.iter().filter_map(Value::as_proc).cloned().collect(),
        _ => Vec::new(),
    }
}

/// Processes as the value of an attribute.
pub(super) fn as_array(procs: &[ProcId]) -> DataArray {
    DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::Proc).collect() }
}

/// The directive that reports a collective's failure among local participants to the host.
pub(super) fn failed(status: Status) -> Info {
    Info::new(keys::LOCAL_COLLECTIVE_STATUS, status)
}
