//! Resource usage of processes and nodes, as reported by their kernels. The shell measures; queries pass it on.

use crate::encoding::encoded;
use std::time::Duration;

/// What a node has measured on request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Bytes that the daemon has in memory.
    pub daemon: Option<u64>,
    pub node: Option<NodeUsage>,
    /// By rank: the processes that could be measured.
    pub procs: Vec<(u32, Usage)>,
}

/// The usage of one process. Sizes are in bytes, moments in seconds since the beginning of 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub resident: u64,
    /// Its address space, now and at most.
    pub size: u64,
    pub most_size: u64,
    /// Processor time, since its start.
    pub time: Duration,
    /// Since its start.
    pub age: Duration,
    /// The kernel's letter for its state.
    pub state: char,
    pub priority: i32,
    pub threads: u16,
    /// The CPU on which it ran last.
    pub cpu: u16,
    pub seen: u64,
}

/// The usage of one node, in the same units.
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
    /// The daemon's link to the one above it, for people.
    pub link: Option<String>,
}

encoded!(struct Usage { resident, size, most_size, time, age, state, priority, threads, cpu, seen });
encoded!(struct NodeUsage { load, memory, free, buffers, cached, swap, swap_free, swap_cached, seen, link });
