//! Unanswered requests: to our PMIx server, and to the root on behalf of clients of that server.

use std::collections::BTreeMap;

use phalanx_core::server::ServerCall;
use phalanx_core::{CallId, HostCall, HostOp, HostReply};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::local::turn::{Cx, FromLocal};
use crate::msg::{Survey, TapName, Up};

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
    Told(&'static str),
}

impl Calls {
    pub(super) fn make(&mut self, cx: &mut Cx<'_>, call: ServerCall, purpose: Call) {
        self.last += 1;
        let id = CallId(self.last);
        self.open.insert(id, purpose);
        cx.out.push_back(FromLocal::Call { id, call });
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
            Call::Modex { .. } | Call::Explain(_) | Call::Told(_) => false,
        })
    }
}

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
