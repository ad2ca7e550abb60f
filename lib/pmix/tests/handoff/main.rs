//! The handoff of work between threads in the engine, in every order of the threads: `loom` plays each scenario once for each
//! order, and finds those in which a thread waits for ever.
//!
//! The files under test are the library's own. The synchronization that they use is replaced by models (`sync.rs`, `bell.rs`,
//! `epoll.rs`). The host's answers (`Done`) and the program's calls go through the same queue.

#![allow(clippy::unwrap_used)]

mod bell;
mod epoll;
#[allow(dead_code)] // The engine uses the rest.
#[path = "../../src/engine/queue.rs"]
mod queue;
#[allow(dead_code)] // As above.
#[path = "../../src/engine/slot.rs"]
mod slot;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use epoll::Poller;
use queue::Queue;
use slot::{Reply, callback, slot};

/// Plays all orders with at most three preemptions.
fn in_every_order(scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(scenario);
}

/// Takes items from the queue, as the engine does, until there are so many.
fn take<T>(queue: &Queue<T>, count: usize) -> Vec<T> {
    let mut taken = Vec::new();
    while taken.len() < count {
        queue.bell().hear();
        taken.extend(queue.take());
    }
    taken
}

fn never() -> bool {
    false
}

#[test]
fn all_pushed_items_are_heard_and_taken() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new(8).unwrap());
        let pushers = [10, 20].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(first, never).unwrap();
                queue.push_now(first + 1).unwrap();
            })
        });
        let mut taken = take(&queue, 4);
        let is_before = |a, b| taken.iter().position(|n| *n == a) < taken.iter().position(|n| *n == b);
        assert!(is_before(10, 11) && is_before(20, 21), "{taken:?}");
        taken.sort_unstable();
        assert_eq!(taken, [10, 11, 20, 21]);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    });
}

#[test]
fn threads_that_wait_for_room_get_it() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new(1).unwrap());
        let pushers = [1, 2].map(|number| {
            let queue = queue.clone();
            thread::spawn(move || queue.push(number, never).unwrap())
        });
        let mut taken = take(&queue, 2);
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    });
}

#[test]
fn a_roused_thread_stops_waiting_for_room() {
    in_every_order(|| {
        let queue = Arc::new(Queue::new(1).unwrap());
        let gives_up = Arc::new(AtomicBool::new(false));
        queue.push_now(0).unwrap();
        let pusher = {
            let (queue, gives_up) = (queue.clone(), gives_up.clone());
            thread::spawn(move || queue.push(1, || gives_up.load(Ordering::Acquire)))
        };
        gives_up.store(true, Ordering::Release);
        queue.rouse(|_| {});
        assert_eq!(pusher.join().unwrap(), Ok(()));
        assert_eq!(queue.take(), [0, 1]);
    });
}

#[test]
fn a_call_is_answered_through_the_queue() {
    in_every_order(|| {
        let queue = Arc::new(Queue::<Reply<u32>>::new(1).unwrap());
        let caller = {
            let queue = queue.clone();
            thread::spawn(move || {
                let (reply, wait) = slot();
                assert!(queue.push(reply, never).is_ok());
                wait.wait(never).ok().unwrap()
            })
        };
        take(&queue, 1).into_iter().for_each(|reply| reply.send(5));
        assert_eq!(caller.join().unwrap(), Some(5));
    });
}

#[test]
fn callers_do_not_wait_for_an_engine_that_ends() {
    in_every_order(|| {
        let queue = Arc::new(Queue::<Reply<u32>>::new(1).unwrap());
        let callers = [(); 2].map(|()| {
            let queue = queue.clone();
            thread::spawn(move || {
                let (reply, wait) = slot();
                drop(queue.push(reply, never));
                wait.wait(never).ok().unwrap()
            })
        });
        queue.close();
        // A thread that listens to it learns that it is closed.
        queue.bell().hear();
        assert!(queue.is_closed() && queue.is_empty());
        for caller in callers {
            assert_eq!(caller.join().unwrap(), None);
        }
    });
}

#[test]
fn a_host_answers_once_whether_the_engine_lives_or_not() {
    in_every_order(|| {
        let queue = Arc::new(Queue::<Reply<u32>>::new(8).unwrap());
        let (told, hears) = std::sync::mpsc::channel();
        let host = {
            let queue = queue.clone();
            thread::spawn(move || {
                // The callback runs, whether the item is taken or not.
                let answer = callback(move |answer| told.send(answer).unwrap());
                queue.push_now(answer).is_ok()
            })
        };
        queue.take().into_iter().for_each(|answer| answer.send(1));
        queue.close();
        host.join().unwrap();
        assert_eq!(hears.iter().count(), 1);
    });
}

#[test]
fn a_sleeper_that_is_roused_loses_no_answer() {
    in_every_order(|| {
        let queue = Arc::new(Queue::<Reply<u32>>::new(1).unwrap());
        let gives_up = Arc::new(AtomicBool::new(false));
        let caller = {
            let (queue, gives_up) = (queue.clone(), gives_up.clone());
            thread::spawn(move || {
                let (reply, wait) = slot();
                assert!(queue.push(reply, never).is_ok());
                match wait.wait(|| gives_up.load(Ordering::Acquire)) {
                    Ok(answer) => answer,
                    // It makes progress itself from here on, and finds its own order if no other thread has.
                    Err(wait) => {
                        queue.take().into_iter().for_each(|reply| reply.send(5));
                        wait.wait(never).ok().unwrap()
                    }
                }
            })
        };
        gives_up.store(true, Ordering::Release);
        queue.rouse(Reply::rouse);
        assert_eq!(caller.join().unwrap(), Some(5));
    });
}

#[test]
fn a_receiver_is_interrupted_by_its_answer() {
    in_every_order(|| {
        let (reply, wait) = slot();
        let poller = Arc::new(Poller::new());
        let receiver = thread::spawn(move || {
            let mut wait = wait;
            loop {
                if wait.interrupts(&poller) {
                    poller.wait();
                }
                wait.is_awake();
                wait = match wait.try_take() {
                    Ok(answer) => return answer,
                    Err(wait) => wait,
                };
            }
        });
        reply.send(5);
        assert_eq!(receiver.join().unwrap(), Some(5));
    });
}

#[test]
fn one_that_pauses_wakes_for_its_answer_or_its_end() {
    in_every_order(|| {
        let (reply, wait) = slot::<u32>();
        let (other, gone) = slot::<u32>();
        let caller = thread::spawn(move || {
            [wait, gone].map(|mut wait| {
                loop {
                    wait = match wait.try_take() {
                        Ok(answer) => return answer,
                        Err(wait) => wait,
                    };
                    wait.pause(Duration::MAX);
                }
            })
        });
        reply.send(5);
        drop(other);
        assert_eq!(caller.join().unwrap(), [Some(5), None]);
    });
}
