//! Synchronization primitives. `tests/handoff` compiles the files that use it against a model of these instead.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
