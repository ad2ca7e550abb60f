//! Where a blocked caller waits for its answer.
//!
//! [`slot`] makes the two ends. The answering end is affine: it is used once, and dropping it unused tells the caller that no
//! answer will come, so nobody can be forgotten.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Both ends of a new slot.
pub(super) fn slot<T>() -> (Reply<T>, Wait<T>) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Waiting), changed: Condvar::new() });
    (Reply { slot: slot.clone(), used: false }, Wait { slot })
}

struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    Waiting,
    Answered(T),
    Abandoned,
}

/// The end that answers.
pub(crate) struct Reply<T> {
    slot: Arc<Slot<T>>,
    used: bool,
}

/// The end that waits.
pub(super) struct Wait<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Reply<T> {
    pub(super) fn send(mut self, answer: T) {
        self.end(State::Answered(answer));
    }

    fn end(&mut self, state: State<T>) {
        self.used = true;
        *self.slot.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.slot.changed.notify_one();
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if !self.used {
            self.end(State::Abandoned);
        }
    }
}

impl<T> Wait<T> {
    /// None: the other end is gone. Waits for as long as it takes; whoever answers knows the deadline.
    pub(super) fn wait(self) -> Option<T> {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match std::mem::replace(&mut *state, State::Waiting) {
                State::Answered(answer) => return Some(answer),
                State::Abandoned => return None,
                State::Waiting => {}
            }
            state = self.slot.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_wakes_the_caller() {
        let (reply, wait) = slot();
        let caller = std::thread::spawn(move || wait.wait());
        reply.send(5);
        assert_eq!(caller.join().unwrap(), Some(5));
    }

    #[test]
    fn an_answer_may_be_there_first() {
        let (reply, wait) = slot();
        reply.send(5);
        assert_eq!(wait.wait(), Some(5));
    }

    #[test]
    fn who_is_forgotten_is_told() {
        let (reply, wait) = slot::<u32>();
        let caller = std::thread::spawn(move || wait.wait());
        drop(reply);
        assert_eq!(caller.join().unwrap(), None);
    }
}
