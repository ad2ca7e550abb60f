//! The calls to our PMIx server that it has not returned.

use std::collections::BTreeMap;

use phalanx_core::CallId;
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::msg::{Survey, TapName};

/// The calls that our server has not returned.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<CallId, Call>,
    last: u64,
}

/// The purpose of a call to our server.
#[derive(Debug)]
pub(super) enum Call {
    Register(Nspace),
    SetupFork(ProcId),
    Modex {
        asker: NodeId,
        id: u64,
    },
    Explain(Survey),
    /// A piece of output for a reader here.
    Output {
        to: TapName,
        piece: u64,
        bytes: usize,
    },
    /// Nothing depends on the answer.
    Notice(&'static str),
}

impl Calls {
    pub(super) fn open(&mut self, purpose: Call) -> CallId {
        self.last += 1;
        let id = CallId(self.last);
        self.open.insert(id, purpose);
        id
    }

    pub(super) fn take(&mut self, id: CallId) -> Option<Call> {
        self.open.remove(&id)
    }

    /// Whether our server has yet to answer a call about this job.
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|call| match call {
            Call::Register(of) => of == nspace,
            Call::SetupFork(proc) => proc.nspace == *nspace,
            Call::Output { to, .. } => to.is_for(nspace),
            Call::Modex { .. } | Call::Explain(_) | Call::Notice(_) => false,
        })
    }
}
