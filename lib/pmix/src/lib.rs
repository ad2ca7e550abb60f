//! PMIx for Rust programs: a process of a parallel job learns its identity and location, exchanges values with its peers,
//! synchronizes with them in fences, publishes and looks up values, raises and handles events.
//!
//! Everything goes through one [`Client`]. Calls block; they may be made from any thread. A get of a known value returns on
//! the calling thread without waking another, and a caller that has to wait for the server receives meanwhile. All else is
//! done by one thread of ours, which also runs event handlers; a handler must not block and cannot make blocking calls
//! ([`Error::OnProgressThread`]). That thread begins when it is needed, and inherits the attributes of the calling thread,
//! such as its CPU affinity.
//!
//! The server belongs to the launcher: `px run`, or any launcher that supports OpenPMIx's protocol. Without one the process
//! is a job of its own.
//!
//! ```no_run
//! use pmix::{Client, Info, InfoList, Scope, keys};
//!
//! fn main() -> Result<(), pmix::Error> {
//!     let client = Client::init()?;
//!     let size = client.get_job(keys::JOB_SIZE)?.as_u32().unwrap_or(1);
//!     let me = client.proc();
//!
//!     client.put(Scope::GLOBAL, "example.greeting", format!("hello from {}", me.rank))?;
//!     client.commit()?;
//!     client.fence(&[], &[Info::new(keys::COLLECT_DATA, true)])?;
//!
//!     let neighbour = client.peer((me.rank.0 + 1) % size);
//!     let greeting = client.get(&neighbour, "example.greeting", &[])?;
//!     println!("{me} of {size} got \"{}\"", greeting.as_str().unwrap_or_default());
//!     client.finalize(&[])
//! }
//! ```
//!
//! Signals, the environment, the working directory and exit handlers of the process are left alone. A forked child cannot use
//! the client of its parent ([`Error::Forked`]), but may have one of its own.

mod client;
mod data;
mod engine;
mod environ;
mod error;
mod forked;
mod maps;
pub mod screen;
pub mod server;
mod shown;
mod support;
pub mod tool;
mod topology;

pub use client::Client;
pub use data::{pack, unpack};
pub use engine::{Drive, EventDone, Explanation, OutputDone, PROGRESS_THREAD};
pub use error::Error;
pub use forked::process_id;
pub use maps::{generate_ppn, generate_regex};
pub use screen::Screen;
pub use server::{Done, Host, Server, ServerOptions};
pub use shown::Showing;
pub use tool::Tool;

pub use phalanx_shell::{TRUST_USER, Trust};

pub use topology::{cpuset_string, device_distances, locality_string, process_cpus, thread_cpus, topology};

pub use phalanx_core::{
    AttachedServer, ClientCall, ClientReturn, Event, GroupFormed, HandlerId, InitError, JobApp, JobInfo,
    JobNode, JobProc, Lookup, LookupRequest, NewJob, Time, Verdict, Waiting,
};
pub use phalanx_spec::{AllocDirective, DataType, IofChannel, Range, Rank, Scope, Status, keys};
pub use phalanx_topo::{CpuSet, Topology};
pub use phalanx_wire::{
    App, Blob, DataArray, Envar, Info, InfoFlags, InfoList, Key, Kval, Nspace, Pdata, ProcId, Query,
    ResourceUnit, Text, Value,
};
