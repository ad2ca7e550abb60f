//! A caller that waits for its answer receives meanwhile, on its own thread: to wake ours, which then wakes the caller, takes
//! longer than all the rest of a call.
//!
//! One caller at a time is the receiver. While it is, our thread hears only the bell, and others who wait sleep. What a
//! callback is to be told, and the answers that come behind it, the receiver leaves to our thread, and receives no more: what
//! can pile up is what one turn reads. Whoever else finds the receiver's answer (our thread when time is up, who closes the
//! engine) interrupts it.

use std::sync::MutexGuard;

use super::progress::{Progress, Shared, lock};
use super::slot::Wait;
use super::{Role, thread};

pub(super) type Held<'a, M> = MutexGuard<'a, Option<Box<Progress<M>>>>;

/// Waits for the answer to a call that has been made with this in hand. None: the engine has ended.
pub(super) fn answer<M: Role, T>(shared: &Shared<M>, held: Held<'_, M>, wait: Wait<T>) -> Option<T> {
    let me = thread::identity();
    let (mut held, mut wait) = (held, wait);
    // A signal handler may call from in the middle of a wait, which goes on when the handler returns.
    let is_nested = held.as_ref().is_some_and(|progress| progress.is_received_by(me));
    let mut receives = is_nested;
    while let Some(progress) = held.as_mut().filter(|progress| !receives || progress.is_received_by(me)) {
        match wait.try_take() {
            Ok(answer) => {
                match (is_nested, receives) {
                    (true, _) => progress.interrupt_receiver(),
                    (false, true) => progress.end_receiving(),
                    (false, false) => progress.leave(),
                }
                return answer;
            }
            Err(still) => wait = still,
        }
        if !progress.may_be_received_by(me) {
            match receives {
                true => progress.end_receiving(),
                false => progress.leave(),
            }
            break;
        }
        receives = true;
        let (poller, longest) = progress.begin_receiving(me);
        drop(held);
        let ready = match wait.interrupts(&poller) {
            true => poller.wait(longest),
            false => Ok(Vec::new()),
        };
        held = lock(shared);
        if let Some(progress) = held.as_mut().filter(|progress| progress.is_received_by(me)) {
            progress.received(ready);
        }
    }
    drop(held);
    wait.wait()
}
