//! The nodes of this DVM, and how they come up: every daemon reports its identity, and its node's topology unless another node
//! has already sent an equal one.
//!
//! Jobs are accepted once all daemons have reported and each kind of topology has been sent; then every daemon gets the table
//! of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::{Time, Waiting};
use phalanx_topo::Topology;

use super::Root;
use super::timer::Timer;
use super::turn::Cx;
use phalanx_spec::Status;

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Down, NodeReport, NodeTable};
use crate::ranges::Ranges;
use crate::report::Report;

#[derive(Debug)]
pub(super) struct Nodes {
    size: u32,
    /// The names of the nodes from 1 on.
    called: Vec<Arc<str>>,
    are_up: bool,
    /// Some will not come up: no job is begun.
    is_hopeless: bool,
    /// Why some will not come up.
    failure: Option<String>,
    reports: BTreeMap<NodeId, NodeReport>,
    topologies: BTreeMap<Arc<str>, Arc<Topology>>,
    /// The node that was asked for each kind of topology, and when.
    asked: BTreeMap<Arc<str>, (NodeId, Time)>,
    lost: BTreeSet<NodeId>,
    /// This process is about to be stopped, since when.
    stands: Option<Time>,
    /// Jobs that wait for the DVM, and since when.
    waiting: Vec<(Time, u64, Box<JobRequest>)>,
}

impl Nodes {
    /// `here`: the topology of this node. `called`: the names that the user gave the others.
    pub(super) fn new(size: u32, here: &Arc<Topology>, called: &[Arc<str>]) -> Nodes {
        Nodes {
            size,
            called: called.to_vec(),
            are_up: false,
            is_hopeless: false,
            failure: None,
            reports: BTreeMap::new(),
            topologies: BTreeMap::from([(here.signature().into(), here.clone())]),
            asked: BTreeMap::new(),
            lost: BTreeSet::new(),
            stands: None,
            waiting: Vec::new(),
        }
    }

    /// How many there were at the beginning.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn are_up(&self) -> bool {
        self.are_up
    }

    pub(super) fn stands(&self) -> bool {
        self.stands.is_some()
    }

    /// Whether the user has named this host for the DVM, and it has never come up.
    pub(super) fn was_left_out(&self, name: &str) -> bool {
        let called = self.called.iter().position(|called| called.eq_ignore_ascii_case(name));
        let node = called.and_then(|at| u32::try_from(at + 1).ok()).map(NodeId);
        node.is_some_and(|node| self.is_lost(node) && !self.reports.contains_key(&node))
    }

    /// Whether all nodes of this name, of which there is at least one, are lost.
    pub(super) fn has_lost(&self, name: &str) -> bool {
        let named = || {
            let of = |node: &NodeId| self.called.get(node.0.checked_sub(1)? as usize);
            self.reports.iter().filter(move |(node, report)| {
                let called = of(node).is_some_and(|called| called.eq_ignore_ascii_case(name));
                called || report.hostname.eq_ignore_ascii_case(name)
            })
        };
        named().next().is_some() && named().all(|(node, _)| self.is_lost(*node))
    }

    /// All nodes, including those that were lost.
    pub(super) fn all(&self) -> Ranges {
        Ranges::first(self.size)
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.lost.contains(&node)
    }

    /// The name of a node; the user's name for it if it has never come up.
    pub(super) fn name(&self, node: NodeId) -> Arc<str> {
        let called = || self.called.get(node.0.checked_sub(1)? as usize).cloned();
        let reported = self.reports.get(&node).map(|report| report.hostname.clone());
        reported.or_else(called).unwrap_or_default()
    }

    /// The living nodes with a known topology.
    pub(super) fn living(&self) -> impl Iterator<Item = NodeId> {
        let living =
            self.reports.keys().filter(|node| !self.is_lost(**node) && self.look_of(**node).is_some());
        living.copied()
    }

    /// The report and topology of a node.
    pub(super) fn look_of(&self, node: NodeId) -> Option<(&NodeReport, &Arc<Topology>)> {
        let report = self.reports.get(&node)?;
        Some((report, self.topologies.get(&report.signature)?))
    }

    /// Whether the node was up when the DVM came up, even if it is lost now.
    pub(super) fn has_come(&self, node: NodeId) -> bool {
        self.are_up && self.reports.contains_key(&node)
    }

    /// Why the DVM cannot come up.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    /// The root, and the nodes that have come up so far.
    pub(super) fn present(&self) -> Ranges {
        let mut present: Ranges =
            self.reports.keys().filter(|node| !self.is_lost(**node)).map(|node| node.0).collect();
        present.insert(NodeId::ROOT.0);
        present
    }

    /// The nodes that were asked for their topology and have not sent it.
    fn silent(&self) -> impl Iterator<Item = (NodeId, Time)> {
        self.asked.iter().filter(|(kind, _)| !self.topologies.contains_key(*kind)).map(|(_, asked)| *asked)
    }

    /// The nodes that have not reported yet.
    fn absent(&self) -> Ranges {
        let is_absent = |node: &NodeId| !self.reports.contains_key(node) && !self.is_lost(*node);
        (0..self.size).map(NodeId).filter(is_absent).map(|node| node.0).collect()
    }

    /// One node of each kind of topology that is neither known nor requested.
    fn next_to_ask(&mut self, now: Time) -> Ranges {
        let mut ask = Ranges::new();
        for (node, report) in &self.reports {
            if !self.topologies.contains_key(&report.signature) && !self.asked.contains_key(&report.signature)
            {
                self.asked.insert(report.signature.clone(), (*node, now));
                ask.insert(node.0);
            }
        }
        ask
    }

    /// Whether all living nodes have reported and their topologies are known.
    fn are_known(&self) -> bool {
        let has_topology = |report: &NodeReport| self.topologies.contains_key(&report.signature);
        self.reports.len() + self.lost.len() >= self.size as usize && self.reports.values().all(has_topology)
    }
}

impl Root {
    /// Handles the very first turn.
    pub(super) fn begin(&mut self, cx: &mut Cx<'_>) {
        self.timers.set(cx.now.after(self.config.limits.boot), Timer::Boot);
    }

    pub(super) fn on_reports(&mut self, cx: &mut Cx<'_>, reports: Vec<(NodeId, NodeReport)>) {
        // Ignores reports from nodes that were given up meanwhile.
        let living = reports.into_iter().filter(|(node, _)| !self.nodes.lost.contains(node));
        self.nodes.reports.extend(living);
        self.try_boot(cx);
    }

    pub(super) fn on_topology(&mut self, cx: &mut Cx<'_>, from: NodeId, signature: &str, encoded: &[u8]) {
        match Topology::decode(encoded) {
            Ok(topology) => {
                self.nodes.topologies.insert(signature.into(), Arc::new(topology));
            }
            Err(error) => {
                let text = format!("reading the topology that node {} sent: {error}", self.nodes.name(from));
                cx.report(Report::Note { nspace: None, text });
            }
        }
        self.try_boot(cx);
    }

    /// The DVM goes on without this node.
    pub(super) fn boot_without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        self.nodes.lost.insert(lost);
        if !self.nodes.are_up {
            self.nodes.reports.remove(&lost);
            self.nodes.asked.retain(|_, (node, _)| *node != lost);
            self.try_boot(cx);
        }
    }

    /// One of the daemons will not come up, and the DVM is not wanted without it. The reason is reported once more is known.
    pub(super) fn on_boot_hopeless(&mut self) {
        self.nodes.is_hopeless = true;
    }

    fn try_boot(&mut self, cx: &mut Cx<'_>) {
        if self.nodes.are_up || self.nodes.is_hopeless || self.nodes.stands() {
            return;
        }
        let ask = self.nodes.next_to_ask(cx.now);
        if !ask.is_empty() {
            cx.cast(ask, Down::SendTopology);
        }
        if !self.nodes.are_known() {
            return;
        }
        self.nodes.are_up = true;
        self.timers.cancel(|timer| *timer == Timer::Boot);
        let names = (0..self.nodes.size).map(|node| self.nodes.name(NodeId(node)));
        cx.cast(self.nodes.all(), Down::Table(Arc::new(NodeTable::new(names))));
        cx.report(Report::Ready);
        self.tell_session(cx, Status::EVENT_SESSION_START);
        for (submitted, request, job) in std::mem::take(&mut self.nodes.waiting) {
            self.launch_submitted(cx, submitted, request, job);
        }
        self.launch_postponed(cx);
    }

    pub(super) fn on_submit(&mut self, cx: &mut Cx<'_>, request: u64, job: Box<JobRequest>) {
        if self.nodes.are_up {
            self.launch_submitted(cx, cx.now, request, job);
        } else if let Some(error) = self.nodes.failure.clone() {
            cx.report(Report::Refused { request, error });
        } else {
            self.nodes.waiting.push((cx.now, request, job));
        }
    }

    /// This process is about to be stopped. A DVM does not come up meanwhile, with jobs that nobody would see to, and nothing falls due.
    pub(super) fn stand_still(&mut self, cx: &Cx<'_>) {
        self.nodes.stands.get_or_insert(cx.now);
    }

    pub(super) fn stand_no_longer(&mut self, cx: &mut Cx<'_>) {
        if let Some(since) = self.nodes.stands.take() {
            self.timers.put_off(cx.now.since(since), |timer| *timer == Timer::Boot);
            self.try_boot(cx);
        }
    }

    /// The limit counts from now. That ends: each daemon goes through few phases, and each further try has fewer daemons.
    pub(super) fn on_boot_goes_on(&mut self, cx: &Cx<'_>) {
        if !self.nodes.are_up && self.nodes.failure.is_none() {
            self.timers.cancel(|timer| *timer == Timer::Boot);
            self.timers.set(cx.now.after(self.config.limits.boot), Timer::Boot);
        }
    }

    pub(super) fn on_boot_over(&mut self, cx: &mut Cx<'_>) {
        let mut absent = self.nodes.absent();
        self.nodes.silent().for_each(|(node, _)| absent.insert(node.0));
        let error = format!(
            "{} of {} have not reported within {} s: {absent}",
            absent.count(),
            self.nodes.size,
            self.config.limits.boot.as_secs(),
        );
        self.on_boot_failed(cx, error);
    }

    pub(super) fn on_boot_failed(&mut self, cx: &mut Cx<'_>, error: String) {
        if self.nodes.are_up || self.nodes.failure.is_some() {
            return;
        }
        let error = format!("cannot start the daemons: {error}");
        self.nodes.is_hopeless = true;
        self.refuse_waiting(cx, &error);
        cx.report(Report::NotReady { error: error.clone() });
        self.nodes.failure = Some(error);
    }

    /// Refuses the jobs that wait for the DVM.
    pub(super) fn refuse_waiting(&mut self, cx: &mut Cx<'_>, error: &str) {
        for (_, request, _) in std::mem::take(&mut self.nodes.waiting) {
            cx.report(Report::Refused { request, error: error.to_owned() });
        }
        self.refuse_postponed(cx, error);
    }

    pub(crate) fn has_failed_to_boot(&self) -> bool {
        self.nodes.failure.is_some()
    }

    /// The nodes that have come up but have not sent the topology that they were asked for.
    pub(super) fn explain_topologies(&self) -> impl Iterator<Item = Waiting> {
        self.nodes.silent().map(|(node, since)| Waiting {
            operation: "start".into(),
            subject: format!("the daemon of {} (sending the topology)", self.nodes.name(node)),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since,
            deadline: None,
            unblocked_by: "that daemon saying what its node looks like".into(),
        })
    }
}
