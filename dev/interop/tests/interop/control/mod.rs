//! Job control and monitoring of programs on foreign libraries.

mod monitor;
mod restarts;
mod suspended;
