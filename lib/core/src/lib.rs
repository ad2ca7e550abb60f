//! What each PMIx role does with a message: pure state machines of the client, the server and the tool.
//!
//! Nothing here owns a descriptor, a thread or a clock, blocks, or calls user code. A shell (the library's progress thread,
//! our daemon, a simulation) feeds [`Input`]s and carries out [`Output`]s.
#![forbid(unsafe_code)]

pub mod base64;
pub mod calendar;
pub mod client;
pub mod explain;
pub mod host;
pub mod job;
mod machine;
pub mod output;
mod qualified;
mod right;
pub mod server;
pub mod server_process;
mod stop;
pub mod store;
pub mod support;
pub mod tool;

pub use client::{
    Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn, InitError, NewJob, UNASKED, UNTOLD,
    Verdict,
};
pub use explain::Waiting;
pub use host::{Event, GroupFormed, HostOp, HostReply};
pub use job::{JobApp, JobInfo, JobNode, JobProc, Rows, Table};
pub use machine::{
    CallId, CloseReason, ConnId, DeliveryId, FileLook, HandlerId, HostCall, Input, Machine, Outbox, Output,
    PeerCred, Time,
};
pub use qualified::opened as opened_qualified;
pub use right::{Right, Rights};
pub use server::{ModexForm, Server, ServerCall, ServerConfig, ServerReturn};
pub use server_process::{ServerProcess, ServerProcessCall, ServerProcessReturn};
pub use store::{Lookup, LookupRequest, OpenCollected, Realm, Store};
pub use tool::{Attached, AttachedServer, Attempt, Tool, ToolCall, ToolConfig, ToolReturn};
