//! Records which engine a thread is inside of.

use std::cell::Cell;

thread_local! {
    /// Without a destructor, so that it does not pin the library.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// While it exists, the thread runs the engine of this identity.
pub(super) struct Inside {
    before: usize,
}

pub(super) fn enter(engine: usize) -> Inside {
    Inside { before: INSIDE.replace(engine) }
}

/// Whether that engine called this thread.
pub(super) fn is_inside(engine: usize) -> bool {
    INSIDE.get() == engine
}

/// Distinguishes this thread from all others that live: a handle of the standard library's would have a destructor.
pub(super) fn identity() -> usize {
    INSIDE.with(|inside| std::ptr::from_ref(inside).addr())
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}
