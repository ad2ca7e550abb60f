//! Tools that are connected here: what they are told, and that they have left.

use phalanx_core::server::{OutputTo, ServerCall};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId};

use crate::local::{Call, Cx, Local};
use crate::msg::Up;

impl Local {
    /// Our server has said goodbye to a process. Those that no job of ours holds were tools.
    pub(super) fn tell_of_tool(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.jobs.contains_key(&proc.nspace) {
            cx.post(Up::ToolLeft { proc: proc.clone() });
        }
    }

    /// Prints something where a tool of ours reads it.
    pub(super) fn say_to_tool(&mut self, cx: &mut Cx<'_>, tool: &ProcId, text: &str) {
        let Ok(dvm) = Nspace::new(&self.config.dvm) else { return };
        let call = ServerCall::Output {
            to: OutputTo::Parent(tool.clone()),
            source: ProcId::new(&dvm, Rank(self.me.0)),
            channel: IofChannel::STDERR,
            data: text.as_bytes().to_vec().into(),
            info: Vec::new(),
        };
        self.call(cx, call, Call::Told("telling a tool why its job does not start"));
    }
}
