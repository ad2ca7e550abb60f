//! How this daemon comes up: it reports who it is, and what its node looks like if it is asked.

use std::sync::Arc;

use phalanx_core::{Time, Waiting};

use crate::daemon::{Cx, Daemon};
use crate::id::NodeId;
use crate::msg::{NodeReport, NodeTable, Up};
use crate::root::ToRoot;

#[derive(Debug, Default)]
pub(crate) struct Boot {
    phase: Phase,
    since: Time,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Unborn,
    Booting,
    Up,
}

impl Daemon {
    /// At the very first turn: our own report.
    pub(crate) fn begin_boot(&mut self, cx: &mut Cx<'_>) {
        if self.boot.phase != Phase::Unborn {
            return;
        }
        self.boot = Boot { phase: Phase::Booting, since: cx.now };
        let report = NodeReport {
            hostname: self.config.hostname.clone(),
            slots: self.config.slots,
            max_slots: self.config.max_slots,
            signature: self.config.topology.signature().into(),
        };
        self.tell_root(cx, ToRoot::Begin);
        self.overlay.hand_in(cx.now, report);
    }

    pub(crate) fn send_topology(&mut self, cx: &mut Cx<'_>) {
        let topology = &self.config.topology;
        let (signature, encoded) = (topology.signature(), topology.encode());
        self.post(cx, Up::Topology { signature, encoded });
    }

    pub(crate) fn on_table(&mut self, table: &Arc<NodeTable>) {
        self.table = table.clone();
        self.overlay.settle_cards();
        self.boot.phase = Phase::Up;
    }

    pub(crate) fn node_name(&self, node: NodeId) -> Arc<str> {
        self.table.name(node)
    }

    pub(crate) fn explain_boot(&self) -> Option<Waiting> {
        (self.boot.phase == Phase::Booting).then(|| Waiting {
            operation: "boot",
            subject: format!("daemons {}", self.overlay.absent()),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since: self.boot.since,
            deadline: Some(self.boot.since.after(self.config.limits.boot)),
            unblocked_by: "the named daemons reporting",
        })
    }
}
