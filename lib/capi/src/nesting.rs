//! Bounds how deeply values of programs may be nested, as the decoder of the other side does.

use std::cell::Cell;

use phalanx_spec::Status;
use phalanx_wire::codec::MAX_DEPTH;

use crate::guard::BAD;

thread_local! {
    /// The number of values around the one that this thread reads.
    static DEPTH: Cell<u8> = const { Cell::new(0) };
}

/// Reads what is inside of a value.
pub(crate) fn deeper<T>(read: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    if DEPTH.get() == MAX_DEPTH {
        return Err(BAD);
    }
    DEPTH.set(DEPTH.get() + 1);
    let _level = Level;
    read()
}

/// Is left also when reading panics.
struct Level;

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
