//! Collective operations on their way up: each daemon waits for its own part and for one from each child below which
//! there are participants, merges them, and sends one message to its parent.
//!
//! A daemon keeps what it has sent until the result comes by, and sends it again when its parent changes. A part stands for the
//! sender's whole subtree, and subtrees never partly overlap (`tree.rs`), so a repeated part is recognised by its sender.

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_core::Time;

use super::msg::{Gather, Msg};
use super::tree::Tree;
use super::{Arrived, Cargo, Merge, Overlay};
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Gathers<C: Cargo> {
    open: BTreeMap<Arc<C::Op>, Open<C>>,
}

#[derive(Debug)]
struct Open<C: Cargo> {
    since: Time,
    /// The daemons that contribute.
    participants: Ranges,
    own: Option<C::Part>,
    got: BTreeMap<NodeId, (Ranges, C::Part)>,
    sent: Option<Gather<C>>,
}

impl<C: Cargo> Default for Gathers<C> {
    fn default() -> Gathers<C> {
        Gathers { open: BTreeMap::new() }
    }
}

impl<C: Cargo> Overlay<C> {
    /// Adds this daemon's own part. Completes at once if no other is missing. Parts after the first are ignored.
    pub(crate) fn join(&mut self, now: Time, op: C::Op, among: &Ranges, part: C::Part) {
        let op = Arc::new(op);
        let open = self.open_gather(now, &op, among);
        if open.own.is_none() {
            open.own = Some(part);
            self.try_gather(now, &op);
        }
    }

    /// The daemons that contribute, if this daemon already knows the operation.
    pub(crate) fn participants(&self, op: &C::Op) -> Option<&Ranges> {
        self.gathers.open.get(op).map(|open| &open.participants)
    }

    fn is_open(&self, op: &C::Op) -> bool {
        self.gathers.open.contains_key(op)
    }

    pub(super) fn on_gather(&mut self, gather: Gather<C>) {
        if !self.is_open(&gather.op) && self.casts.holds_result_of(&gather.op) {
            return; // The sender's link broke before the result reached it; the result is being sent again.
        }
        self.arrived(Arrived::Part(gather));
    }

    /// A subtree's part has arrived for an operation of the daemons in `among`.
    pub(crate) fn take_part(&mut self, now: Time, gather: Gather<C>, among: &Ranges) {
        let Gather { op, from, missing, part } = gather;
        let lost: Vec<NodeId> = self.tree.ancestors(from).take_while(|a| *a > self.me).collect();
        let open = self.open_gather(now, &op, among);
        if lost.iter().any(|ancestor| open.got.contains_key(ancestor)) {
            return; // Covered by a part that the sender's lost parent had sent before.
        }
        open.got.entry(from).or_insert((missing, part));
        self.try_gather(now, &op);
        if self.is_root() && self.is_open(&op) {
            self.arrived(Arrived::Advanced(op));
        }
    }

    /// The parent has changed, or its link is new.
    pub(super) fn send_gathers_again(&mut self, now: Time) {
        let again: Vec<Gather<C>> = self.gathers.open.values().filter_map(|open| open.sent.clone()).collect();
        again.into_iter().for_each(|gather| self.send_up(now, Msg::Gather(gather)));
    }

    /// Some daemon is no longer waited for.
    pub(super) fn try_all_gathers(&mut self, now: Time) {
        let open: Vec<Arc<C::Op>> = self.gathers.open.keys().cloned().collect();
        open.into_iter().for_each(|op| self.try_gather(now, &op));
    }

    /// The result has come by.
    pub(crate) fn close(&mut self, op: &C::Op) {
        self.gathers.open.remove(op);
    }

    /// At the root: checks whether the operation is complete, as possibly no daemon is left to send a part.
    pub(crate) fn reconsider(&mut self, now: Time, op: C::Op, among: &Ranges) {
        let op = Arc::new(op);
        self.open_gather(now, &op, among);
        self.try_gather(now, &op);
    }

    /// Gives up all operations that `concerned` picks, and returns them.
    pub(crate) fn give_up(&mut self, concerned: impl Fn(&C::Op) -> bool) -> Vec<Arc<C::Op>> {
        self.gathers.open.extract_if(.., |op, _| concerned(op)).map(|(op, _)| op).collect()
    }

    /// The operations known here: since when, and which daemons below have yet to contribute.
    pub(crate) fn open_operations(&self) -> impl Iterator<Item = (&C::Op, Time, Ranges)> {
        let awaited = |(op, open)| {
            let (op, open): (&Arc<C::Op>, &Open<C>) = (op, open);
            (&**op, open.since, open.awaited(self.me, &self.tree))
        };
        self.gathers.open.iter().map(awaited)
    }

    /// The daemons with a part that has arrived here.
    pub(crate) fn arrived_parts(&self, op: &C::Op) -> Option<Ranges> {
        let open = self.gathers.open.get(op)?;
        let mut arrived = Ranges::new();
        for from in open.got.keys() {
            arrived.add(&self.tree.under(*from).and(&open.participants));
        }
        if open.own.is_some() {
            arrived.insert(self.me.0);
        }
        Some(arrived)
    }

    fn open_gather(&mut self, now: Time, op: &Arc<C::Op>, among: &Ranges) -> &mut Open<C> {
        self.gathers.open.entry(op.clone()).or_insert_with(|| Open {
            since: now,
            participants: among.clone(),
            own: None,
            got: BTreeMap::new(),
            sent: None,
        })
    }

    fn try_gather(&mut self, now: Time, op: &Arc<C::Op>) {
        let Some(open) = self.gathers.open.get_mut(op) else { return };
        if open.sent.is_some() || !open.is_complete(self.me, &self.tree, &self.children) {
            return;
        }
        let mut missing = open.missing(self.me, &self.tree);
        let mut part = open.own.take().unwrap_or_default();
        for (below, theirs) in std::mem::take(&mut open.got).into_values() {
            missing.add(&below);
            part.merge(theirs);
        }
        if self.me != NodeId::ROOT {
            let gather = Gather { op: op.clone(), from: self.me, missing, part };
            open.sent = Some(gather.clone());
            return self.send_up(now, Msg::Gather(gather));
        }
        if let Some(open) = self.gathers.open.remove(op) {
            self.arrived(Arrived::Gathered { op: op.clone(), among: open.participants, missing, part });
        }
    }
}

impl<C: Cargo> Open<C> {
    fn is_complete(&self, me: NodeId, tree: &Tree, children: &[NodeId]) -> bool {
        let here = !self.participants.contains(me.0) || self.own.is_some();
        here && children.iter().all(|child| !self.lives_below(tree, *child) || self.covers(tree, *child))
    }

    /// Whether a participant that is not lost is in the subtree of `child`.
    fn lives_below(&self, tree: &Tree, child: NodeId) -> bool {
        if !tree.reaches(child, &self.participants) {
            return false;
        }
        if tree.lost().next().is_none() {
            return true;
        }
        tree.under(child).and(&self.participants).iter().any(|node| !tree.is_lost(NodeId(node)))
    }

    /// Whether the part of `node`, or that of an ancestor on its behalf, is here.
    fn covers(&self, tree: &Tree, node: NodeId) -> bool {
        self.got.contains_key(&node) || tree.ancestors(node).any(|ancestor| self.got.contains_key(&ancestor))
    }

    /// Lost participants that no part covers.
    fn missing(&self, me: NodeId, tree: &Tree) -> Ranges {
        let lost = tree.lost().filter(|node| self.participants.contains(node.0) && tree.is_under(me, *node));
        lost.filter(|node| !self.covers(tree, *node)).map(|node| node.0).collect()
    }

    /// Participants below `me`, itself included, that are still waited for.
    fn awaited(&self, me: NodeId, tree: &Tree) -> Ranges {
        let below = tree.under(me).and(&self.participants);
        let absent = |node: &u32| match NodeId(*node) {
            node if node == me => self.own.is_none() && self.sent.is_none(),
            node => self.sent.is_none() && !tree.is_lost(node) && !self.covers(tree, node),
        };
        below.iter().filter(absent).collect()
    }
}
