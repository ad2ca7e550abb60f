//! Tools, foreign and ours: connections, services and the commands of `px`.

mod commands;
mod connections;
mod debugger;
mod lifecycle;
mod local;
mod own;
mod peers;
mod refusals;
mod remote;
mod shown;
mod stacks;
mod top;
