//! Refuses upcalls with required directives that this runtime does not support.
//!
//! The table of honoured attributes (`root/mod.rs`) answers queries, and required directives are looked up in it before
//! anything is done. The root checks spawns itself, so that the requester gets the reason before the status.

use std::collections::BTreeSet;

use phalanx_core::HostOp;
use phalanx_core::host::{ConnectRequest, FenceRequest, GroupRequest};
use phalanx_core::support;
use phalanx_spec::{Status, keys};
use phalanx_wire::{Info, Key, Nspace, ProcId};

use crate::root::FUNCTIONS;
use crate::root::spawn::{refusal, required_in};

/// Checks the upcalls of our server before anything acts on them.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Directives that the user of a job was notified about.
    told: BTreeSet<(Nspace, &'static str, Key)>,
}

/// An upcall with a required directive that nothing honours.
#[derive(Debug)]
pub(crate) struct Unsupported {
    /// The caller gets only a status; the user of the caller's job gets the details, once.
    pub(crate) note: Option<(Option<ProcId>, String)>,
    /// Other members wait for it: it goes on, and is to fail for all of them.
    pub(crate) goes_on: bool,
}

impl Gate {
    pub(crate) fn check(&mut self, op: &mut HostOp) -> Result<(), Unsupported> {
        let Some(directive) = unknown_directive(op) else { return Ok(()) };
        Err(Unsupported { note: self.note(op, &directive), goes_on: fail_collective(op) })
    }

    fn note(&mut self, op: &HostOp, directive: &Key) -> Option<(Option<ProcId>, String)> {
        let function = op.function().unwrap_or_default();
        let by = caller(op);
        let nspace = by.map_or(Nspace::none(), |by| by.nspace.clone());
        if self.told.len() >= MOST_TOLD {
            self.told.clear();
        }
        if !self.told.insert((nspace, function, directive.clone())) {
            return None;
        }
        Some((by.cloned(), refusal(function, directive)))
    }
}

/// The first required directive that nothing honours.
fn unknown_directive(op: &mut HostOp) -> Option<Key> {
    if matches!(op, HostOp::Spawn(_)) {
        return None;
    }
    let honoured: Vec<&str> = support::honoured(FUNCTIONS, op.function()?)?.collect();
    let directives = op.directives_mut().into_iter();
    let mut unknown = directives.filter(|info| !honoured.contains(&info.key.as_str()));
    unknown.find_map(|info| required_in(info).cloned())
}

/// The process that has called, or one that takes part.
fn caller(op: &HostOp) -> Option<&ProcId> {
    match op {
        HostOp::Fence(FenceRequest { procs, .. })
        | HostOp::Connect(ConnectRequest { procs, .. })
        | HostOp::Disconnect(ConnectRequest { procs, .. })
        | HostOp::GroupConstruct(GroupRequest { from: None, procs, .. })
        | HostOp::GroupDestruct(GroupRequest { procs, .. }) => procs.first(),
        _ => op.asked_by(),
    }
}

/// Makes a collective fail for all its members. `false`: it is no collective.
fn fail_collective(op: &mut HostOp) -> bool {
    match op {
        HostOp::Fence(FenceRequest { info, .. })
        | HostOp::Connect(ConnectRequest { info, .. })
        | HostOp::Disconnect(ConnectRequest { info, .. })
        | HostOp::GroupConstruct(GroupRequest { from: None, info, .. })
        | HostOp::GroupDestruct(GroupRequest { info, .. }) => {
            info.insert(0, Info::new(keys::LOCAL_COLLECTIVE_STATUS, Status::ERR_NOT_SUPPORTED));
            true
        }
        _ => false,
    }
}

/// The most directives that are remembered as already reported.
const MOST_TOLD: usize = 64;
