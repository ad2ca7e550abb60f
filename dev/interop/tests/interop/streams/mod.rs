//! Output and input of ranks: read by users and tools, kept, written to files.

mod detached;
mod iof;
mod killed_tools;
mod loads;
mod spawned;
mod spawned_output;
