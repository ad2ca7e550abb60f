//! Upcalls that wait for the root, which answers what is not handled here.

use std::collections::BTreeMap;

use phalanx_core::{HostCall, HostOp, HostReply};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::local::turn::Cx;
use crate::msg::Up;

/// Upcalls that wait for the root, and the processes that made them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: BTreeMap<u64, (HostCall, Option<ProcId>)>,
    last: u64,
}

impl Requests {
    /// Hands an upcall to the root, which answers it.
    pub(super) fn hand_up(&mut self, cx: &mut Cx<'_>, call: HostCall, op: HostOp) {
        self.last += 1;
        let request = self.last;
        self.open.insert(request, (call, op.asked_by().cloned()));
        cx.post(Up::Host { request, op });
    }

    pub(super) fn answer(&mut self, cx: &mut Cx<'_>, request: u64, reply: &HostReply) {
        if let Some((call, _)) = self.open.remove(&request) {
            cx.reply(call, reply.clone());
        }
    }

    /// The job is over: answers the upcalls of its processes. Later replies of the root are ignored.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let of_job = |_: &u64, (_, by): &mut (HostCall, Option<ProcId>)| is_of(by.as_ref(), nspace);
        for (_, (call, _)) in self.open.extract_if(.., of_job) {
            cx.reply(call, HostReply::Done(Status::ERR_LOST_CONNECTION));
        }
    }

    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.open.values().any(|(_, by)| is_of(by.as_ref(), nspace))
    }
}

fn is_of(proc: Option<&ProcId>, nspace: &Nspace) -> bool {
    proc.is_some_and(|proc| proc.nspace == *nspace)
}
