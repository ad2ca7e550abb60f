//! Messages from one daemon to another, passed on hop by hop. They may be lost with a daemon on the path: a sender that needs
//! an answer asks again.

use phalanx_core::Time;

use super::msg::{Msg, Routed};
use super::tree::Hop;
use super::{Arrived, Cargo, Overlay};
use crate::id::NodeId;

impl<C: Cargo> Overlay<C> {
    pub(crate) fn send_to(&mut self, now: Time, to: NodeId, body: C::Side) {
        self.route(now, Routed { from: self.me, to, body });
    }

    /// Passes a message on towards its destination.
    pub(super) fn route(&mut self, now: Time, routed: Routed<C>) {
        match self.tree.hop(self.me, routed.to) {
            Hop::Here => self.arrived(Arrived::Side { from: routed.from, body: routed.body }),
            Hop::Up(next) | Hop::Down(next) => self.send(now, next, Msg::Routed(routed)),
            Hop::Nowhere => {}
        }
    }
}
