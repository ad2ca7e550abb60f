//! The defaults for what is not given.
//!
//! The rules are those of PRRTE (unchanged from its 3.0, which Open MPI 5 carries, to 2026), so that a job without policies
//! lands where its user expects:
//!
//! * Mapping: with `pe=N` by slot; with `--bind-to OBJECT` by that object (`none`: by slot); otherwise up to two ranks
//!   by core and more by package, or by NUMA node or slot on nodes without packages.
//! * Ranking: by node when mapped by node; by object (`fill`) when mapped by object; `span` when mapped with `span`;
//!   otherwise by slot.
//! * Binding: to the object that was mapped by; with `pe=N` to CPUs; otherwise up to two ranks to a core and more to a NUMA
//!   node. A default binding that does not fit a node is dropped there, a requested one is an error.
//! * CPUs are cores, unless hardware threads were requested or are what is mapped by or bound to, or a node describes no cores.
//!
//! Ours differs in two places: without stated slots, more ranks than CPUs run (unbound) instead of being refused; and binding
//! to something larger than what was mapped by is allowed.

use phalanx_topo::Level;

use super::{BindTo, MapBy, NodeResources, Policy, RankBy};

/// The policies of one app context, all settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) map: MapBy,
    pub(super) span: bool,
    pub(super) rank: RankBy,
    pub(super) bind: BindTo,
    /// Binding was requested, so it must succeed.
    pub(super) required: bool,
    pub(super) overload: bool,
    pub(super) if_supported: bool,
    pub(super) pe: u32,
    /// What counts as a CPU: [`Level::Core`] or [`Level::Pu`].
    pub(super) unit: Level,
    pub(super) oversubscribe: Option<bool>,
}

/// What counts as a CPU under a policy.
pub(super) fn unit(policy: &Policy, nodes: &[NodeResources]) -> Level {
    if nodes.iter().any(|node| node.topology.objects(Level::Core).is_empty()) {
        return Level::Pu;
    }
    let by_thread = policy.map.by == Some(MapBy::Object(Level::Pu));
    let to_thread = policy.bind.to == Some(BindTo::Object(Level::Pu));
    match policy.map.hwthreads.unwrap_or(by_thread || to_thread) {
        true => Level::Pu,
        false => Level::Core,
    }
}

/// Settles the rest, for an app context that is one of `procs` ranks altogether.
pub(super) fn settle(policy: &Policy, procs: u64, nodes: &[NodeResources]) -> Settled {
    let unit = unit(policy, nodes);
    let pe = policy.map.pe.unwrap_or(1);
    let map = policy.map.by.unwrap_or_else(|| default_map(policy, unit, procs, nodes));
    let span = policy.map.span && matches!(map, MapBy::Object(_));
    Settled {
        map,
        span,
        rank: match map {
            MapBy::Sequence | MapBy::Rankfile => RankBy::File,
            _ => policy.rank.unwrap_or_else(|| default_rank(map, span)),
        },
        bind: policy.bind.to.unwrap_or_else(|| default_bind(map, unit, pe, procs)),
        required: (policy.bind.to.is_some() || pe > 1) && !policy.bind.if_supported,
        overload: policy.bind.overload,
        if_supported: policy.bind.if_supported,
        pe,
        unit,
        oversubscribe: policy.map.oversubscribe,
    }
}

/// Up to this many ranks get a CPU each; more get larger objects.
const FEW: u64 = 2;

fn default_map(policy: &Policy, unit: Level, procs: u64, nodes: &[NodeResources]) -> MapBy {
    let has = |level| nodes.iter().all(|node| !node.topology.objects(level).is_empty());
    match policy.bind.to {
        _ if policy.map.pe.is_some_and(|pe| pe > 1) => MapBy::Slot,
        Some(BindTo::Object(level)) => MapBy::Object(level),
        Some(BindTo::None) => MapBy::Slot,
        None if procs <= FEW => MapBy::Object(unit),
        None if has(Level::Package) => MapBy::Object(Level::Package),
        None if has(Level::Numa) => MapBy::Object(Level::Numa),
        None => MapBy::Slot,
    }
}

fn default_rank(map: MapBy, span: bool) -> RankBy {
    match map {
        MapBy::Node => RankBy::Node,
        MapBy::Object(_) if span => RankBy::Span,
        MapBy::Object(_) => RankBy::Fill,
        MapBy::Slot | MapBy::PerResource { .. } => RankBy::Slot,
        MapBy::Sequence | MapBy::Rankfile => RankBy::File,
    }
}

fn default_bind(map: MapBy, unit: Level, pe: u32, procs: u64) -> BindTo {
    match map {
        _ if pe > 1 => BindTo::Object(unit),
        MapBy::Object(level) => BindTo::Object(level),
        MapBy::PerResource { level, .. } if level != Level::Machine => BindTo::Object(level),
        _ if procs <= FEW => BindTo::Object(unit),
        _ => BindTo::Object(Level::Numa),
    }
}
