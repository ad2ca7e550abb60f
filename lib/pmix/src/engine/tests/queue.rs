//! The real queue between threads. `tests/handoff` checks all orders of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::queue::Queue;

const CAPACITY: usize = 1024;

fn rings(queue: &Queue<u32>, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(&*queue.bell(), PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

#[test]
fn the_bell_rings_while_there_is_something() {
    let queue = Queue::new(CAPACITY).unwrap();
    assert!(!rings(&queue, Duration::ZERO));
    queue.push(1, || false).unwrap();
    queue.push(2, || false).unwrap();
    assert!(rings(&queue, Duration::ZERO));
    assert_eq!(queue.take(), [1, 2]);
    assert!(!rings(&queue, Duration::ZERO));
    queue.push(3, || false).unwrap();
    assert!(rings(&queue, Duration::ZERO));
}

#[test]
fn nothing_is_lost_between_many_threads() {
    const EACH: u32 = 5000;
    let queue = Arc::new(Queue::new(CAPACITY).unwrap());
    let pushers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            std::thread::spawn(move || (0..EACH).for_each(|n| queue.push(n, || false).unwrap()))
        })
        .collect();
    let mut taken = 0;
    while taken < 4 * EACH as usize {
        assert!(rings(&queue, Duration::from_secs(60)));
        let items = queue.take();
        assert!(items.len() <= CAPACITY);
        taken += items.len();
    }
    pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
}

#[test]
fn a_closed_queue_lets_nobody_wait() {
    let queue = Arc::new(Queue::new(CAPACITY).unwrap());
    (0..CAPACITY).for_each(|n| queue.push(n, || false).unwrap());
    let pusher = {
        let queue = queue.clone();
        std::thread::spawn(move || queue.push(0, || false))
    };
    queue.close();
    assert_eq!(pusher.join().unwrap(), Err(0));
    assert_eq!(queue.push(7, || false), Err(7));
    assert!(queue.take().is_empty());
}

#[test]
fn the_end_of_a_queue_rings_its_bell() {
    let queue = Queue::<u32>::new(CAPACITY).unwrap();
    assert!(!rings(&queue, Duration::ZERO));
    queue.close();
    assert!(rings(&queue, Duration::ZERO));
}

#[test]
fn sender_waiting_for_room_is_woken() {
    let queue = Arc::new(Queue::new(CAPACITY).unwrap());
    (0..CAPACITY).for_each(|n| queue.push(n, || false).unwrap());
    let gives_up = Arc::new(AtomicBool::new(false));
    let pusher = {
        let (queue, gives_up) = (queue.clone(), gives_up.clone());
        std::thread::spawn(move || queue.push(0, || gives_up.load(Ordering::Relaxed)))
    };
    gives_up.store(true, Ordering::Relaxed);
    let mut seen = 0;
    queue.rouse(|_| seen += 1);
    assert!(seen >= CAPACITY);
    assert_eq!(pusher.join().unwrap(), Ok(()));
    assert_eq!(queue.take().len(), CAPACITY + 1);
}
