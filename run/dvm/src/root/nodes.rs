//! The nodes of this DVM, and how they come up: every daemon reports who it is, and what its node looks like if nobody has
//! sent the like.
//!
//! Jobs are accepted when all daemons are there and each kind of topology has been sent once; then everybody learns the
//! table of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::{Time, Waiting};
use phalanx_topo::Topology;

use super::timer::Timer;
use super::{Cx, Root};
use phalanx_spec::Status;

use crate::id::NodeId;
use crate::job::JobRequest;
use crate::msg::{Down, NodeReport, NodeTable};
use crate::ranges::Ranges;
use crate::report::Report;

#[derive(Debug)]
pub(super) struct Nodes {
    size: u32,
    /// Those from 1 on.
    called: Vec<Arc<str>>,
    are_up: bool,
    /// They will not all be there: nothing is begun.
    is_hopeless: bool,
    /// Why they will not be.
    failure: Option<String>,
    reports: BTreeMap<NodeId, NodeReport>,
    topologies: BTreeMap<Arc<str>, Arc<Topology>>,
    /// Who was asked for which kind of topology, and when.
    asked: BTreeMap<Arc<str>, (NodeId, Time)>,
    lost: BTreeSet<NodeId>,
    /// This process is about to be stopped, since when.
    stands: Option<Time>,
    /// Jobs that wait for the DVM, and since when.
    waiting: Vec<(Time, u64, Box<JobRequest>)>,
}

impl Nodes {
    /// `here`: what this node looks like. `called`: what the others were called by the user.
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

    /// Whether a host of this name was there, and no other of this name is.
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

    /// All of them, those that were lost included.
    pub(super) fn all(&self) -> Ranges {
        Ranges::first(self.size)
    }

    pub(super) fn is_lost(&self, node: NodeId) -> bool {
        self.lost.contains(&node)
    }

    /// The name of a node; what the user calls it, if it has never come up.
    pub(super) fn name(&self, node: NodeId) -> Arc<str> {
        let called = || self.called.get(node.0.checked_sub(1)? as usize).cloned();
        let reported = self.reports.get(&node).map(|report| report.hostname.clone());
        reported.or_else(called).unwrap_or_default()
    }

    /// The living nodes of which all is known.
    pub(super) fn living(&self) -> impl Iterator<Item = NodeId> {
        let living =
            self.reports.keys().filter(|node| !self.is_lost(**node) && self.look_of(**node).is_some());
        living.copied()
    }

    /// What a node has told of itself, and what it looks like.
    pub(super) fn look_of(&self, node: NodeId) -> Option<(&NodeReport, &Arc<Topology>)> {
        let report = self.reports.get(&node)?;
        Some((report, self.topologies.get(&report.signature)?))
    }

    /// Whether it is or was one of those that are up.
    pub(super) fn has_come(&self, node: NodeId) -> bool {
        self.are_up && self.reports.contains_key(&node)
    }

    /// Why they will not all be there.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    /// The root, and those that have come up so far.
    pub(super) fn present(&self) -> Ranges {
        let mut present: Ranges =
            self.reports.keys().filter(|node| !self.is_lost(**node)).map(|node| node.0).collect();
        present.insert(NodeId::ROOT.0);
        present
    }

    /// Those who were asked what their nodes look like and have not said it.
    fn silent(&self) -> impl Iterator<Item = (NodeId, Time)> {
        self.asked.iter().filter(|(kind, _)| !self.topologies.contains_key(*kind)).map(|(_, asked)| *asked)
    }

    /// Those of whom nothing was heard yet.
    fn absent(&self) -> Ranges {
        let is_absent = |node: &NodeId| !self.reports.contains_key(node) && !self.is_lost(*node);
        (0..self.size).map(NodeId).filter(is_absent).map(|node| node.0).collect()
    }

    /// One node of each kind that nobody has described and nobody was asked for.
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

    /// Whether all is known of all that live.
    fn are_known(&self) -> bool {
        let has_topology = |report: &NodeReport| self.topologies.contains_key(&report.signature);
        self.reports.len() + self.lost.len() >= self.size as usize && self.reports.values().all(has_topology)
    }
}

impl Root {
    /// At the very first turn.
    pub(super) fn begin(&mut self, cx: &mut Cx<'_>) {
        self.timers.set(cx.now.after(self.config.limits.boot), Timer::Boot);
    }

    pub(super) fn on_reports(&mut self, cx: &mut Cx<'_>, reports: Vec<(NodeId, NodeReport)>) {
        // What one has said that was given up meanwhile counts no more.
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

    /// The DVM is without this node from now on.
    pub(super) fn boot_without(&mut self, cx: &mut Cx<'_>, lost: NodeId) {
        self.nodes.lost.insert(lost);
        if !self.nodes.are_up {
            self.nodes.reports.remove(&lost);
            self.nodes.asked.retain(|_, (node, _)| *node != lost);
            self.try_boot(cx);
        }
    }

    /// One of the daemons will not come up, and without it the DVM is not wanted. Why is told when more is known.
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

    /// Jobs that wait for the DVM will not run.
    pub(super) fn refuse_waiting(&mut self, cx: &mut Cx<'_>, error: &str) {
        for (_, request, _) in std::mem::take(&mut self.nodes.waiting) {
            cx.report(Report::Refused { request, error: error.to_owned() });
        }
        self.refuse_postponed(cx, error);
    }

    pub(crate) fn has_failed_to_boot(&self) -> bool {
        self.nodes.failure.is_some()
    }

    /// Who has come up but for what its node looks like.
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
