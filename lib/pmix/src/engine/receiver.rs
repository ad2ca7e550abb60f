//! A caller that waits for its answer receives meanwhile, on its own thread: to wake ours, which then wakes the caller, takes
//! longer than all the rest of a call.
//!
//! One caller at a time is the receiver. During that time our thread listens only to the bell, and other waiting callers
//! sleep. The receiver leaves deliveries to callbacks, and the answers that come behind them, to our thread, and stops
//! receiving: at most one turn's input can pile up. If another thread produces the receiver's answer (our thread on a
//! timeout, a thread that closes the engine), it interrupts the receiver.
//!
//! Two epolls, one inside the other, hand the role over: our thread waits on the outer one, and the outer one does not watch the inner one
//! while a caller receives. Servers of hosts receive on our thread only.

use std::sync::MutexGuard;

use super::progress::{Progress, Shared, Unmade, lock};
use super::slot::{Reply, Wait};
use super::{Role, thread};

pub(super) type Held<'a, M> = MutexGuard<'a, Option<Box<Progress<M>>>>;

/// How far a call has come.
pub(super) enum Made<M: Role> {
    /// None: the engine has ended.
    Answered(Option<M::Return>),
    /// Another thread receives, or none does.
    Waits(Wait<M::Return>),
    /// Its turn has not come.
    Not(Unmade<M>, Wait<M::Return>),
}

/// Makes a call, and waits for its answer as long as this thread receives.
pub(super) fn call<M: Role>(
    shared: &Shared<M>,
    call: M::Call,
    (reply, wait): (Reply<M::Return>, Wait<M::Return>),
) -> Made<M> {
    let me = thread::identity();
    let mut held = lock(shared);
    let Some(progress) = held.as_mut() else { return Made::Answered(None) };
    // A signal handler may call in the middle of a wait, which goes on when the handler returns.
    let is_nested = progress.is_received_by(me);
    if let Err(unmade) = progress.visit(call, Some(reply), Some(me)) {
        return Made::Not(unmade, wait);
    }
    if !progress.is_received_by(me) {
        progress.leave();
    }
    let mut wait = wait;
    while let Some(progress) = held.as_mut().filter(|progress| progress.is_received_by(me)) {
        match wait.try_take() {
            Ok(answer) => {
                match is_nested {
                    true => progress.interrupt_receiver(),
                    false => progress.end_receiving(),
                }
                return Made::Answered(answer);
            }
            Err(still) => wait = still,
        }
        if !progress.may_be_received_by(me) {
            progress.end_receiving();
            break;
        }
        let (poller, longest) = progress.rest_of_receiver();
        drop(held);
        let ready = match wait.interrupts(&poller) {
            true => poller.wait(longest),
            false => Ok(Vec::new()),
        };
        held = lock(shared);
        wait.is_awake();
        if let Some(progress) = held.as_mut().filter(|progress| progress.is_received_by(me)) {
            progress.received(ready);
        }
    }
    drop(held);
    Made::Waits(wait)
}
