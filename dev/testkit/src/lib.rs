//! The simulated world: many nodes, virtual time, one thread.
//!
//! A [`World`] holds any number of [`phalanx_dvm::Node`]s, the links between them, the processes that they start and the
//! user. Everything random comes from one seed, so a failure can be repeated by its number. Nothing here sleeps:
//! time jumps from one event to the next.
//!
//! Processes follow a [`Script`]. They reach their node's server either through [`scripted::ScriptedServer`], which
//! answers at the level of upcalls and makes thousands of nodes cheap, or through a real server and real bytes.

mod agents;
mod files;
mod modex;
mod net;
mod process;
mod random;
pub mod script;
pub mod scripted;
mod user;
pub mod wired;
mod world;

pub use agents::{Agents, Mishap};
pub use modex::Shelf;
pub use process::Fate;
pub use random::Random;
pub use script::{Op, RankAnswer, RankServer, Script, Step};
pub use user::{Stream, User};
pub use world::{Setup, World};
