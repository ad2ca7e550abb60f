//! The hosts that a DVM is to have besides the one that it begins on, and the commands that start a daemon there.

use std::sync::Arc;

use phalanx_wire::Text;

use crate::hosts::Slots;

/// The daemons that a root is to start. An empty fleet is a DVM of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// They become nodes 1, 2, ... in this order.
    pub hosts: Vec<FarHost>,
    /// Each host is started by one of these.
    pub agents: Vec<Agent>,
    /// Environment of the agents, complete: `NAME=VALUE`.
    pub env: Vec<Text>,
    /// The allocation of a batch system that the hosts belong to, if it can be asked for.
    pub allocation: Option<Allocation>,
    /// A host with a daemon that does not come up is left out and reported; otherwise it ends the start.
    pub skip_bad: bool,
}

/// An allocation of a batch system.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// `Slurm allocation 7`
    pub name: String,
    /// The command that shows its state, as `scontrol --oneliner show job` does.
    pub ask: Vec<Text>,
}

/// Another host.
#[derive(Clone, Debug, PartialEq)]
pub struct FarHost {
    /// The user's name for it. It may be the host of the root.
    pub name: Arc<str>,
    pub slots: Slots,
    pub max_slots: Option<u32>,
}

/// A command that runs `px daemon` on hosts, and connects its own standard input and output to theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// If it has several hosts, [`HOSTS`] in its words stands for their names, as a list with ranges, and [`COUNT`] for their number.
    pub argv: Vec<Text>,
    /// The hosts, by index in [`Fleet::hosts`]. If there are several, they read the same input.
    pub hosts: Vec<usize>,
    /// Each line that the host at index `K` of this list writes begins with `K: `, as with `srun --label`.
    pub labels: bool,
}

pub const HOSTS: &str = "{hosts}";
pub const COUNT: &str = "{count}";
