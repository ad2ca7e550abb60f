//! The real slots of callers. `tests/handoff` checks all orders of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::slot::{callback, slot};

#[test]
fn an_answer_wakes_the_caller() {
    let (reply, wait) = slot();
    let caller = std::thread::spawn(move || wait.wait(|| false).ok().unwrap());
    reply.send(5);
    assert_eq!(caller.join().unwrap(), Some(5));
}

#[test]
fn an_answer_may_be_there_first() {
    let (reply, wait) = slot();
    reply.send(5);
    assert_eq!(wait.wait(|| false).ok().unwrap(), Some(5));
}

#[test]
fn callbacks_run_once_whatever_happens() {
    let (told, hears) = std::sync::mpsc::channel();
    let tell = |told: &std::sync::mpsc::Sender<_>| {
        let told = told.clone();
        callback(move |answer: Option<u32>| told.send(answer).unwrap())
    };
    tell(&told).send(5);
    drop(tell(&told));
    drop(told);
    assert_eq!(hears.iter().collect::<Vec<_>>(), [Some(5), None]);
}

#[test]
fn woken_sleeper_still_gets_its_answer() {
    let (reply, wait) = slot();
    let gives_up = Arc::new(AtomicBool::new(false));
    let caller = {
        let gives_up = gives_up.clone();
        std::thread::spawn(move || wait.wait(|| gives_up.load(Ordering::Relaxed)).err().unwrap())
    };
    reply.rouse();
    gives_up.store(true, Ordering::Relaxed);
    reply.rouse();
    let wait = caller.join().unwrap();
    reply.send(5);
    assert_eq!(wait.try_take().ok().unwrap(), Some(5));
}

#[test]
fn a_waiter_returns_when_its_answer_is_dropped() {
    let (reply, wait) = slot::<u32>();
    let caller = std::thread::spawn(move || wait.wait(|| false).ok().unwrap());
    drop(reply);
    assert_eq!(caller.join().unwrap(), None);
}

#[test]
fn a_caller_wakes_after_what_comes_before_its_answer() {
    let (reply, wait) = slot();
    let seen = Arc::new(AtomicBool::new(false));
    let see = seen.clone();
    let reply = reply.after(move |answer| see.store(*answer == 5, Ordering::Relaxed));
    assert!(reply.is_callback(), "it may not run on the caller's thread");
    let caller =
        std::thread::spawn(move || (wait.wait(|| false).ok().unwrap(), seen.load(Ordering::Relaxed)));
    reply.send(5);
    assert_eq!(caller.join().unwrap(), (Some(5), true));

    let (reply, wait) = slot::<u32>();
    drop(reply.after(|_| panic!("there is no answer")));
    assert_eq!(wait.wait(|| false).ok().unwrap(), None);
}
