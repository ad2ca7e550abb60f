//! Messages to tools that are connected here.

use phalanx_core::server::{OutputTo, ServerCall};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId};

use crate::local::calls::Call;
use crate::local::turn::Cx;

/// Prints text as output that a tool of ours reads.
pub(super) fn say(cx: &mut Cx<'_>, tool: &ProcId, text: &str) {
    let Ok(dvm) = Nspace::new(&cx.config.dvm) else { return };
    let call = ServerCall::Output {
        to: OutputTo::Parent(tool.clone()),
        source: ProcId::new(&dvm, Rank(cx.config.id.0)),
        channel: IofChannel::STDERR,
        data: text.as_bytes().to_vec().into(),
        info: Vec::new(),
    };
    cx.call(call, Call::Notice("telling a tool why its job does not start"));
}
