//! Where a blocked caller waits for its answer, or the callback that runs instead if it does not block.
//!
//! [`slot`] makes the two ends. The answering end is affine: it is used once, and dropping it unused informs the caller that
//! no answer will come, so that no caller can be forgotten.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::epoll::Poller;
use super::sync::{Condvar, Mutex};

/// Both ends of a new slot.
pub(super) fn slot<T>() -> (Reply<T>, Wait<T>) {
    let slot =
        Arc::new(Slot { state: Mutex::new(SlotState::Waiting(Caller::Awake)), changed: Condvar::new() });
    (Reply { to: Some(Answered::Waiting(slot.clone())), before: None }, Wait { slot })
}

/// An answering end that runs this callback, with `None` if the end is dropped unused.
pub(super) fn callback<T>(run: impl FnOnce(Option<T>) + Send + 'static) -> Reply<T> {
    Reply { to: Some(Answered::Callback(Box::new(run))), before: None }
}

struct Slot<T> {
    state: Mutex<SlotState<T>>,
    changed: Condvar,
}

enum SlotState<T> {
    Waiting(Caller),
    Answered(T),
    Abandoned,
}

/// The state of the waiting caller, which decides how to wake it.
enum Caller {
    Awake,
    Asleep,
    /// Waits for input of its engine, in which its answer may be.
    Receiving(Arc<Poller>),
}

/// The end that answers.
pub(crate) struct Reply<T> {
    to: Option<Answered<T>>,
    /// Runs before the caller has the answer.
    before: Option<Before<T>>,
}

type Before<T> = Box<dyn FnOnce(&T) + Send>;

enum Answered<T> {
    Waiting(Arc<Slot<T>>),
    Callback(Box<dyn FnOnce(Option<T>) + Send>),
}

/// The end that waits.
pub(super) struct Wait<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Reply<T> {
    pub(super) fn send(mut self, answer: T) {
        if let Some(before) = self.before.take() {
            before(&answer);
        }
        self.end(Some(answer));
    }

    /// The same end; answering runs this first.
    pub(super) fn after(mut self, before: impl FnOnce(&T) + Send + 'static) -> Reply<T> {
        self.before = Some(Box::new(before));
        self
    }

    /// Whether answering runs a callback.
    pub(super) fn is_callback(&self) -> bool {
        matches!(self.to, Some(Answered::Callback(_))) || self.before.is_some()
    }

    /// Makes a sleeping caller recheck whether it should still sleep.
    pub(super) fn rouse(&self) {
        if let Some(Answered::Waiting(slot)) = &self.to {
            let _state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
            slot.changed.notify_one();
        }
    }

    /// Ends without an answer.
    pub(super) fn forget(mut self) {
        self.to = None;
    }

    fn end(&mut self, answer: Option<T>) {
        match self.to.take() {
            Some(Answered::Waiting(slot)) => {
                let answer = answer.map_or(SlotState::Abandoned, SlotState::Answered);
                let mut state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
                let before = std::mem::replace(&mut *state, answer);
                drop(state);
                match before {
                    SlotState::Waiting(Caller::Asleep) => slot.changed.notify_one(),
                    SlotState::Waiting(Caller::Receiving(poller)) => poller.interrupt(),
                    SlotState::Waiting(Caller::Awake) | SlotState::Answered(_) | SlotState::Abandoned => {}
                }
            }
            Some(Answered::Callback(run)) => run(answer),
            None => {}
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl<T> Wait<T> {
    /// The answer, if it has come (or None if it never will); otherwise the waiting end.
    pub(super) fn try_take(self) -> Result<Option<T>, Wait<T>> {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = match std::mem::replace(&mut *state, SlotState::Waiting(Caller::Awake)) {
            SlotState::Answered(answer) => Some(Some(answer)),
            SlotState::Abandoned => Some(None),
            SlotState::Waiting(_) => None,
        };
        drop(state);
        taken.ok_or(self)
    }

    /// From here on, until `is_awake`, an answer interrupts this poller. False: there is an answer already.
    pub(super) fn interrupts(&self, poller: &Arc<Poller>) -> bool {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = matches!(*state, SlotState::Waiting(_));
        if waits {
            *state = SlotState::Waiting(Caller::Receiving(poller.clone()));
        }
        waits
    }

    pub(super) fn is_awake(&self) {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let SlotState::Waiting(caller) = &mut *state {
            *caller = Caller::Awake;
        }
    }

    /// Waits for the answer, at most this long.
    pub(super) fn pause(&self, longest: Duration) {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let SlotState::Waiting(caller) = &mut *state {
            *caller = Caller::Asleep;
        }
        let waits = |state: &mut SlotState<T>| matches!(state, SlotState::Waiting(_));
        // A poisoned lock means that the caller will find the cause.
        let _ = self.slot.changed.wait_timeout_while(state, longest, waits);
    }

    /// None: the other end is gone. Waits without a limit; the answering end knows the deadline. Returns the waiting end when
    /// there is no answer and `gives_up` tells the caller to do something else.
    pub(super) fn wait(self, gives_up: impl Fn() -> bool) -> Result<Option<T>, Wait<T>> {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match std::mem::replace(&mut *state, SlotState::Waiting(Caller::Asleep)) {
                SlotState::Answered(answer) => return Ok(Some(answer)),
                SlotState::Abandoned => return Ok(None),
                SlotState::Waiting(_) if gives_up() => {
                    *state = SlotState::Waiting(Caller::Awake);
                    drop(state);
                    return Err(self);
                }
                SlotState::Waiting(_) => {}
            }
            state = self.slot.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
