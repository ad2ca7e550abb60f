//! What threads exclude and wake each other with. `tests/handoff` has the files that use it run on a model of these instead.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
