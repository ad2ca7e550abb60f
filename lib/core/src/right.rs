//! The right to answer a request: a value that is used once.
//!
//! A right cannot be copied, and using it takes it by value. One that is dropped unused is a defect, which is noticed by the
//! machine that made it: debug builds stop at it, others answer with `PMIX_ERROR`, so that no requester waits for ever. Rights
//! may be dropped on any thread; a machine learns of those that were dropped before it looks.

use std::sync::mpsc::{Receiver, Sender, channel};

/// The right to give one answer to `T`.
#[must_use = "a requester waits for the answer"]
#[derive(Debug)]
pub struct Right<T: Copy> {
    to: T,
    /// Where a drop is reported; none once the right has been used.
    on_drop: Option<Sender<T>>,
}

/// Makes rights, and learns of each one that was dropped unused.
#[derive(Debug)]
pub struct Rights<T: Copy> {
    dropped: Receiver<T>,
    on_drop: Sender<T>,
}

impl<T: Copy> Right<T> {
    /// For stand-ins of machines, which do not notice a drop.
    pub const fn unobserved(to: T) -> Right<T> {
        Right { to, on_drop: None }
    }

    pub const fn to(&self) -> T {
        self.to
    }

    /// Uses the right: the answer is given, or the requester no longer waits for one.
    pub fn use_up(mut self) -> T {
        self.on_drop = None;
        self.to
    }
}

impl<T: Copy> Drop for Right<T> {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            // Fails if the machine itself is gone.
            let _ = on_drop.send(self.to);
        }
    }
}

impl<T: Copy> Rights<T> {
    pub fn make(&self, to: T) -> Right<T> {
        Right { to, on_drop: Some(self.on_drop.clone()) }
    }

    /// The next right that was dropped unused.
    pub fn next_dropped(&self) -> Option<T> {
        self.dropped.try_recv().ok()
    }
}

impl<T: Copy> Default for Rights<T> {
    fn default() -> Rights<T> {
        let (on_drop, dropped) = channel();
        Rights { dropped, on_drop }
    }
}

#[cfg(test)]
mod tests {
    use super::{Right, Rights};

    #[test]
    fn only_what_is_dropped_unused_is_noticed() {
        let rights = Rights::default();
        let (used, dropped, kept) = (rights.make(1), rights.make(2), rights.make(3));
        assert_eq!(used.use_up(), 1);
        drop(dropped);
        drop(Right::unobserved(4));
        assert_eq!(rights.next_dropped(), Some(2));
        assert_eq!(rights.next_dropped(), None);
        drop(kept);
        assert_eq!(rights.next_dropped(), Some(3));
    }
}
