//! What each node can take of each app context: its turn, its bound, and what is in use already.
//!
//! Also counts the ranks of an app context where no number was given, and makes the numbers in refusals.

use std::sync::Arc;

use phalanx_topo::Topology;

use super::choose::{Choice, Names, Offer, choose};
use super::defaults::{self, Settled};
use super::error::NodeShortage;
use super::shape::{self, Shape};
use super::{AppRequest, BindTo, MapBy, MapError, NodeResources, Policy};
use crate::hosts::Slots;

/// A job while it is being placed.
pub(super) struct Job<'a> {
    pub(super) nodes: &'a [NodeResources],
    pub(super) names: Names<'a>,
    pub(super) apps: Vec<App<'a>>,
    /// By node: how many ranks of this job it has so far.
    pub(super) used: Vec<u32>,
    /// By node: how many CPUs these ranks will need.
    pub(super) demand: Vec<u32>,
}

/// One app context of the job.
pub(super) struct App<'a> {
    pub(super) policy: &'a Policy,
    pub(super) settled: Settled,
    pub(super) procs: u32,
    /// Its first rank in the job.
    pub(super) first_rank: u32,
    /// The file entry of its first rank: a file of the job's policy numbers the job's ranks, a file of its own policy its own
    /// ranks.
    pub(super) first_line: u32,
    pub(super) offers: Vec<Offer>,
    /// Indices into `offers`: its hosts as they were named, with repetitions.
    pub(super) turns: Vec<u32>,
    pub(super) shapes: Vec<Shape>,
}

/// How many more ranks a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// As part of its turn.
    pub(super) turn: u32,
    /// In total.
    pub(super) most: u32,
}

impl<'a> Job<'a> {
    /// Finds every app context's nodes and number of ranks, and settles its policies.
    pub(super) fn new(
        nodes: &'a [NodeResources],
        requests: &'a [AppRequest],
        policy: &'a Policy,
    ) -> Result<Job<'a>, MapError> {
        let mut job = Job {
            nodes,
            names: Names::new(nodes),
            apps: Vec::new(),
            used: vec![0; nodes.len()],
            demand: vec![0; nodes.len()],
        };
        let mut claimed = vec![false; nodes.len()];
        let mut drafts = Vec::with_capacity(requests.len());
        for (app, request) in requests.iter().enumerate() {
            let policy = request.policy.as_ref().unwrap_or(policy);
            let Choice { mut offers, turns } = choose(&job.names, request, policy, &mut claimed, app)?;
            let (topologies, own) = shape::topologies(nodes, offers.iter().map(|offer| offer.node), policy)?;
            offers.iter_mut().zip(own).for_each(|(offer, shape)| offer.shape = shape);
            drafts.push(Draft { request, policy, offers, turns, topologies });
        }
        let given: u64 = requests.iter().filter_map(|request| request.procs).map(u64::from).sum();
        let mut total = 0u64;
        let mut counts = Vec::with_capacity(drafts.len());
        for (app, draft) in drafts.iter().enumerate() {
            let procs = draft.count(&job, given, app)?;
            total += u64::from(procs);
            counts.push(procs);
        }
        if total > MOST_RANKS {
            return Err(MapError::TooMany { what: String::new(), asked: total, most: MOST_RANKS });
        }
        // To place millions only to refuse them takes minutes.
        let most = MOST_RANKS_OF_A_NODE * nodes.len() as u64;
        if total > most {
            let what = match nodes {
                [node] => format!(" on node {}", node.name),
                _ => format!(" on {} nodes", nodes.len()),
            };
            return Err(MapError::TooMany { what, asked: total, most });
        }
        let mut first_rank = 0;
        for (draft, procs) in drafts.into_iter().zip(counts) {
            let own = draft.request.policy.is_some();
            let settled = defaults::settle(draft.policy, if own { procs.into() } else { total }, nodes);
            let shapes =
                draft.topologies.into_iter().map(|topology| Shape::new(topology, &settled)).collect();
            job.apps.push(App {
                policy: draft.policy,
                settled,
                procs,
                first_rank,
                first_line: if own { 0 } else { first_rank },
                offers: draft.offers,
                turns: draft.turns,
                shapes,
            });
            first_rank += procs;
        }
        Ok(job)
    }

    /// What a node can take of an app context now. If binding is required, no more than can be bound.
    pub(super) fn budget(&self, app: &App<'_>, offer: &Offer) -> Budget {
        let node = &self.nodes[offer.node as usize];
        let shape = &app.shapes[offer.shape as usize];
        let mut budget = self.slots(offer, shape.units.len() as u32, app.settled.oversubscribe);
        if app.settled.required && app.settled.bind != BindTo::None && !app.settled.overload {
            let wanted = self.demand[offer.node as usize];
            let room = match wanted {
                0 => shape.room(&node.busy, app.settled.pe),
                _ => shape.free(&node.busy).saturating_sub(wanted) / app.settled.pe,
            };
            budget = Budget { turn: budget.turn.min(room), most: budget.most.min(room) };
        }
        budget
    }

    /// The same by slots alone, for a node with this many CPUs.
    pub(super) fn slots(&self, offer: &Offer, cpus: u32, oversubscribe: Option<bool>) -> Budget {
        let node = &self.nodes[offer.node as usize];
        let used = self.used[offer.node as usize];
        let there = node.in_use().saturating_add(used);
        let (turn, stated) = match offer.slots {
            Slots::Unstated => (cpus.saturating_sub(there), None),
            Slots::Mentioned(times) => (times.saturating_sub(used), None),
            Slots::Stated(slots) => {
                // The slots of the app context are its own; the slots of the node are shared by all.
                let on_node = match node.slots {
                    Slots::Stated(all) => all.saturating_sub(there),
                    Slots::Unstated | Slots::Mentioned(_) => u32::MAX,
                };
                let free = slots.saturating_sub(used).min(on_node);
                (free, Some(free))
            }
        };
        let most = match (oversubscribe, stated) {
            (Some(true), _) | (None, None) => u32::MAX,
            (Some(false) | None, Some(free)) => free,
            (Some(false), None) => cpus.saturating_sub(there),
        };
        let most = offer.max_slots.map_or(most, |max| most.min(max.saturating_sub(there)));
        let turn = offer.mentioned.map_or(turn, |times| turn.min(times));
        Budget { turn: turn.min(most), most }
    }

    /// The error for ranks of an app context that do not fit.
    pub(super) fn refusal(&self, app: usize, asked: u32) -> MapError {
        self.refusal_of(app, &self.apps[app].offers, asked)
    }

    /// The error for ranks that do not fit on a single node.
    pub(super) fn refusal_on(&self, app: usize, offer: &Offer, asked: u32) -> MapError {
        self.refusal_of(app, std::slice::from_ref(offer), asked)
    }

    fn refusal_of(&self, app: usize, offers: &[Offer], asked: u32) -> MapError {
        let this = &self.apps[app];
        let cpus = |offer: &Offer| this.shapes[offer.shape as usize].units.len() as u32;
        let most = |oversubscribe| -> u64 {
            let budgets = offers.iter().map(|offer| self.slots(offer, cpus(offer), oversubscribe));
            budgets.map(|budget| u64::from(budget.most)).sum()
        };
        let free = most(this.settled.oversubscribe);
        let bound = most(Some(true));
        let shortages = |slots: &dyn Fn(&Offer) -> u32| {
            let shortage = |offer: &Offer| {
                let node = &self.nodes[offer.node as usize];
                let in_use = node.in_use() + self.used[offer.node as usize];
                NodeShortage { node: node.name.clone(), slots: slots(offer), in_use }
            };
            offers.iter().map(shortage).collect()
        };
        if bound < asked.into() {
            let nodes = shortages(&|offer| offer.max_slots.unwrap_or(u32::MAX));
            return MapError::Full { app, asked, room: bound, nodes };
        }
        if free < asked.into() {
            let nodes = shortages(&|offer| match offer.slots {
                Slots::Stated(slots) => slots,
                _ => cpus(offer),
            });
            let forbidden = this.settled.oversubscribe == Some(false);
            return MapError::NotEnoughSlots { app, asked, free, nodes, forbidden };
        }
        let room = offers.iter().map(|offer| u64::from(self.budget(this, offer).most)).sum();
        let Settled { pe, unit, bind, .. } = this.settled;
        MapError::NotEnoughCpus { app, asked, pe, room, unit, bind, nodes: offers.len() }
    }
}

/// Ranks are below the special ones, which begin near the top of 32 bits.
const MOST_RANKS: u64 = 0x7fff_ffff;
/// PMIx numbers the ranks of a node with 16 bits.
pub(super) const MOST_RANKS_OF_A_NODE: u64 = 0xffff;

/// An app context whose policies are not settled yet.
struct Draft<'a> {
    request: &'a AppRequest,
    policy: &'a Policy,
    offers: Vec<Offer>,
    turns: Vec<u32>,
    topologies: Vec<Arc<Topology>>,
}

impl Draft<'_> {
    /// How many ranks it has. `given` is the total of the job's app contexts that have a number.
    fn count(&self, job: &Job<'_>, given: u64, app: usize) -> Result<u32, MapError> {
        let counted = match (self.request.procs, self.policy.map.by) {
            (Some(procs), _) => procs.into(),
            (None, Some(MapBy::Sequence)) => match &self.policy.sequence {
                Some(sequence) => sequence.entries.len() as u64,
                None => self.turns.len() as u64,
            },
            (None, Some(MapBy::Rankfile)) => {
                self.policy.rankfile.as_ref().map_or(0, |rankfile| rankfile.ranks.len() as u64)
            }
            (None, Some(MapBy::PerResource { count, level })) => {
                let objects =
                    |offer: &Offer| self.topologies[offer.shape as usize].objects(level).len() as u64;
                self.offers.iter().map(objects).sum::<u64>() * u64::from(count)
            }
            (None, _) => {
                let pe = self.policy.map.pe.unwrap_or(1);
                let unit = defaults::unit(self.policy, job.nodes);
                let slots = |offer: &Offer| {
                    let cpus = self.topologies[offer.shape as usize].objects(unit).len() as u32;
                    let turn = job.slots(offer, cpus, self.policy.map.oversubscribe).turn;
                    u64::from(if pe > 1 { turn.min(cpus / pe) } else { turn })
                };
                let free = self.offers.iter().map(slots).sum::<u64>();
                // A full node without stated slots still runs one more rank.
                free.saturating_sub(given).max(u64::from(given == 0 && free == 0 && pe == 1))
            }
        };
        match u32::try_from(counted) {
            Ok(0) => Err(MapError::NoProcs { app }),
            Ok(procs) => Ok(procs),
            Err(_) => Err(MapError::TooMany { what: String::new(), asked: counted, most: MOST_RANKS }),
        }
    }
}
