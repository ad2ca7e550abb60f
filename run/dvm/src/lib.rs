//! What a distributed virtual machine (DVM) decides, without touching the operating system.
//!
//! One [`Node`] per daemon: it holds this node's part of every job and its PMIx server, and exchanges [`Msg`]s with its
//! neighbours in a tree. A shell feeds [`Input`]s and carries out [`Effect`]s; the simulated world does so for thousands.
#![forbid(unsafe_code)]

mod effect;
pub mod hosts;
mod job;
pub mod map;
mod msg;

pub use effect::{Control, Effect, Input, ProcStart, Report, SpawnFailure, SpawnStep, StdinPlan};
pub use job::{AppSpec, ExitStatus, FailurePolicy, JobEnd, JobRequest, JobVerdict, ProcEnd, StdinTarget};
pub use msg::{Msg, NodeId};
