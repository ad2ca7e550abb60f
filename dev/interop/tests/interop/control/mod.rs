//! Job control and monitoring of programs on foreign libraries.

mod logs;
mod monitor;
mod restarts;
mod suspended;
