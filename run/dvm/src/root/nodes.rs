//! The nodes of this DVM, and how they come up: every daemon reports its identity, and its node's topology unless another node
//! has already sent an equal one.
//!
//! They are up once all daemons have reported and each kind of topology has been sent; then every daemon gets the table of nodes.
//! Jobs that were submitted before wait here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::{Time, Waiting};
use phalanx_topo::Topology;

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Down, NodeReport, NodeTable};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::turn::Cx;

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
        node.is_some_and(|node| self.is_lost(node) && !self.has_reported(node))
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

    /// Whether its daemon has described the node.
    pub(super) fn has_reported(&self, node: NodeId) -> bool {
        self.reports.contains_key(&node)
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
        self.are_up && self.has_reported(node)
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
        let is_absent = |node: &NodeId| !self.has_reported(*node) && !self.is_lost(*node);
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

    /// Ignores reports from nodes that were given up meanwhile.
    pub(super) fn report(&mut self, reports: Vec<(NodeId, NodeReport)>) {
        self.reports.extend(reports.into_iter().filter(|(node, _)| !self.lost.contains(node)));
    }

    /// A daemon has sent the topology of its node.
    pub(super) fn set_topology(&mut self, cx: &mut Cx<'_>, from: NodeId, signature: &str, encoded: &[u8]) {
        match Topology::decode(encoded) {
            Ok(topology) => {
                self.topologies.insert(signature.into(), Arc::new(topology));
            }
            Err(error) => {
                let text = format!("reading the topology that node {} sent: {error}", self.name(from));
                cx.report(Report::Note { nspace: None, text });
            }
        }
    }

    /// The DVM goes on without this node.
    pub(super) fn lose(&mut self, lost: NodeId) {
        self.lost.insert(lost);
        if !self.are_up {
            self.reports.remove(&lost);
            self.asked.retain(|_, (node, _)| *node != lost);
        }
    }

    /// One of the daemons will not come up, and the DVM is not wanted without it. The reason is reported once more is known.
    pub(super) fn give_up(&mut self) {
        self.is_hopeless = true;
    }

    /// The DVM cannot come up. Returns whether this is the first reason.
    pub(super) fn fail(&mut self, error: &str) -> bool {
        if self.are_up || self.failure.is_some() {
            return false;
        }
        self.is_hopeless = true;
        self.failure = Some(error.to_owned());
        true
    }

    /// Asks for the topologies that are missing. Returns whether the DVM has come up just now.
    pub(super) fn try_up(&mut self, cx: &mut Cx<'_>) -> bool {
        if self.are_up || self.is_hopeless || self.stands() {
            return false;
        }
        let ask = self.next_to_ask(cx.now);
        if !ask.is_empty() {
            cx.cast(ask, Down::SendTopology);
        }
        self.are_up = self.are_known();
        if self.are_up {
            let names = (0..self.size).map(|node| self.name(NodeId(node)));
            cx.cast(self.all(), Down::Table(Arc::new(NodeTable::new(names))));
            cx.report(Report::Ready);
        }
        self.are_up
    }

    /// The job waits for the DVM to come up.
    pub(super) fn wait(&mut self, now: Time, request: u64, job: Box<JobRequest>) {
        self.waiting.push((now, request, job));
    }

    pub(super) fn take_waiting(&mut self) -> Vec<(Time, u64, Box<JobRequest>)> {
        std::mem::take(&mut self.waiting)
    }

    /// This process is about to be stopped. A DVM does not come up meanwhile, with jobs that have no launcher, and nothing falls due.
    pub(super) fn stand_still(&mut self, now: Time) {
        self.stands.get_or_insert(now);
    }

    /// Returns since when the process stood still, if it did.
    pub(super) fn stand_no_longer(&mut self) -> Option<Time> {
        self.stands.take()
    }

    /// Which daemons have not come up within the limit.
    pub(super) fn overdue(&self, limit: Duration) -> String {
        let mut absent = self.absent();
        self.silent().for_each(|(node, _)| absent.insert(node.0));
        let (count, size, seconds) = (absent.count(), self.size, limit.as_secs());
        format!("{count} of {size} have not reported within {seconds} s: {absent}")
    }

    /// The nodes that have come up but have not sent the topology that they were asked for.
    pub(super) fn explain(&self) -> impl Iterator<Item = Waiting> {
        self.silent().map(|(node, since)| Waiting {
            operation: "start".into(),
            subject: format!("the daemon of {} (sending the topology)", self.name(node)),
            asked_by: Vec::new(),
            missing: Vec::new(),
            since,
            deadline: None,
            unblocked_by: "that daemon saying what its node looks like".into(),
        })
    }
}
