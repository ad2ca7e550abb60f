//! The tree of daemons, as pure functions of their numbers: parents and children, the path of a message, and the new parent of
//! the children of a lost daemon.
//!
//! The tree is k-ary and numbered level by level, so a daemon's descendants on each level are one range of numbers. A lost
//! daemon's children belong to its next living ancestor; the set of a daemon's descendants therefore only ever loses members,
//! and what one daemon has merged from its descendants never partly overlaps with what another has.

use std::collections::BTreeSet;

use crate::id::NodeId;
use crate::ranges::Ranges;

#[derive(Clone, Debug)]
pub struct Tree {
    size: u32,
    radix: u32,
    lost: BTreeSet<NodeId>,
}

/// Which way a message goes from a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    Here,
    Up(NodeId),
    Down(NodeId),
    /// The destination is lost, or does not exist.
    Nowhere,
}

impl Tree {
    /// `size` daemons, the root included; each has at most `radix` children.
    pub fn new(size: u32, radix: u32) -> Tree {
        Tree { size: size.max(1), radix: radix.max(1), lost: BTreeSet::new() }
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// The number of daemons, from 0 on, that were built with children; the root always counts.
    pub fn inner(&self) -> u32 {
        self.size.saturating_sub(2) / self.radix + 1
    }

    pub fn lose(&mut self, node: NodeId) {
        self.lost.insert(node);
    }

    pub fn is_lost(&self, node: NodeId) -> bool {
        self.lost.contains(&node)
    }

    pub fn lost(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.lost.iter().copied()
    }

    /// The next living ancestor.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.ancestors(node).find(|a| !self.is_lost(*a))
    }

    /// From the original parent up to the root, including lost ones.
    pub fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        let radix = self.radix;
        std::iter::successors(Some(node), move |n| Some(NodeId(n.0.checked_sub(1)? / radix))).skip(1)
    }

    /// The living daemons with `node` as their next living ancestor, in ascending order.
    pub fn children(&self, node: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut lost = vec![node];
        while let Some(parent) = lost.pop() {
            for child in self.built_children(parent) {
                if self.is_lost(child) { lost.push(child) } else { found.push(child) }
            }
        }
        found.sort_unstable();
        found
    }

    /// Whether `node` is `top` or one of its descendants.
    pub fn is_under(&self, top: NodeId, node: NodeId) -> bool {
        node == top || self.ancestors(node).take_while(|a| *a >= top).any(|a| a == top)
    }

    /// Whether any of `nodes` is `top` or one of its descendants.
    pub fn reaches(&self, top: NodeId, nodes: &Ranges) -> bool {
        self.levels(top).any(|(first, last)| nodes.intersects_span(first, last))
    }

    /// `top` and its descendants, including lost ones.
    pub fn under(&self, top: NodeId) -> Ranges {
        let mut all = Ranges::new();
        self.levels(top).for_each(|(first, last)| all.insert_span(first, last));
        all
    }

    pub fn hop(&self, from: NodeId, to: NodeId) -> Hop {
        if from == to {
            return Hop::Here;
        }
        if to.0 >= self.size || self.is_lost(to) {
            return Hop::Nowhere;
        }
        let mut below = to;
        for ancestor in self.ancestors(to) {
            if ancestor == from {
                return Hop::Down(below);
            }
            if !self.is_lost(ancestor) {
                below = ancestor;
            }
        }
        self.parent(from).map_or(Hop::Nowhere, Hop::Up)
    }

    fn built_children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        let first = u64::from(node.0) * u64::from(self.radix) + 1;
        let size = u64::from(self.size);
        (first..(first + u64::from(self.radix)).min(size).max(first)).map(|n| NodeId(n as u32))
    }

    /// `top` and its descendants, as one span of numbers per level.
    fn levels(&self, top: NodeId) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (size, radix) = (u64::from(self.size), u64::from(self.radix));
        std::iter::successors(Some((u64::from(top.0), u64::from(top.0))), move |(first, last)| {
            Some((first * radix + 1, last * radix + radix))
        })
        .take_while(move |(first, _)| *first < size)
        .map(move |(first, last)| (first as u32, last.min(size - 1) as u32))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_tree() -> impl Strategy<Value = Tree> {
        (1u32..200, 1u32..6, prop::collection::vec(1u32..200, 0..40)).prop_map(|(size, radix, lost)| {
            let mut tree = Tree::new(size, radix);
            lost.into_iter().filter(|n| *n < size).for_each(|n| tree.lose(NodeId(n)));
            tree
        })
    }

    proptest! {
        #[test]
        fn the_living_stay_one_tree(tree in any_tree()) {
            let mut seen = BTreeSet::new();
            let mut open = vec![NodeId(0)];
            while let Some(node) = open.pop() {
                prop_assert!(seen.insert(node));
                for child in tree.children(node) {
                    prop_assert_eq!(tree.parent(child), Some(node));
                    open.push(child);
                }
            }
            let living: BTreeSet<_> = (0..tree.size()).map(NodeId).filter(|n| !tree.is_lost(*n)).collect();
            prop_assert_eq!(seen, living);
        }

        #[test]
        fn every_message_arrives(tree in any_tree(), from: u32, to: u32) {
            let (mut at, to) = (NodeId(from % tree.size()), NodeId(to % tree.size()));
            prop_assume!(!tree.is_lost(at));
            for _ in 0..=2 * tree.size() {
                match tree.hop(at, to) {
                    Hop::Here => return Ok(()),
                    Hop::Up(next) => {
                        prop_assert_eq!(tree.parent(at), Some(next));
                        at = next;
                    }
                    Hop::Down(next) => {
                        prop_assert!(tree.children(at).contains(&next));
                        at = next;
                    }
                    Hop::Nowhere => {
                        prop_assert!(tree.is_lost(to));
                        return Ok(());
                    }
                }
            }
            prop_assert!(false, "the message went in circles");
        }

        #[test]
        fn descendants_are_spans(tree in any_tree(), top: u32) {
            let top = NodeId(top % tree.size());
            let under = tree.under(top);
            for n in 0..tree.size() {
                prop_assert_eq!(under.contains(n), tree.is_under(top, NodeId(n)));
                prop_assert_eq!(tree.reaches(top, &Ranges::single(n)), under.contains(n));
            }
        }
    }
}
