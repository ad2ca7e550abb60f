//! Which nodes an app context may use, and how often it named them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::{AppRequest, MapError, NodeResources, Policy, words};
use crate::hosts::{Host, HostNames, Slots};

/// The nodes of an app context.
pub(super) struct Choice {
    /// Each node once, in the order in which they were named, otherwise in that of the allocation.
    pub(super) offers: Vec<Offer>,
    /// Indices into `offers`: the nodes as they were named, with repetitions.
    pub(super) turns: Vec<u32>,
}

/// One node that an app context may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) node: u32,
    /// Into the app context's shapes.
    pub(super) shape: u32,
    pub(super) slots: Slots,
    /// How often the app context names it, if that alone is its turn.
    pub(super) mentioned: Option<u32>,
    pub(super) max_slots: Option<u32>,
}

/// Finds the nodes of app context `app`. `claimed` are the nodes of earlier mentions, here and in earlier app contexts.
pub(super) fn choose(
    names: &Names<'_>,
    request: &AppRequest,
    policy: &Policy,
    claimed: &mut [bool],
    app: usize,
) -> Result<Choice, MapError> {
    let nodes = names.nodes;
    let mut choice = Choice { offers: Vec::new(), turns: Vec::new() };
    let mut places = BTreeMap::new();
    for entry in &request.hosts {
        for node in names.find(&entry.host, claimed, None)? {
            if policy.map.nolocal && nodes[node].launcher {
                continue;
            }
            claimed[node] = true;
            let place = *places.entry(node).or_insert(choice.offers.len());
            choice.turns.push(place as u32);
            match choice.offers.get_mut(place) {
                None => {
                    let max_slots = entry.max_slots.or(nodes[node].max_slots);
                    choice.offers.push(Offer { slots: entry.slots, max_slots, ..whole(nodes, node) });
                }
                Some(offer) => {
                    offer.slots = offer.slots.plus(entry.slots);
                    offer.max_slots = entry.max_slots.or(offer.max_slots);
                }
            }
        }
    }
    for offer in &mut choice.offers {
        if let Slots::Mentioned(times) = offer.slots {
            offer.mentioned = Some(times);
        }
        offer.slots = narrowed(nodes[offer.node as usize].slots, offer.slots, policy.map.oversubscribe);
    }
    if request.hosts.is_empty() {
        let usable = (0..nodes.len()).filter(|node| !(policy.map.nolocal && nodes[*node].launcher));
        choice.offers = usable.map(|node| whole(nodes, node)).collect();
        choice.turns = (0..choice.offers.len() as u32).collect();
    }
    if choice.offers.is_empty() { Err(MapError::NoNodesLeft { app }) } else { Ok(choice) }
}

fn whole(nodes: &[NodeResources], node: usize) -> Offer {
    let NodeResources { slots, max_slots, .. } = nodes[node];
    Offer { node: node as u32, shape: 0, slots, mentioned: None, max_slots }
}

/// The slots of a node for an app context that names it.
fn narrowed(node: Slots, app: Slots, oversubscribe: Option<bool>) -> Slots {
    match (node, app) {
        (node, Slots::Unstated) => node,
        (Slots::Stated(node), Slots::Stated(app)) if oversubscribe != Some(true) => {
            Slots::Stated(node.min(app))
        }
        (Slots::Stated(node), Slots::Mentioned(_)) => Slots::Stated(node),
        (_, app) => app,
    }
}

/// The nodes of an allocation by their names.
pub(super) struct Names<'a> {
    nodes: &'a [NodeResources],
    index: OnceCell<HostNames>,
}

impl<'a> Names<'a> {
    pub(super) fn new(nodes: &'a [NodeResources]) -> Names<'a> {
        Names { nodes, index: OnceCell::new() }
    }

    /// The nodes that a mention stands for. `claimed` nodes no longer count as empty; `place` is the position of the mention.
    pub(super) fn find(
        &self,
        host: &Host,
        claimed: &[bool],
        place: Option<(&str, u32)>,
    ) -> Result<Vec<usize>, MapError> {
        match host {
            Host::Name(name) => match self.named(name) {
                Some(node) => Ok(vec![node]),
                None => Err(self.unknown(host, Some(name), place)),
            },
            Host::Index(index) if (*index as usize) < self.nodes.len() => Ok(vec![*index as usize]),
            Host::Index(_) => Err(self.unknown(host, None, place)),
            Host::Empty(asked) => {
                let empty =
                    |node: &usize| self.nodes[*node].in_use() == 0 && claimed.get(*node) != Some(&true);
                let found: Vec<usize> = (0..self.nodes.len()).filter(empty).collect();
                match asked {
                    Some(asked) if found.len() < *asked as usize => {
                        Err(MapError::NotEnoughEmpty { asked: *asked, empty: found.len() as u32 })
                    }
                    Some(asked) => Ok(found.into_iter().take(*asked as usize).collect()),
                    None => Ok(found),
                }
            }
        }
    }

    fn named(&self, name: &str) -> Option<usize> {
        let index = self.index.get_or_init(|| {
            let mut index = HostNames::default();
            let nodes = || self.nodes.iter().enumerate();
            nodes().for_each(|(number, node)| index.insert(&node.name, number));
            nodes().for_each(|(number, node)| node.called.iter().for_each(|name| index.insert(name, number)));
            index
        });
        index.find(name)
    }

    fn unknown(&self, host: &Host, name: Option<&String>, place: Option<(&str, u32)>) -> MapError {
        const LOOKED_AT: usize = 10_000;
        let names = self.nodes.iter().take(LOOKED_AT).map(|node| node.name.as_str());
        let near = name.and_then(|name| words::nearest(name, names)).map(str::to_owned);
        let place = place.map(|(file, line)| (file.to_owned(), line));
        MapError::UnknownHost { host: host.clone(), nodes: self.nodes.len(), near, place }
    }
}
