//! How a DVM comes up: every daemon reports who it is, and what its node looks like if the root has not seen the like.
//!
//! Reports are collected on the way up. The root accepts jobs when all daemons are there and each kind of topology has
//! been sent once; then everybody learns the table of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::{Time, Waiting};
use phalanx_topo::Topology;

use crate::daemon::{Cx, Daemon};
use crate::effect::Report;
use crate::hosts::Slots;
use crate::job::JobRequest;
use crate::msg::{Down, Msg, NodeId, Up};
use crate::ranges::Ranges;
use crate::timers::Timer;

/// What a daemon says of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeReport {
    pub node: NodeId,
    pub hostname: Arc<str>,
    pub slots: Slots,
    pub max_slots: Option<u32>,
    /// Equal for nodes that look the same.
    pub signature: Arc<str>,
}

/// All nodes by number.
#[derive(Clone, Debug, Default)]
pub struct NodeTable {
    names: Vec<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Boot {
    phase: Phase,
    since: Time,
    /// Of our whole subtree; the root's stays.
    reports: BTreeMap<NodeId, NodeReport>,
    unsent: BTreeSet<NodeId>,
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

impl NodeTable {
    /// A node's name; empty for a number that nobody has.
    pub fn name(&self, node: NodeId) -> Arc<str> {
        self.names.get(node.0 as usize).cloned().unwrap_or_default()
    }
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
            node: self.me,
            hostname: self.config.hostname.clone(),
            slots: self.config.slots,
            max_slots: self.config.max_slots,
            signature,
        };
        if self.me == NodeId::ROOT {
            self.timers.set(cx.now.after(self.config.limits.boot), Timer::Boot);
        }
        self.on_reports(cx, vec![report]);
    }

    pub(crate) fn on_reports(&mut self, cx: &mut Cx<'_>, reports: Vec<NodeReport>) {
        for report in reports {
            self.boot.unsent.insert(report.node);
            self.boot.reports.insert(report.node, report);
        }
        if self.me == NodeId::ROOT {
            self.boot.unsent.clear();
            return self.try_boot(cx);
        }
        let expected = self.tree.under(self.me).count() as usize;
        if self.boot.reports.len() == expected {
            self.send_reports(cx);
        } else {
            self.timers.set_once(cx.now.after(COLLECT), Timer::Report);
        }
    }

    pub(crate) fn send_reports(&mut self, cx: &mut Cx<'_>) {
        if self.parent.is_some_and(|parent| self.links.is_ready(parent)) {
            let unsent = std::mem::take(&mut self.boot.unsent);
            let reports: Vec<_> =
                unsent.iter().filter_map(|node| self.boot.reports.get(node).cloned()).collect();
            if !reports.is_empty() {
                self.send_up(cx, Msg::Report(reports));
            }
        }
    }

    pub(crate) fn send_reports_again(&mut self, cx: &mut Cx<'_>) {
        if self.boot.phase == Phase::Booting {
            self.boot.unsent = self.boot.reports.keys().copied().collect();
            self.send_reports(cx);
        }
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
        for report in self.boot.reports.values() {
            if !self.boot.topologies.contains_key(&report.signature)
                && !self.boot.asked.contains_key(&report.signature)
            {
                self.boot.asked.insert(report.signature.clone(), report.node);
                ask.insert(report.node.0);
            }
        }
        if !ask.is_empty() {
            self.cast(cx, ask, Down::SendTopology);
        }
        let known = |report: &NodeReport| self.boot.topologies.contains_key(&report.signature);
        let living = self.tree.size() as usize - self.tree.lost().count();
        if self.boot.reports.len() < living || !self.boot.reports.values().all(known) {
            return;
        }
        self.boot.phase = Phase::Up;
        self.timers.cancel(|timer| *timer == Timer::Boot);
        let name =
            |node| self.boot.reports.get(&NodeId(node)).map(|r| r.hostname.clone()).unwrap_or_default();
        let table = NodeTable { names: (0..self.tree.size()).map(name).collect() };
        self.table = Arc::new(table);
        self.cast_all(cx, Down::Table(self.table.clone()));
        for (request, job) in std::mem::take(&mut self.boot.waiting) {
            self.launch_submitted(cx, request, job);
        }
    }

    pub(crate) fn on_table(&mut self, table: &Arc<NodeTable>) {
        self.table = table.clone();
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
        let absent = self.absent();
        let error = format!(
            "starting the daemons: {} of {} have not reported within {} s: {absent}",
            absent.count(),
            self.tree.size(),
            self.config.limits.boot.as_secs(),
        );
        for (request, _) in std::mem::take(&mut self.boot.waiting) {
            cx.report(Report::Refused { request, error: error.clone() });
        }
    }

    /// Root only: the living nodes with what they look like.
    pub(crate) fn booted_nodes(&self) -> impl Iterator<Item = (&NodeReport, &Arc<Topology>)> {
        let living = self.boot.reports.values().filter(|report| !self.tree.is_lost(report.node));
        living.filter_map(|report| Some((report, self.boot.topologies.get(&report.signature)?)))
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
            subject: format!("daemons {}", self.absent()),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since: self.boot.since,
            deadline: Some(self.boot.since.after(self.config.limits.boot)),
            unblocked_by: "the named daemons reporting",
        })
    }

    fn absent(&self) -> Ranges {
        let here =
            |node: &u32| !self.boot.reports.contains_key(&NodeId(*node)) && !self.tree.is_lost(NodeId(*node));
        self.tree.under(self.me).iter().filter(here).collect()
    }
}

const COLLECT: Duration = Duration::from_millis(50);
