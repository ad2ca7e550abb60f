//! What the root tells many daemons, in one order for all.
//!
//! Each daemon passes a cast on to the children below which there are addressees, and keeps it until the whole subtrees
//! of those children have said that they have it. When an inner daemon is lost, its orphans say what they have, and
//! their new parent sends the rest. The sequence has gaps for a daemon that was not addressed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::daemon::{Cx, Daemon, Local};
use crate::gather::OpId;
use crate::msg::{Cast, Down, Msg, NodeId};
use crate::ranges::Ranges;
use crate::timers::Timer;
use crate::tree::Tree;

#[derive(Debug, Default)]
pub(crate) struct CastLog {
    /// The last cast that came by here.
    pub(crate) have: u64,
    kept: VecDeque<Arc<Cast>>,
    /// Per child, up to where its whole subtree has everything.
    acked: BTreeMap<NodeId, u64>,
    /// What we have told the parent of the same.
    told: u64,
    untold: u32,
}

impl Daemon {
    /// Root only: tells the daemons in `to`.
    pub(crate) fn cast(&mut self, cx: &mut Cx<'_>, to: Ranges, body: Down) {
        let seq = self.cast.have + 1;
        self.pass_on(cx, Arc::new(Cast { seq, to, body }));
    }

    pub(crate) fn cast_all(&mut self, cx: &mut Cx<'_>, body: Down) {
        self.cast(cx, Ranges::first(self.tree.size()), body);
    }

    pub(crate) fn on_cast(&mut self, cx: &mut Cx<'_>, cast: Arc<Cast>) {
        if cast.seq <= self.cast.have {
            return;
        }
        self.pass_on(cx, cast);
        self.cast.untold += 1;
        if self.cast.untold >= ACK_AFTER {
            self.ack_casts(cx);
        } else {
            self.timers.set_once(cx.now.after(ACK_DELAY), Timer::CastAck);
        }
    }

    fn pass_on(&mut self, cx: &mut Cx<'_>, cast: Arc<Cast>) {
        self.cast.have = cast.seq;
        let mut addressed = false;
        for child in self.children.clone().iter() {
            if self.tree.reaches(*child, &cast.to) {
                addressed = true;
                self.send(cx, *child, Msg::Cast(cast.clone()));
            }
        }
        if addressed {
            self.cast.kept.push_back(cast.clone());
        }
        self.inbox.push_back(Local::Cast(cast));
    }

    pub(crate) fn on_cast_ack(&mut self, cx: &mut Cx<'_>, child: NodeId, upto: u64) {
        let acked = self.cast.acked.entry(child).or_default();
        *acked = upto.max(*acked);
        self.cast.trim(&self.tree, &self.children);
        if self.me != NodeId::ROOT && self.cast.settled() > self.cast.told {
            self.timers.set_once(cx.now.after(ACK_DELAY), Timer::CastAck);
        }
    }

    pub(crate) fn ack_casts(&mut self, cx: &mut Cx<'_>) {
        self.cast.untold = 0;
        let upto = self.cast.settled();
        if self.me != NodeId::ROOT && upto > self.cast.told {
            self.cast.told = upto;
            self.send_up(cx, Msg::CastAck { upto });
        }
    }

    /// A child has a link, new or again: what it lacks is sent.
    pub(crate) fn send_casts_again(&mut self, cx: &mut Cx<'_>, child: NodeId, have: u64) {
        let lacking = |cast: &&Arc<Cast>| cast.seq > have && self.tree.reaches(child, &cast.to);
        let again: Vec<Arc<Cast>> = self.cast.kept.iter().filter(lacking).cloned().collect();
        again.into_iter().for_each(|cast| self.send(cx, child, Msg::Cast(cast)));
    }

    /// `lost` was a child; its own children are acknowledged as far as it had said for them.
    pub(crate) fn inherit_acks(&mut self, lost: NodeId) {
        let upto = self.cast.acked.remove(&lost).unwrap_or(0);
        for child in self.children.iter() {
            if self.tree.is_under(lost, *child) {
                self.cast.acked.entry(*child).or_insert(upto);
            }
        }
        self.cast.trim(&self.tree, &self.children);
    }
}

impl CastLog {
    /// Whether the result of `op` came by and may still be on its way to somebody below.
    pub(crate) fn holds_result_of(&self, op: &OpId) -> bool {
        self.kept.iter().any(|cast| matches!(&cast.body, Down::Done { op: done, .. } if **done == *op))
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
    }
}

/// Acknowledgements only free memory; they may take their time.
const ACK_AFTER: u32 = 64;
const ACK_DELAY: Duration = Duration::from_millis(500);
