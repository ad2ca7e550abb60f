//! The memory of a daemon, for the DVM and for a job, does not grow with hosts times ranks.
//!
//! Daemons boot and start a job here. The share of one daemon is the memory freed when it is dropped. The allocator
//! counts per thread.

#![allow(clippy::unwrap_used, clippy::disallowed_types)]

mod dvm;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dvm::Dvm;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The memory freed by dropping this.
fn weight<T>(what: T) -> usize {
    let before = HELD.get();
    drop(what);
    (before - HELD.get()).try_into().unwrap_or_default()
}

/// Bytes that daemons hold.
#[derive(Debug)]
struct Footprint {
    /// A daemon without children, when the DVM is up.
    idle: usize,
    /// The same, with a job and its share of the ranks.
    with_job: usize,
    /// A daemon with children, with the job.
    inner: usize,
    /// A daemon on a host without ranks of the job.
    aside: usize,
    root: usize,
}

/// A job of `ranks` on each host but the last.
fn measure(hosts: u32, ranks: u32) -> Footprint {
    let mut dvm = Dvm::boot(hosts, ranks);
    let idle = weight(dvm.take(hosts - 2));
    let with_job = {
        dvm = Dvm::boot(hosts, ranks);
        dvm.start((hosts - 1) * ranks);
        weight(dvm.take(hosts - 2))
    };
    let found = Footprint {
        idle,
        with_job,
        inner: weight(dvm.take(1)),
        aside: weight(dvm.take(hosts - 1)),
        root: weight(dvm.take(0)),
    };
    println!("{hosts} hosts, {ranks} ranks on each: {found:?}");
    found
}

#[test]
fn a_daemon_keeps_no_more_when_hosts_are_added() {
    let (few, many) = (measure(70, 8), measure(1120, 8));
    let same = |few: usize, many: usize| many < few + few / 4 + 1000;
    assert!(same(few.idle, many.idle), "{few:?} {many:?}");
    assert!(same(few.with_job, many.with_job), "{few:?} {many:?}");
    assert!(same(few.inner, many.inner), "{few:?} {many:?}");
    assert!(same(few.aside, many.aside), "{few:?} {many:?}");
    // It knows each host and the pid of each process.
    assert!(many.root < few.root + (1120 - 70) * (500 + 8 * 16), "{few:?} {many:?}");
}

#[test]
#[ignore = "takes a minute: --ignored --nocapture"]
fn thousands_of_hosts_with_128_ranks_each() {
    measure(1000, 128);
    measure(16_000, 128);
}
