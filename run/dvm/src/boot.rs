//! How a DVM comes up: every daemon reports who it is, and what its node looks like if the root has not seen the like.
//!
//! Reports are collected on the way up. The root accepts jobs when all daemons are there and each kind of topology has
//! been sent once; then everybody learns the table of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::{Time, Waiting};
use phalanx_topo::Topology;

use crate::daemon::{Cx, Daemon};
use crate::effect::Report;
use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Down, NodeReport, NodeTable, Up};
use crate::ranges::Ranges;
use crate::timers::Timer;

#[derive(Debug, Default)]
pub(crate) struct Boot {
    phase: Phase,
    since: Time,
    /// Root only.
    reports: BTreeMap<NodeId, NodeReport>,
    topologies: BTreeMap<Arc<str>, Arc<Topology>>,
    asked: BTreeMap<Arc<str>, NodeId>,
    /// Jobs that wait for the DVM.
    waiting: Vec<(u64, Box<JobRequest>)>,
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
        self.boot.phase = Phase::Booting;
        self.boot.since = cx.now;
        let signature: Arc<str> = self.config.topology.signature().into();
        self.boot.topologies.insert(signature.clone(), self.config.topology.clone());
        let report = NodeReport {
            hostname: self.config.hostname.clone(),
            slots: self.config.slots,
            max_slots: self.config.max_slots,
            signature,
        };
        if self.me == NodeId::ROOT {
            self.timers.set(cx.now.after(self.config.limits.boot), Timer::Boot);
        }
        self.overlay.hand_in(cx.now, report);
    }

    /// Root only.
    pub(crate) fn on_reports(&mut self, cx: &mut Cx<'_>, reports: Vec<(NodeId, NodeReport)>) {
        self.boot.reports.extend(reports);
        self.try_boot(cx);
    }

    pub(crate) fn send_topology(&mut self, cx: &mut Cx<'_>) {
        let topology = &self.config.topology;
        let (signature, encoded) = (topology.signature(), topology.encode());
        self.post(cx, Up::Topology { signature, encoded });
    }

    /// Root only.
    pub(crate) fn on_topology(&mut self, cx: &mut Cx<'_>, from: NodeId, signature: &str, encoded: &[u8]) {
        match Topology::decode(encoded) {
            Ok(topology) => {
                self.boot.topologies.insert(signature.into(), Arc::new(topology));
            }
            Err(error) => {
                let text = format!("reading the topology that node {} sent: {error}", self.node_name(from));
                cx.report(Report::Note { nspace: None, text });
            }
        }
        self.try_boot(cx);
    }

    pub(crate) fn boot_without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        if self.boot.phase == Phase::Booting && self.me == NodeId::ROOT {
            self.boot.reports.remove(&lost);
            self.boot.asked.retain(|_, node| *node != lost);
            self.try_boot(cx);
        }
    }

    fn try_boot(&mut self, cx: &mut Cx<'_>) {
        if self.boot.phase != Phase::Booting {
            return;
        }
        let mut ask = Ranges::new();
        for (node, report) in &self.boot.reports {
            if !self.boot.topologies.contains_key(&report.signature)
                && !self.boot.asked.contains_key(&report.signature)
            {
                self.boot.asked.insert(report.signature.clone(), *node);
                ask.insert(node.0);
            }
        }
        if !ask.is_empty() {
            self.cast(cx, ask, Down::SendTopology);
        }
        let known = |report: &NodeReport| self.boot.topologies.contains_key(&report.signature);
        if self.boot.reports.len() < self.overlay.living() as usize || !self.boot.reports.values().all(known)
        {
            return;
        }
        self.boot.phase = Phase::Up;
        self.timers.cancel(|timer| *timer == Timer::Boot);
        let name =
            |node| self.boot.reports.get(&NodeId(node)).map(|r| r.hostname.clone()).unwrap_or_default();
        let table = NodeTable::new((0..self.overlay.size()).map(name).collect());
        self.table = Arc::new(table);
        self.cast_all(cx, Down::Table(self.table.clone()));
        for (request, job) in std::mem::take(&mut self.boot.waiting) {
            self.launch_submitted(cx, request, job);
        }
    }

    pub(crate) fn on_table(&mut self, table: &Arc<NodeTable>) {
        self.table = table.clone();
        self.overlay.settle_cards();
        if self.me != NodeId::ROOT {
            self.boot = Boot { phase: Phase::Up, ..Boot::default() };
        }
    }

    pub(crate) fn on_submit(&mut self, cx: &mut Cx<'_>, request: u64, job: Box<JobRequest>) {
        if self.boot.phase == Phase::Up {
            self.launch_submitted(cx, request, job);
        } else {
            self.boot.waiting.push((request, job));
        }
    }

    pub(crate) fn on_boot_over(&mut self, cx: &mut Cx<'_>) {
        let absent = self.overlay.absent();
        let error = format!(
            "starting the daemons: {} of {} have not reported within {} s: {absent}",
            absent.count(),
            self.overlay.size(),
            self.config.limits.boot.as_secs(),
        );
        for (request, _) in std::mem::take(&mut self.boot.waiting) {
            cx.report(Report::Refused { request, error: error.clone() });
        }
    }

    /// Root only: the living nodes with what they look like.
    pub(crate) fn booted_nodes(&self) -> impl Iterator<Item = (NodeId, &NodeReport, &Arc<Topology>)> {
        let living = self.boot.reports.iter().filter(|(node, _)| !self.overlay.is_lost(**node));
        living
            .filter_map(|(node, report)| Some((*node, report, self.boot.topologies.get(&report.signature)?)))
    }

    pub(crate) fn node_name(&self, node: NodeId) -> Arc<str> {
        match self.boot.reports.get(&node) {
            Some(report) => report.hostname.clone(),
            None => self.table.name(node),
        }
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
