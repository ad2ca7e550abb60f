//! How the daemons come up: each hands in a card, and cards are collected on the way to the root.
//!
//! A daemon keeps the cards of its whole subtree until the root has the cards of all daemons, and sends them again when its
//! parent changes meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_core::Time;

use super::msg::Msg;
use super::timer::Timer;
use super::{Arrived, Cargo, Overlay};
use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Debug)]
pub(super) struct Cards<C: Cargo> {
    /// The cards of our whole subtree; at the root only the numbers of the daemons.
    kept: BTreeMap<NodeId, Option<C::Card>>,
    unsent: BTreeSet<NodeId>,
    /// The root has the cards of all daemons.
    settled: bool,
}

impl<C: Cargo> Default for Cards<C> {
    fn default() -> Cards<C> {
        Cards { kept: BTreeMap::new(), unsent: BTreeSet::new(), settled: false }
    }
}

impl<C: Cargo> Overlay<C> {
    /// Hands in our own card, at the very beginning.
    pub(crate) fn hand_in(&mut self, now: Time, card: C::Card) {
        self.on_cards(now, vec![(self.me, card)]);
    }

    pub(super) fn on_cards(&mut self, now: Time, cards: Vec<(NodeId, C::Card)>) {
        if self.is_root() {
            self.cards.kept.extend(cards.iter().map(|(node, _)| (*node, None)));
            return self.arrived(Arrived::Cards(cards));
        }
        for (node, card) in cards {
            self.cards.unsent.insert(node);
            self.cards.kept.insert(node, Some(card));
        }
        let expected = self.tree.under(self.me).count() as usize;
        if self.cards.kept.len() == expected {
            self.send_cards(now);
        } else {
            self.timers.set_once(now.after(COLLECT), Timer::Cards);
        }
    }

    pub(super) fn send_cards(&mut self, now: Time) {
        if self.parent.is_some_and(|parent| self.links.is_ready(parent)) {
            let unsent = std::mem::take(&mut self.cards.unsent);
            let card = |node: NodeId| Some((node, self.cards.kept.get(&node)?.clone()?));
            let cards: Vec<_> = unsent.into_iter().filter_map(card).collect();
            if !cards.is_empty() {
                self.send_up(now, Msg::Cards(cards));
            }
        }
    }

    pub(super) fn send_cards_again(&mut self, now: Time) {
        if !self.cards.settled {
            self.cards.unsent = self.cards.kept.keys().copied().collect();
            self.send_cards(now);
        }
    }

    /// The root has the cards of all daemons: they are not needed any more.
    pub(crate) fn settle_cards(&mut self) {
        if !self.is_root() {
            self.cards = Cards { settled: true, ..Cards::default() };
        }
    }

    /// The living daemons below us, ourselves included, that have not come up.
    pub(crate) fn absent(&self) -> Ranges {
        let absent =
            |node: &u32| !self.cards.kept.contains_key(&NodeId(*node)) && !self.tree.is_lost(NodeId(*node));
        self.tree.under(self.me).iter().filter(absent).collect()
    }
}

const COLLECT: Duration = Duration::from_millis(50);
