//! Notices that a job elsewhere is about to end while its output is not being read: the event of its end is then queued behind that output.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use std::{iter, thread};

use phalanx_wire::Nspace;
use pmix::Tool;

use super::{MOST_WAITING, Shared, ending};

/// Runs until the job has ended or is known to end.
pub(super) fn watch(tool: Arc<Tool>, shared: Arc<Shared>, nspace: Nspace, limit: Option<Duration>) {
    let over_at = limit.and_then(|limit| Instant::now().checked_add(limit));
    thread::spawn(move || {
        for full in iter::from_fn(|| shared.fullness()) {
            let is_over = over_at.is_some_and(|at| Instant::now() >= at);
            if full && (is_over || shared.urgently(|| ending::has_ended(&tool, &nspace))) {
                return shared.tell_ending();
            }
        }
    });
}

impl Shared {
    /// Whether output has waited in vain for a while; none once nothing more comes.
    fn fullness(&self) -> Option<bool> {
        let state = self.state();
        let taken = state.taken;
        let open = |state: &mut super::Received| !state.over;
        let waited = self.changed.wait_timeout_while(state, AWHILE, open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.over).then_some(state.bytes >= MOST_WAITING && state.taken == taken)
    }

    fn tell_ending(&self) {
        self.state().ending = true;
        self.ending.notify_one();
    }

    /// Makes a call to the server; its answer must not wait for output to be taken.
    fn urgently<T>(&self, call: impl FnOnce() -> T) -> T {
        self.state().urgent += 1;
        self.changed.notify_all();
        let answer = call();
        self.state().urgent -= 1;
        answer
    }
}

const AWHILE: Duration = Duration::from_millis(500);
