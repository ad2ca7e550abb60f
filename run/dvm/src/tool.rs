//! Tools that leave.

use phalanx_wire::ProcId;

use crate::daemon::{Cx, Daemon};
use crate::msg::Up;

impl Daemon {
    /// Our server has said goodbye to a process. Those that no job of ours holds were tools.
    pub(crate) fn tell_of_tool(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        if !self.jobs.contains_key(&proc.nspace) {
            self.post(cx, Up::ToolLeft { proc: proc.clone() });
        }
    }
}
