//! A query that is being answered.

use std::collections::BTreeMap;

use phalanx_core::Time;
use phalanx_spec::keys;
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::msg::{Found, Subject};
use crate::root::operations::Operations;
use crate::root::requests::Answered;

/// The requester, the time, and what the daemons have reported for the query.
pub(super) struct Inquiry<'a> {
    pub(super) now: Time,
    pub(super) from: &'a ProcId,
    pub(super) found: &'a BTreeMap<Subject, Found>,
    pub(super) operations: &'a Operations,
    pub(super) answered: &'a Answered,
}

/// The job that the qualifiers name.
pub(super) fn nspace(qualifiers: &[Info]) -> Option<Nspace> {
    let named = |key| match qualifiers.find(key)? {
        Value::String(text) => Nspace::new(text.as_str()?).ok(),
        Value::ProcNspace(nspace) => Some(nspace.clone()),
        Value::Proc(proc) => Some(proc.nspace.clone()),
        _ => None,
    };
    [keys::NSPACE, keys::JOBID, keys::PROCID].into_iter().find_map(named)
}
