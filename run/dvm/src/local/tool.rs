//! Messages to tools that are connected here.

use phalanx_core::server::{OutputTo, ServerCall};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::local::calls::{Call, Calls};
use crate::local::turn::Cx;

/// Prints text as output that a tool of ours reads.
pub(super) fn say(cx: &mut Cx<'_>, calls: &mut Calls, dvm: &str, me: NodeId, tool: &ProcId, text: &str) {
    let Ok(dvm) = Nspace::new(dvm) else { return };
    let call = ServerCall::Output {
        to: OutputTo::Parent(tool.clone()),
        source: ProcId::new(&dvm, Rank(me.0)),
        channel: IofChannel::STDERR,
        data: text.as_bytes().to_vec().into(),
        info: Vec::new(),
    };
    calls.make(cx, call, Call::Told("telling a tool why its job does not start"));
}
