//! The client's calls, one file per verb. Blocking ones wait on the calling thread; the others answer on the progress
//! thread.

mod abort;
pub(crate) mod calls;
mod commit;
mod connect;
mod credential;
mod event;
mod fabric;
mod fence;
mod forward;
pub(crate) mod get;
mod group;
mod init;
mod invite;
mod iof;
mod log;
mod monitor;
pub(crate) mod publish;
mod query;
mod resolve;
pub(crate) mod spawn;
pub(crate) mod topology;
