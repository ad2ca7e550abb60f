//! The placement of ranks on nodes and CPUs.
//!
//! Owns mapping (how many ranks on each node, near which object), ranking (which number each place gets) and binding (which
//! CPUs). Everything is computed from the nodes' topologies and the user's policies, by one pass over ranks and nodes; nothing
//! is looked up, and equal inputs have equal results. Never starts anything and never prints: notes for the user are in
//! [`JobMap::notes`], the reason for each rank's place in [`Placement::rule`].
//!
//! The order of work: `choose` finds the nodes, `defaults` settles the policies, `slots` counts what each node can take,
//! `spread` divides the ranks over nodes, `seats` finds an object and CPUs for each, `order` numbers them.
//!
//! Next stop: the launch message brings every daemon its ranks and their CPUs; the renderers of `--display` and `--dry-run`
//! read the same structures.

mod choose;
mod defaults;
mod error;
mod files;
mod order;
mod policy;
mod seats;
mod shape;
mod slots;
mod spread;
pub(crate) mod words;

use std::fmt;
use std::sync::Arc;

use phalanx_topo::{CpuSet, Level, Topology};

pub use error::MapError;
pub use files::{CpuItem, CpuList, Rankfile, Sequence, SequenceEntry};
pub use policy::{BindPolicy, BindTo, MapBy, MapPolicy, Policy, PolicyError, RankBy};

use crate::encoding::encoded;
use crate::hosts::{HostEntry, Slots};
use crate::ranges::Ranges;

/// What one node offers to a job.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResources {
    /// Its own host name.
    pub name: String,
    /// The user's name for it, if different: an address, for example.
    pub called: Option<Arc<str>>,
    /// How many ranks it is for.
    pub slots: Slots,
    /// More ranks than this are never put there.
    pub max_slots: Option<u32>,
    /// Its hardware, as far as this user's processes may use it (without what a cpuset or cgroup excludes).
    pub topology: Arc<Topology>,
    /// The ranks of other jobs that run there, by their [`Placement::node_rank`].
    pub numbers: Ranges,
    /// How many of them have a number that another has, too: they were started again after it had been given away.
    pub doubled: u32,
    /// The CPUs that those ranks are bound to.
    pub busy: CpuSet,
    /// Whether the launcher itself runs there.
    pub launcher: bool,
}

/// One app context of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppRequest {
    /// How many ranks; by default one for each slot.
    pub procs: Option<u32>,
    /// Only on these nodes, with these slots; empty is everywhere.
    pub hosts: Vec<HostEntry>,
    /// The policy for this app context alone; otherwise the job's policy holds.
    pub policy: Option<Policy>,
}

/// The place of every rank of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobMap {
    /// By rank, from 0.
    pub procs: Vec<Placement>,
    /// The policies that held for each app context.
    pub apps: Vec<AppMap>,
    /// The nodes that got ranks, in the order of the allocation.
    pub nodes: Vec<NodeLoad>,
    /// Notes for the user that are no errors, one line each.
    pub notes: Vec<String>,
}

/// One rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Its number in the job.
    pub rank: u32,
    /// Its app context, from 0.
    pub app: u32,
    /// Its number among the ranks of its app context.
    pub app_rank: u32,
    /// Its node: an index into the nodes given to [`map_job`].
    pub node: u32,
    /// Its number among the job's ranks on that node.
    pub local_rank: u16,
    /// Its number on that node, which no other living rank has: the least that is free.
    pub node_rank: u16,
    /// The CPUs that it is bound to, by the kernel's numbers; `None`: unbound.
    pub cpus: Option<CpuSet>,
    /// The reason for its place.
    pub rule: Rule,
}

/// The policies that held for an app context, explicit or by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppMap {
    /// Its first rank.
    pub first_rank: u32,
    /// How many it has.
    pub procs: u32,
    /// How it was mapped.
    pub map: MapBy,
    /// Across all nodes as one.
    pub span: bool,
    /// How it was numbered.
    pub rank: RankBy,
    /// The objects that its ranks were to be bound to.
    pub bind: BindTo,
    /// How many CPUs each rank was to get.
    pub pe: u32,
    /// Whether hardware threads rather than cores counted as CPUs.
    pub hwthreads: bool,
}

/// The load that a job puts on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLoad {
    /// An index into the nodes given to [`map_job`].
    pub node: u32,
    /// The slots that it has, stated or one for each CPU.
    pub slots: u32,
    /// How many CPUs it has for this job.
    pub cpus: u32,
    /// How many ranks of this job it got.
    pub procs: u32,
    /// There are more ranks, including those of other jobs, than slots.
    pub oversubscribed: bool,
}

/// The reason for a rank's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The reason for its node.
    pub node: NodeRule,
    /// The object that was next in turn there.
    pub object: Option<(Level, u32)>,
    /// The reason for its CPUs.
    pub cpus: CpuRule,
}

/// The reason for a rank's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRule {
    /// It has this slot of so many, from 1.
    Slot { slot: u32, of: u32 },
    /// All slots were taken, and the rest was spread evenly: its number among the rest, from 1.
    Beyond { extra: u32 },
    /// Its number among the ranks of its object, from 1.
    PerResource { index: u32, of: u32 },
    /// This line of a file named the node.
    Line(u32),
    /// The position of its host in the list, from 1.
    Turn(u32),
}

/// The reason for a rank's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuRule {
    /// It was not to be bound.
    Unbound,
    /// It was to be bound, but the node has more ranks than CPUs.
    Crowded,
    /// It was to be bound if possible, and was not.
    Unsupported,
    /// The first object of this level with a free CPU.
    Free(Level),
    /// The first free CPUs, and their number.
    Cpus(u32),
    /// No CPU was free, and sharing is allowed: the object with the fewest ranks.
    Shared(Level),
    /// A file named them.
    Named,
    /// It may use all CPUs of `--cpu-set`.
    CpuSet,
}

impl NodeResources {
    /// A node without ranks and without stated slots.
    pub fn new(name: impl Into<String>, topology: Arc<Topology>) -> NodeResources {
        NodeResources {
            name: name.into(),
            called: None,
            slots: Slots::Unstated,
            max_slots: None,
            topology,
            numbers: Ranges::new(),
            doubled: 0,
            busy: CpuSet::new(),
            launcher: false,
        }
    }

    /// How many ranks of other jobs run there.
    pub fn in_use(&self) -> u32 {
        self.numbers.count() + self.doubled
    }

    /// How many ranks may be there, for one that was placed by this policy.
    pub fn most(&self, policy: &Policy) -> u32 {
        let most = match (policy.map.oversubscribe, self.slots) {
            (Some(true), _) | (None, Slots::Unstated | Slots::Mentioned(_)) => u32::MAX,
            (Some(false) | None, Slots::Stated(slots)) => slots,
            (Some(false), Slots::Unstated | Slots::Mentioned(_)) => {
                let unit = defaults::unit(policy, std::slice::from_ref(self));
                self.topology.objects(unit).len() as u32
            }
        };
        self.max_slots.map_or(most, |max| most.min(max))
    }
}

/// Places every rank of a job. The job's `policy` holds for all app contexts without one of their own.
pub fn map_job(nodes: &[NodeResources], apps: &[AppRequest], policy: &Policy) -> Result<JobMap, MapError> {
    if nodes.is_empty() {
        return Err(MapError::NoNodes);
    }
    if apps.is_empty() {
        return Err(MapError::NoApps);
    }
    let mut job = slots::Job::new(nodes, apps, policy)?;
    let mut spreads = Vec::with_capacity(apps.len());
    for app in 0..apps.len() {
        spreads.push(spread::spread(&mut job, app)?);
    }
    let mut seats = seats::Seats::new(&job);
    let seated = spreads
        .iter()
        .enumerate()
        .map(|(app, spread)| seats.seat(app, spread))
        .collect::<Result<Vec<_>, _>>()?;
    let notes = seats.notes();
    order::number(&job, seated, notes)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            NodeRule::Slot { slot, of } => write!(f, "slot {slot} of {of}")?,
            NodeRule::Beyond { extra } => write!(f, "number {extra} beyond the slots")?,
            NodeRule::PerResource { index, of } => write!(f, "{index} of {of} per object")?,
            NodeRule::Line(line) => write!(f, "line {line} of the file")?,
            NodeRule::Turn(turn) => write!(f, "host {turn} of the list")?,
        }
        if let Some((level, number)) = self.object {
            write!(f, ", {level} {number}")?;
        }
        match self.cpus {
            CpuRule::Unbound => f.write_str(", not bound"),
            CpuRule::Crowded => f.write_str(", not bound: more ranks than CPUs"),
            CpuRule::Unsupported => f.write_str(", not bound: no such object is free"),
            CpuRule::Free(level) => write!(f, ", first {level} with a free CPU"),
            CpuRule::Cpus(count) => write!(f, ", first {count} free CPUs"),
            CpuRule::Shared(level) => write!(f, ", shared {level} with the fewest ranks"),
            CpuRule::Named => f.write_str(", CPUs as listed"),
            CpuRule::CpuSet => f.write_str(", all of --cpu-set"),
        }
    }
}

encoded!(struct JobMap { procs, apps, nodes, notes });
encoded!(struct Placement { rank, app, app_rank, node, local_rank, node_rank, cpus, rule });
encoded!(struct AppMap { first_rank, procs, map, span, rank, bind, pe, hwthreads });
encoded!(struct NodeLoad { node, slots, cpus, procs, oversubscribed });
encoded!(struct Rule { node, object, cpus });
encoded!(enum NodeRule {
    0 Slot { slot, of },
    1 Beyond { extra },
    2 PerResource { index, of },
    3 Line(line),
    4 Turn(turn),
});
encoded!(enum CpuRule {
    0 Unbound,
    1 Crowded,
    2 Unsupported,
    3 Free(level),
    4 Cpus(count),
    5 Shared(level),
    6 Named,
    7 CpuSet,
});

#[cfg(test)]
mod tests;
