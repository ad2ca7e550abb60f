//! Why a job cannot be placed: the request, the resources, and what would help.

use std::fmt;

use phalanx_topo::Level;

use super::BindTo;
use super::files::CpuList;
use crate::hosts::Host;

/// Every reason for which [`super::map_job`] refuses.
#[derive(Clone, Debug, PartialEq)]
pub enum MapError {
    /// There is no node at all.
    NoNodes,
    /// There is nothing to run.
    NoApps,
    /// `nolocal` and the filters left no node for an app context.
    NoNodesLeft { app: usize },
    /// No ranks were requested, or nothing has room for one.
    NoProcs { app: usize },
    /// A host was named that the allocation does not have.
    UnknownHost { host: Host, nodes: usize, near: Option<String>, place: Option<(String, u32)> },
    /// More empty nodes were requested than there are.
    NotEnoughEmpty { asked: u32, empty: u32 },
    /// More ranks than slots.
    NotEnoughSlots { app: usize, asked: u32, free: u64, nodes: Vec<NodeShortage>, forbidden: bool },
    /// More ranks than `max_slots` allow, whatever else is allowed.
    Full { app: usize, asked: u32, room: u64, nodes: Vec<NodeShortage> },
    /// More ranks than CPUs to bind them to. `room` is how many could be bound.
    NotEnoughCpus { app: usize, asked: u32, pe: u32, room: u64, unit: Level, bind: BindTo, nodes: usize },
    /// A rank of several CPUs was to go to an object that has fewer.
    ObjectTooSmall { node: String, level: Level, pe: u32, cpus: u32, unit: Level },
    /// All CPUs near an object, or of the node, are taken.
    ObjectFull { node: String, object: Option<(Level, u32)>, pe: u32, unit: Level },
    /// A node has none of the objects that were named.
    NoSuchObject { node: String, level: Level, present: Vec<Level>, option: &'static str },
    /// More ranks were requested than a pattern gives.
    PatternTooSmall { asked: u32, count: u32, level: Level, total: u64, nodes: usize },
    /// More ranks than lines.
    TooFewEntries { file: Option<String>, asked: u32, entries: usize },
    /// A rank that its rankfile does not have.
    MissingRank { file: String, rank: u32 },
    /// A mapping from a file, and no file.
    NoFile { map: &'static str },
    /// A line's CPUs do not exist on its node.
    NoSuchCpus { file: String, line: u32, node: String, cpus: CpuList, missing: (Level, u32), has: u32 },
    /// A line's CPUs belong to another rank already.
    CpusTaken { file: String, line: u32, node: String, taken: String },
    /// `--cpu-set` leaves a node without CPUs.
    EmptyCpuSet { node: String, cpu_set: String, allowed: String },
    /// More ranks than a job or a node can number.
    TooMany { what: String, asked: u64, most: u64 },
}

/// What one node has, for an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShortage {
    /// Its name.
    pub node: String,
    /// Its slots, or its bound.
    pub slots: u32,
    /// How many ranks run there already.
    pub in_use: u32,
}

impl MapError {
    /// What would help, if that is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            MapError::NotEnoughSlots { forbidden: false, .. } => {
                "--map-by :oversubscribe runs more ranks than slots; slots=N in a hostfile or --host NAME:N states others"
            }
            MapError::NotEnoughSlots { forbidden: true, .. } => {
                "leave out nooversubscribe, or ask for fewer ranks"
            }
            MapError::ObjectFull { .. } => {
                "--bind-to none leaves ranks unbound, :overload-allowed lets them share CPUs"
            }
            MapError::NotEnoughCpus { unit: Level::Core, .. } => {
                "--bind-to none leaves ranks unbound, :overload-allowed lets them share CPUs, --map-by :hwtcpus counts hardware threads"
            }
            MapError::NotEnoughCpus { .. } => {
                "--bind-to none leaves ranks unbound, :overload-allowed lets them share CPUs"
            }
            MapError::ObjectTooSmall { .. } => "map by a larger object, e.g. --map-by slot:pe=N",
            MapError::NoSuchObject { present, .. } => {
                let names: Vec<_> = present.iter().map(|level| level.name()).collect();
                return Some(format!("it has {}", names.join(", ")));
            }
            MapError::UnknownHost { near: Some(near), .. } => {
                return Some(format!("did you mean \"{near}\"?"));
            }
            MapError::PatternTooSmall { .. } => "leave out -n to get them all, or raise N in ppr:N:OBJECT",
            MapError::NoFile { map } => return Some(format!("--map-by {map}:file=PATH")),
            MapError::CpusTaken { .. } => "--bind-to :overload-allowed lets ranks share CPUs",
            MapError::NoProcs { .. } => {
                "-n states how many ranks a program has; without it there are as many as slots are left, or as its mapping names"
            }
            MapError::EmptyCpuSet { .. } => "--cpu-set takes the kernel's numbers, as taskset -c does",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::NoNodes => f.write_str("there is no node to run on"),
            MapError::NoApps => f.write_str("there is no program to run"),
            MapError::NoNodesLeft { app } => write!(f, "app context {app} may run on none of the nodes"),
            MapError::NoProcs { app } => write!(f, "app context {app} gets no ranks"),
            MapError::UnknownHost { host, nodes, place, .. } => {
                if let Some((file, line)) = place {
                    write!(f, "{file}:{line}: ")?;
                }
                write!(f, "host {host} is not among the {} of the allocation", count(*nodes as u64, "node"))
            }
            MapError::NotEnoughEmpty { asked, empty } => {
                write!(f, "asked for {}, but there are {empty}", count((*asked).into(), "empty node"))
            }
            MapError::NotEnoughSlots { asked, free, nodes, .. } => {
                write!(f, "asked for {}, but ", count((*asked).into(), "rank"))?;
                write!(f, "{} free on {}", are(*free, "slot"), count(nodes.len() as u64, "node"))?;
                shortages(f, nodes)
            }
            MapError::Full { asked, room, nodes, .. } => {
                write!(f, "asked for {}, but max_slots allows {room} on ", count((*asked).into(), "rank"))?;
                write!(f, "{}", count(nodes.len() as u64, "node"))?;
                shortages(f, nodes)
            }
            MapError::NotEnoughCpus { asked, pe, room, unit, bind, nodes, .. } => {
                write!(f, "asked for {} ", count((*asked).into(), "rank"))?;
                match pe {
                    1 => write!(f, "bound to {bind}, each with a {unit} of its own")?,
                    _ => write!(f, "of {pe} {unit}s each")?,
                }
                write!(f, ", but there is room for {room} on {}", count(*nodes as u64, "node"))
            }
            MapError::ObjectTooSmall { node, level, pe, cpus, unit } => {
                write!(f, "node {node}: a rank of {pe} {unit}s does not fit a {level}, which has {cpus}")
            }
            MapError::ObjectFull { node, object, pe, unit } => {
                match pe {
                    1 => write!(f, "node {node}: no free {unit} is left")?,
                    _ => write!(f, "node {node}: no {pe} free {unit}s are left")?,
                }
                match object {
                    Some((level, number)) => write!(f, " in {level} {number} for another rank"),
                    None => f.write_str(" for another rank"),
                }
            }
            MapError::NoSuchObject { node, level, option, .. } => {
                write!(f, "{option} {level}: node {node} has no {level}")
            }
            MapError::PatternTooSmall { asked, count: each, level, total, nodes } => {
                write!(f, "asked for {}, but {each} per {level} ", count((*asked).into(), "rank"))?;
                write!(f, "makes {total} on {}", count(*nodes as u64, "node"))
            }
            MapError::TooFewEntries { file, asked, entries } => {
                let what = file.as_deref().unwrap_or("the list of hosts");
                write!(f, "asked for {}, but {what} has {entries}", count((*asked).into(), "rank"))
            }
            MapError::MissingRank { file, rank } => write!(f, "{file}: no line for rank {rank}"),
            MapError::NoFile { map } => write!(f, "--map-by {map} needs a file"),
            MapError::NoSuchCpus { file, line, node, cpus, missing: (level, number), has } => {
                write!(f, "{file}:{line}: slot={cpus}: node {node} has no {level} {number} (it has {has})")
            }
            MapError::CpusTaken { file, line, node, taken } => {
                write!(f, "{file}:{line}: CPUs {taken} of node {node} are given to another rank already")
            }
            MapError::EmptyCpuSet { node, cpu_set, allowed } => {
                write!(f, "--cpu-set {cpu_set}: none of these may be used on node {node}, only {allowed}")
            }
            MapError::TooMany { what, asked, most } => {
                write!(f, "asked for {asked} ranks{what}, but no more than {most} can be numbered")
            }
        }
    }
}

impl std::error::Error for MapError {}

pub(super) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn are(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what} is") } else { format!("{number} {what}s are") }
}

/// The first few nodes with their slots.
fn shortages(f: &mut fmt::Formatter<'_>, nodes: &[NodeShortage]) -> fmt::Result {
    const SHOWN: usize = 4;
    let shown: Vec<String> = nodes
        .iter()
        .take(SHOWN)
        .map(|node| match node.in_use {
            0 => format!("{}: {}", node.node, node.slots),
            used => format!("{}: {} less {used} in use", node.node, node.slots),
        })
        .collect();
    let more = if nodes.len() > SHOWN { ", ..." } else { "" };
    write!(f, " ({}{more})", shown.join(", "))
}
