//! What a distributed virtual machine (DVM) decides, without touching the operating system.
//!
//! One [`Node`] per daemon: it holds this node's part of every job and its PMIx server, and exchanges [`Msg`]s with its
//! neighbours in a tree. A shell feeds [`Input`]s and carries out [`Effect`]s; the simulated world does so for thousands.
#![forbid(unsafe_code)]

mod boot;
mod cargo;
mod cleanup;
mod column;
mod config;
mod control;
mod daemon;
mod dmodex;
mod effect;
mod ended;
mod ending;
mod environment;
mod event;
mod fence;
mod gather;
mod host;
pub mod hosts;
mod id;
mod inspect;
mod iof;
mod job;
mod launch;
pub mod map;
mod models;
mod msg;
mod node;
mod overlay;
mod procs;
mod ranges;
mod report;
mod root;
mod signals;
mod spawn;
mod stdin;
mod survey;
mod timers;
mod tool;
pub mod words;

pub use cargo::Msg;
pub use config::{Limits, NodeConfig};
pub use effect::{Effect, Input, ProcStart, StdinPlan};
pub use ending::{WITHOUT_PMIX_HINT, without_pmix};
pub use id::NodeId;
pub use job::{AppSpec, JobEnd, JobRequest, JobVerdict};
pub use msg::{
    Cleanup, CleanupRequest, Control, DirectoryRules, EnvChange, ExitStatus, FailurePolicy, LEAST_CHARGE,
    Measured, MpiLibrary, NodeUsage, ProcEnd, SpawnFailure, SpawnStep, StdinTarget, Survey, Usage, charge,
};
pub use node::Node;
pub use overlay::{Hop, Tree};
pub use ranges::Ranges;
pub use report::{Placed, Report};
pub use root::query::names;
