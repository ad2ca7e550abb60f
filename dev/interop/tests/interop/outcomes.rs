//! A call that waits for other ranks ends alike on one host and over two, and alike for clients of every release.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use phalanx_interop::{
    Library::{Pmix4, Pmix5},
    libpmix, new_shared_directory, pmix,
};

use crate::site::Site;

const SUCCESS: i32 = 0;
const TIMEOUT: i32 = -24;
const LOST_CONNECTION: i32 = -61;
const NOT_FOUND: i32 = -46;
const GROUP_CONSTRUCT_ABORT: i32 = -165;

/// The call, what rank 1 does, and how the calls of ranks 0, 1 and 2 end.
const OUTCOMES: [(&str, &str, [Option<i32>; 3]); 17] = [
    ("fence", "late", [Some(SUCCESS), Some(SUCCESS), Some(SUCCESS)]),
    ("fence", "never", [Some(TIMEOUT), None, Some(TIMEOUT)]),
    ("fence", "ends", [Some(LOST_CONNECTION), None, Some(LOST_CONNECTION)]),
    ("fence", "fails", [Some(LOST_CONNECTION), None, Some(LOST_CONNECTION)]),
    ("connect", "late", [Some(SUCCESS), Some(SUCCESS), Some(SUCCESS)]),
    ("connect", "never", [Some(TIMEOUT), None, Some(TIMEOUT)]),
    ("connect", "ends", [Some(LOST_CONNECTION), None, Some(LOST_CONNECTION)]),
    ("connect", "fails", [Some(LOST_CONNECTION), None, Some(LOST_CONNECTION)]),
    ("group", "late", [Some(SUCCESS), Some(SUCCESS), Some(SUCCESS)]),
    ("group", "never", [Some(TIMEOUT), None, Some(TIMEOUT)]),
    ("group", "ends", [Some(GROUP_CONSTRUCT_ABORT), None, Some(GROUP_CONSTRUCT_ABORT)]),
    ("group", "fails", [Some(GROUP_CONSTRUCT_ABORT), None, Some(GROUP_CONSTRUCT_ABORT)]),
    ("get", "late", [Some(SUCCESS), Some(SUCCESS), Some(SUCCESS)]),
    ("get", "never", [Some(TIMEOUT), None, Some(TIMEOUT)]),
    ("get", "behind", [Some(TIMEOUT), Some(SUCCESS), Some(TIMEOUT)]),
    ("get", "ends", [Some(NOT_FOUND), None, Some(NOT_FOUND)]),
    ("get", "fails", [Some(NOT_FOUND), None, Some(NOT_FOUND)]),
];

const HOSTS: [&str; 2] = ["n1:3", "n1:2,n2:1"];

#[test]
fn calls_end_alike_on_each_host_and_with_each_library() {
    let site = Site::new();
    let program = pmix("outcomes");
    let mut wrong = String::new();
    for library in ["4.2", "5.0", "ours"] {
        for hosts in HOSTS {
            let started = OUTCOMES.iter().map(|(call, fate, expected)| {
                let place = new_shared_directory();
                let words = format!("run -q --kill-on-bad-exit none --map-by node --host {hosts} -n 3");
                let job = site.px(1, &words).arg(&program).args([call, fate]).arg(place.path());
                let job = match library {
                    "4.2" => job.with(Pmix4),
                    "5.0" => job.with(Pmix5),
                    _ => job.with(Pmix4).env("LD_LIBRARY_PATH", libpmix()),
                };
                (call, fate, expected, job.start(), place)
            });
            // Some at a time: they wait for each other most of the time.
            let mut started = started.peekable();
            while started.peek().is_some() {
                let some: Vec<_> = started.by_ref().take(AT_A_TIME).collect();
                for (call, fate, expected, job, _place) in some {
                    let outcome = job.wait();
                    let ended: BTreeMap<usize, i32> = outcome.stdout.lines().filter_map(said).collect();
                    let ended = [0, 1, 2].map(|rank| ended.get(&rank).copied());
                    if ended != *expected {
                        let _ = writeln!(
                            wrong,
                            "{call} {fate}, {library}, {hosts}: {ended:?}, expected {expected:?}\n{outcome}"
                        );
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    site.expect_nothing_left();
}

fn said(line: &str) -> Option<(usize, i32)> {
    let (rank, status) = line.split_once(": ")?;
    Some((rank.parse().ok()?, status.parse().ok()?))
}

const AT_A_TIME: usize = 5;
