//! What processes and nodes use, as the kernels of their nodes tell. The shell looks; queries hand it on.

use crate::encoding::encoded;
use std::time::Duration;

/// What a node has seen when it was asked to look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Bytes that the daemon has in memory.
    pub daemon: Option<u64>,
    pub node: Option<NodeUsage>,
    /// By rank: those that could be looked at.
    pub procs: Vec<(u32, Usage)>,
}

/// Of one process. Sizes are in bytes, moments in seconds since the beginning of 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub resident: u64,
    /// What it may address, now and at most.
    pub size: u64,
    pub most_size: u64,
    /// Of processors, since its start.
    pub time: Duration,
    /// Since its start.
    pub age: Duration,
    /// The kernel's letter for its state.
    pub state: char,
    pub priority: i32,
    pub threads: u16,
    /// Where it ran last.
    pub cpu: u16,
    pub seen: u64,
}

/// Of one node, in the same units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUsage {
    /// Over one, five and fifteen minutes.
    pub load: [f32; 3],
    pub memory: u64,
    pub free: u64,
    pub buffers: u64,
    pub cached: u64,
    pub swap: u64,
    pub swap_free: u64,
    pub swap_cached: u64,
    pub seen: u64,
}

encoded!(struct Usage { resident, size, most_size, time, age, state, priority, threads, cpu, seen });
encoded!(struct NodeUsage { load, memory, free, buffers, cached, swap, swap_free, swap_cached, seen });
