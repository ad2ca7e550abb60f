//! A process asks for a new job: the same path as the user's, with the process as the parent.

use phalanx_core::server::{OutputTo, ServerCall};
use phalanx_spec::{IofChannel, Rank};
use phalanx_wire::{Nspace, ProcId};

use crate::daemon::{Call, Cx, Daemon};

impl Daemon {
    /// Prints something where a tool of ours reads it.
    pub(crate) fn say_to_tool(&mut self, cx: &mut Cx<'_>, tool: &ProcId, text: &str) {
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
