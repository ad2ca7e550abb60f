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
mod debug;
mod desc;
mod descent;
mod dmodex;
mod effect;
mod ended;
mod ending;
mod environment;
mod errno;
mod event;
mod fence;
mod gather;
mod group;
mod history;
mod host;
pub mod hosts;
mod iof;
mod job;
mod launch;
mod log;
pub mod map;
mod models;
mod msg;
mod node;
mod overlay;
mod plan;
mod procs;
mod publish;
mod query;
mod ranges;
mod relations;
mod root;
mod spawn;
mod stdin;
mod survey;
mod survivors;
mod timers;
mod tool;
mod usage;
pub mod words;

pub use cargo::Msg;
pub use cleanup::{Cleanup, CleanupRequest, DirectoryRules};
pub use config::{Limits, NodeConfig};
pub use control::Control;
pub use effect::{Effect, Input, Placed, ProcStart, Report, SpawnFailure, SpawnStep, StdinPlan};
pub use environment::EnvChange;
pub use iof::{LEAST_CHARGE, charge};
pub use job::{AppSpec, ExitStatus, FailurePolicy, JobEnd, JobRequest, JobVerdict, ProcEnd, StdinTarget};
pub use node::Node;
pub use overlay::{Hop, NodeId, Tree};
pub use query::names;
pub use ranges::Ranges;
pub use survey::Survey;
pub use usage::{Measured, NodeUsage, Usage};
