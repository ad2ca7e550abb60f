//! A call that waits for other ranks ends in the same way on one host and over two, and for clients of every release.

// A test that cannot continue prints why and stops.
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
const UNPACK_FAILURE: i32 = -20;
const LOST_CONNECTION: i32 = -61;
const NOT_FOUND: i32 = -46;
const GROUP_CONSTRUCT_ABORT: i32 = -165;

/// The call, the behaviour of rank 1, the result for ranks 0, 2 and 3, and the result for rank 1.
const OUTCOMES: [(&str, &str, i32, Option<i32>); 24] = [
    ("fence", "late", SUCCESS, Some(SUCCESS)),
    ("fence", "never", TIMEOUT, None),
    ("fence", "behind", TIMEOUT, Some(TIMEOUT)),
    ("fence", "ends", LOST_CONNECTION, None),
    ("fence", "fails", LOST_CONNECTION, None),
    ("fence", "again", SUCCESS, Some(SUCCESS)),
    ("connect", "late", SUCCESS, Some(SUCCESS)),
    ("connect", "never", TIMEOUT, None),
    ("connect", "behind", TIMEOUT, Some(TIMEOUT)),
    ("connect", "ends", LOST_CONNECTION, None),
    ("connect", "fails", LOST_CONNECTION, None),
    ("connect", "again", SUCCESS, Some(SUCCESS)),
    ("group", "late", SUCCESS, Some(SUCCESS)),
    ("group", "never", TIMEOUT, None),
    ("group", "behind", TIMEOUT, Some(TIMEOUT)),
    ("group", "ends", GROUP_CONSTRUCT_ABORT, None),
    ("group", "fails", GROUP_CONSTRUCT_ABORT, None),
    ("group", "again", SUCCESS, Some(SUCCESS)),
    ("get", "late", SUCCESS, Some(SUCCESS)),
    ("get", "never", TIMEOUT, None),
    ("get", "behind", TIMEOUT, Some(SUCCESS)),
    ("get", "after", SUCCESS, Some(SUCCESS)),
    ("get", "ends", NOT_FOUND, None),
    ("get", "fails", NOT_FOUND, None),
];

/// Over two hosts, rank 3 is on the host of rank 1.
const HOSTS: [&str; 2] = ["n1:4", "n1:2,n2:2"];

#[test]
fn calls_end_alike_on_each_host_and_with_each_library() {
    let site = Site::new();
    let program = pmix("outcomes");
    let mut wrong = String::new();
    for library in ["4.2", "5.0", "ours"] {
        for hosts in HOSTS {
            let started = OUTCOMES.iter().map(|(call, fate, others, one)| {
                let place = new_shared_directory();
                let words = format!("run --kill-on-bad-exit none --map-by node --host {hosts} -n 4");
                let job = site.px(1, &words).arg(&program).args([call, fate]).arg(place.path());
                let job = match library {
                    "4.2" => job.with(Pmix4),
                    "5.0" => job.with(Pmix5),
                    _ => job.with(Pmix4).env("LD_LIBRARY_PATH", libpmix()),
                };
                (call, fate, [Some(*others), *one, Some(*others), Some(*others)], job.start(), place)
            });
            // Some run at a time, since they are mostly waiting.
            let mut started = started.peekable();
            while started.peek().is_some() {
                let some: Vec<_> = started.by_ref().take(AT_A_TIME).collect();
                for (call, fate, expected, job, _place) in some {
                    let outcome = job.wait();
                    let ended: BTreeMap<usize, i32> = outcome.stdout.lines().filter_map(said).collect();
                    let ended = [0, 1, 2, 3].map(|rank| ended.get(&rank).copied());
                    let named = outcome.stderr.contains("ended without taking part in a");
                    // One that fails is named as such.
                    let is_missed = *call != "get" && *fate == "ends" || *fate == "fails" && named;
                    if ended != expected || named != is_missed {
                        let _ = writeln!(
                            wrong,
                            "{call} {fate}, {library}, {hosts}: {ended:?}, expected {expected:?}, named: {named}\n{outcome}"
                        );
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    site.expect_nothing_left();
}

#[test]
fn joins_end_alike_whose_leader_is_over() {
    let site = Site::new();
    let place = new_shared_directory();
    let job =
        site.px(1, "run -q --map-by node --host n1:2,n2:2 -n 4").arg(pmix("leaderless")).arg(place.path());
    let outcome = job.with(Pmix4).env("LD_LIBRARY_PATH", libpmix()).run().expect_code(0);
    for rank in 1..4 {
        outcome.assert_line(&format!("rank {rank} of 4: joins without a leader end"));
    }
    site.expect_nothing_left();
}

#[test]
fn a_commit_that_cannot_be_read_fails_for_all() {
    let site = Site::new();
    let program = pmix("unreadable");
    // Our library refuses such a value when it is put: here only those that get it use ours.
    let getters_on_ours =
        format!("[ $PMIX_RANK = 0 ] || export LD_LIBRARY_PATH={}; exec $0", libpmix().display());
    for library in ["4.2", "5.0", "ours"] {
        for hosts in HOSTS {
            let job = site.px(1, &format!("run --map-by node --host {hosts} -n 4"));
            let job = match library {
                "4.2" => job.arg(&program).with(Pmix4),
                "5.0" => job.arg(&program).with(Pmix5),
                _ => job.args(["sh", "-c", &getters_on_ours]).arg(&program).with(Pmix4),
            };
            let outcome = job.run().expect_code(0);
            let ended: BTreeMap<usize, i32> = outcome.stdout.lines().filter_map(said).collect();
            // The clients of OpenPMIx ignore how a server answers a commit.
            let expected = [SUCCESS, UNPACK_FAILURE, UNPACK_FAILURE, UNPACK_FAILURE];
            assert_eq!(ended.into_values().collect::<Vec<_>>(), expected, "{library}, {hosts}");
            let note = "px: the PMIx server of n1 has refused a commit of rank 0: it cannot be read: values are nested too \
                        deeply. What it has put is not available to others";
            let notes: Vec<_> =
                outcome.stderr.lines().filter(|line| line.contains("refused a commit")).collect();
            assert_eq!(notes, [note], "{library}, {hosts}");
        }
    }
    site.expect_nothing_left();
}

fn said(line: &str) -> Option<(usize, i32)> {
    let (rank, status) = line.split_once(": ")?;
    Some((rank.parse().ok()?, status.parse().ok()?))
}

const AT_A_TIME: usize = 5;
