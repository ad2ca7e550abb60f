//! What a distributed virtual machine (DVM) decides, without touching the operating system.
//!
//! One [`Node`] per daemon: it holds this node's part of every job and its PMIx server, and exchanges messages with its
//! neighbours in a tree. A shell feeds [`Input`]s and carries out [`Effect`]s; the simulated world does so for thousands.
#![forbid(unsafe_code)]

mod cargo;
mod column;
mod config;
mod daemon;
mod effect;
mod encoding;
mod ending;
mod environment;
mod fleet;
mod gate;
pub mod hosts;
mod id;
mod job;
mod local;
pub mod map;
mod models;
mod msg;
mod node;
mod overlay;
mod ranges;
mod report;
mod root;
mod signals;
pub mod spawn;
pub mod start;
mod timers;
pub mod words;

pub use config::{Limits, NodeConfig, Rules, Steer};
pub use effect::{Effect, Input, ProcStart, StdinPlan};
pub use ending::{WITHOUT_PMIX_HINT, without_pmix};
pub use environment::is_identity;
pub use fleet::{Agent, Allocation, COUNT, FarHost, Fleet, HOSTS};
pub use id::NodeId;
pub use job::{AppSpec, Ender, JobEnd, JobRequest, JobVerdict, Phases, ToolProcess, Waited};
pub use msg::{
    Cleanup, CleanupRequest, Control, DirectoryRules, EnvChange, ExitStatus, FailurePolicy, LEAST_CHARGE,
    LogLine, Measured, MpiLibrary, NodeUsage, PREEMPT, ProcEnd, STANDS_STILL, SpawnFailure, SpawnStep,
    StdinTarget, Survey, TaskId, Usage, charge,
};
pub use node::Node;
pub use overlay::{Hop, Tree};
pub use ranges::Ranges;
pub use report::{Placed, Report};
pub use root::query::names;
