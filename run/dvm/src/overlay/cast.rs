//! Casts: messages from the root to many daemons, in one order for all.
//!
//! Each daemon passes a cast on to the children below which there are addressees, and keeps it until these children have
//! acknowledged it for their whole subtrees. When an inner daemon is lost, its orphans report what they have, and their new
//! parent sends the rest. The sequence has gaps for a daemon that was not addressed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::Time;

use super::msg::{Cast, CastBody, Msg};
use super::timer::Timer;
use super::tree::Tree;
use super::{Arrived, Cargo, Overlay};
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Casts<C: Cargo> {
    /// The last cast that came by here.
    have: u64,
    kept: VecDeque<Arc<Cast<C>>>,
    /// The bytes of the cast that was passed on last, as long as any is kept.
    made: Option<(u64, Arc<[u8]>)>,
    /// Per child, the last cast that its whole subtree has.
    acked: BTreeMap<NodeId, u64>,
    /// The last cast that we have acknowledged to the parent.
    told: u64,
    untold: u32,
}

impl<C: Cargo> Default for Casts<C> {
    fn default() -> Casts<C> {
        Casts { have: 0, kept: VecDeque::new(), made: None, acked: BTreeMap::new(), told: 0, untold: 0 }
    }
}

impl<C: Cargo> Casts<C> {
    pub(super) fn bytes_of(&mut self, cast: &Cast<C>, make: impl FnOnce() -> Arc<[u8]>) -> Arc<[u8]> {
        match &self.made {
            Some((seq, bytes)) if *seq == cast.seq => bytes.clone(),
            _ => self.made.insert((cast.seq, make())).1.clone(),
        }
    }
}

impl<C: Cargo> Overlay<C> {
    /// From the root: sends `body` to the daemons in `to`.
    pub(crate) fn cast(&mut self, now: Time, to: Ranges, body: C::Down) {
        self.cast_body(now, to, CastBody::Cargo(Arc::new(body)));
    }

    pub(super) fn cast_body(&mut self, now: Time, to: Ranges, body: CastBody<C>) {
        debug_assert!(self.is_root(), "only the root casts");
        let seq = self.casts.have + 1;
        self.pass_on(now, Arc::new(Cast { seq, to, body }));
    }

    pub(super) fn on_cast(&mut self, now: Time, cast: Arc<Cast<C>>) {
        if cast.seq <= self.casts.have {
            return;
        }
        self.pass_on(now, cast);
        self.casts.untold += 1;
        if self.casts.untold >= ACK_AFTER {
            self.ack_casts(now);
        } else {
            self.timers.set_once(now.after(ACK_DELAY), Timer::CastAck);
        }
    }

    fn pass_on(&mut self, now: Time, cast: Arc<Cast<C>>) {
        self.casts.have = cast.seq;
        let mut passed = false;
        for child in self.children.clone().iter() {
            if self.tree.reaches(*child, &cast.to) {
                passed = true;
                self.send(now, *child, Msg::Cast(cast.clone()));
            }
        }
        if passed {
            self.casts.kept.push_back(cast.clone());
        }
        let addressed = cast.to.contains(self.me.0);
        match &cast.body {
            CastBody::Cargo(body) => {
                self.arrived(Arrived::Cast { addressed, body: body.clone() });
            }
            _ if !addressed => {}
            CastBody::PostAcks(acks) => self.on_post_acks(acks),
            CastBody::ChunkAcks(acks) => self.on_chunk_acks(acks),
            CastBody::Lost(node) => self.take_loss(now, *node),
        }
    }

    pub(super) fn on_cast_ack(&mut self, now: Time, child: NodeId, upto: u64) {
        let acked = self.casts.acked.entry(child).or_default();
        *acked = upto.max(*acked);
        self.casts.trim(&self.tree, &self.children);
        if !self.is_root() && self.casts.settled() > self.casts.told {
            self.timers.set_once(now.after(ACK_DELAY), Timer::CastAck);
        }
    }

    pub(super) fn ack_casts(&mut self, now: Time) {
        self.casts.untold = 0;
        let upto = self.casts.settled();
        if !self.is_root() && upto > self.casts.told {
            self.casts.told = upto;
            self.send_up(now, Msg::CastAck { upto });
        }
    }

    /// A child has a link, new or again: sends what it lacks.
    pub(super) fn send_casts_again(&mut self, now: Time, child: NodeId, have: u64) {
        let lacking = |cast: &&Arc<Cast<C>>| cast.seq > have && self.tree.reaches(child, &cast.to);
        let again: Vec<Arc<Cast<C>>> = self.casts.kept.iter().filter(lacking).cloned().collect();
        again.into_iter().for_each(|cast| self.send(now, child, Msg::Cast(cast)));
    }

    /// `lost` was a child; its own children start from what it had acknowledged for them.
    pub(super) fn inherit_acks(&mut self, lost: NodeId) {
        let upto = self.casts.acked.remove(&lost).unwrap_or(0);
        for child in self.children.iter() {
            if self.tree.is_under(lost, *child) {
                self.casts.acked.entry(*child).or_insert(upto);
            }
        }
        self.casts.trim(&self.tree, &self.children);
    }
}

impl<C: Cargo> Casts<C> {
    pub(super) fn have(&self) -> u64 {
        self.have
    }

    /// Whether the result of `op` came by and may still be on its way to a daemon below.
    pub(super) fn holds_result_of(&self, op: &C::Op) -> bool {
        let is_result = |cast: &Arc<Cast<C>>| match &cast.body {
            CastBody::Cargo(body) => C::result_of(body).is_some_and(|done| done == op),
            _ => false,
        };
        self.kept.iter().any(is_result)
    }

    /// Our whole subtree has everything up to this.
    fn settled(&self) -> u64 {
        self.kept.front().map_or(self.have, |oldest| oldest.seq - 1)
    }

    fn trim(&mut self, tree: &Tree, children: &[NodeId]) {
        while let Some(oldest) = self.kept.front() {
            let has = |child: &NodeId| self.acked.get(child).is_some_and(|upto| *upto >= oldest.seq);
            if !children.iter().all(|child| has(child) || !tree.reaches(*child, &oldest.to)) {
                return;
            }
            self.kept.pop_front();
        }
        self.made = None;
    }
}

/// Acknowledgements only free memory, so they may be delayed.
const ACK_AFTER: u32 = 64;
const ACK_DELAY: Duration = Duration::from_millis(500);
