//! The client's calls, a file per verb. Blocking ones wait on the calling thread; the others answer on the progress thread.

mod abort;
pub(crate) mod calls;
mod commit;
mod connect_procs;
mod control;
mod event;
mod fence;
pub(crate) mod get;
mod init;
mod log;
mod monitor;
mod publish;
mod query;
mod resolve;
mod spawn;
