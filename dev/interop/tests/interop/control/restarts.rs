//! Job control of programs on foreign libraries: checkpoints as in RFC0015, and ranks that are restarted.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{
    Job, Library, Running, eventually, libpmix, new_directory, pmix, pmix_on_ours, pmix_tool, px, px_binary,
};
use rustix::process::Signal;

fn ctl(running: &Running, words: &[&str]) -> String {
    let px = Job::new(px_binary()).arg("ctl").args(words).arg("--pid").arg(running.pid().to_string());
    px.env("TMPDIR", running.tmpdir()).run().expect_code(0).stdout
}

#[test]
fn programs_of_others_go_on_from_their_checkpoints() {
    for library in [Library::Pmix4, Library::Pmix5] {
        let place = new_directory();
        let running = px(["-n", "2"]).arg(pmix("checkpoint")).arg(place.path()).with(library).start();
        let job = running.job_name();
        running.until_said("rank 0: counts");
        running.until_said("rank 1: counts");
        let taken = ctl(&running, &["checkpoint", "--name", "night", &job]);
        assert_eq!(taken.trim(), format!("{job}: ranks 0-1: checkpointed as night"), "{library:?}");
        let again = ctl(&running, &["restart", "--from", "night", &format!("{job}:1")]);
        assert_eq!(again.trim(), format!("{job}: rank 1: started again"), "{library:?}");
        running.until_said("rank 1: goes on from its checkpoint");
        running.until_said("rank 0: hears of the restart");
        fs::write(place.path().join("end"), "").expect("a file");
        let outcome = running.wait().expect_code(0);
        for rank in 0..2 {
            outcome.assert_line(&format!("rank {rank} of 2: counted"));
        }
    }
}

/// OpenPMIx keeps what a program has read; the guide tells how a program gets the new values.
#[test]
fn programs_of_others_read_anew_after_a_restart() {
    for library in [Library::Pmix4, Library::Pmix5] {
        let place = new_directory();
        let running = px(["-n", "2"]).arg(pmix("renewed")).with(library).dir(place.path()).start();
        let job = running.job_name();
        running.until_said("has read");
        ctl(&running, &["restart", &format!("{job}:1")]);
        let outcome = running.wait().expect_code(0);
        for (when, life) in [("before", 0), ("refreshed", 1), ("then", 1)] {
            outcome.assert_line(&format!("{when}: {life}"));
        }
    }
}

/// Also where no handler of the program has the library listen to its server.
#[test]
fn our_library_drops_what_a_restarted_rank_had_put() {
    let place = new_directory();
    let running = px(["-n", "2"]).arg(pmix_on_ours("renewed")).dir(place.path()).start();
    let job = running.job_name();
    running.until_said("has read");
    ctl(&running, &["restart", &format!("{job}:1")]);
    let outcome = running.wait().expect_code(0);
    for (when, life) in [("before", 0), ("usually", 1), ("refreshed", 1), ("then", 1)] {
        outcome.assert_line(&format!("{when}: {life}"));
    }
}

/// The answers to a tool that sends all of these requests at once.
fn at_once(running: &Running, ours: bool, words: &str) -> Vec<String> {
    let tool = Job::new(pmix_tool("control")).args([&running.pid().to_string(), &running.job_name()]);
    let tool = tool.args(words.split_whitespace()).env("TMPDIR", running.tmpdir());
    let tool = if ours { tool.env("LD_LIBRARY_PATH", libpmix()) } else { tool };
    tool.run().expect_code(0).stdout.lines().map(|line| line.replace('-', "_")).collect()
}

/// Four ranks that have all begun; `px ps` shows them.
fn four_ranks() -> Running {
    let running = px(["-n", "4", "sh", "-c", "echo $PMIX_RANK begins; exec sleep 1000"]).start();
    (0..4).for_each(|rank| running.until_said(&format!("{rank} begins")));
    running
}

#[test]
fn ranks_that_start_again_are_killed_when_a_tool_says_so() {
    for ours in [false, true] {
        let running = four_ranks();
        let answers = at_once(&running, ours, "restart:0 restart:1 restart:2 restart:3 kill:all");
        assert!(answers.last().is_some_and(|last| last.ends_with("SUCCESS")), "{answers:?}");
        let ended = running.wait().expect_code(137).expect_nothing_left();
        assert!(!ended.stderr.contains("the others go on"), "{ended}");
        assert!(ended.stderr.contains("by job control"), "{ended}");

        let running = four_ranks();
        let answers = at_once(&running, ours, "restart:0 restart:1 restart:2 restart:3 kill:2");
        assert!(answers.last().is_some_and(|last| last.ends_with("SUCCESS")), "{answers:?}");
        let shown = Job::new(px_binary()).args(["ps", "-r", "--pid", &running.pid().to_string()]);
        let shown = shown.env("TMPDIR", running.tmpdir()).run().expect_code(0);
        assert_eq!(shown.stdout.matches("running").count(), 3 + 1, "three ranks and the job\n{shown}");
        let answers = at_once(&running, ours, "kill:2 kill:all");
        assert!(answers[0].ends_with("NOT_FOUND") && answers[1].ends_with("SUCCESS"), "{answers:?}");
        let _ = running.wait().expect_code(137).expect_nothing_left();
    }
}

/// What has happened to a job up to this text, as lines of `px events`.
fn past(running: &Running, until: &str) -> String {
    let events = ["events", "--since", "10m", "--follow", "--pid"];
    let job = Job::new(px_binary()).args(events).arg(running.pid().to_string());
    let events = job.env("TMPDIR", running.tmpdir()).start();
    events.until_said(until);
    events.signal(Signal::TERM);
    events.wait().stdout
}

/// Until then its end is not known elsewhere, so the order goes to its daemon.
#[test]
fn an_order_that_comes_after_the_end_of_a_rank_ended_none() {
    let place = new_directory();
    let script = "[ $PMIX_RANK = 1 ] && exit 0; until [ -e go ]; do sleep 0.05; done; exit 3";
    for ours in [false, true] {
        let running = px(["-n", "2", "sh", "-c", script]).dir(place.path()).start();
        let shown = || {
            let shown = Job::new(px_binary()).args(["ps", "-r", "--pid", &running.pid().to_string()]);
            shown.env("TMPDIR", running.tmpdir()).run().stdout
        };
        eventually("the rank has ended", || shown().contains("ended"));
        let answers = at_once(&running, ours, "terminate:1");
        assert!(answers[0].ends_with("NOT_FOUND"), "{answers:?}");
        drop(past(&running, "ended before that"));
        fs::write(place.path().join("go"), "").expect("a file");
        let ended = running.wait().expect_code(3).expect_stderr(&["rank 0 exited with code 3"]);
        assert!(!ended.stderr.contains("by job control"), "{ended}");
        fs::remove_file(place.path().join("go")).expect("a file");
    }
}

/// However far its restart has come, each end has the cause that it had.
#[test]
fn a_rank_ended_between_two_lives_died_of_its_own_cause_first() {
    let place = new_directory();
    let script = "[ $PMIX_RANK = 1 ] || { until [ -e go ]; do sleep 0.05; done; exit 0; }
        [ -z \"$PHALANX_RESTARTS\" ] && kill -KILL $$; exec sleep 1000";
    for ours in [false, true] {
        let options = ["-n", "2", "--kill-on-bad-exit", "restart", "--max-restarts", "1", "sh", "-c", script];
        let running = px(options).dir(place.path()).start();
        running.until_said("rank 1 was killed by SIGKILL; it is started again (1 of 1)");
        let answers = at_once(&running, ours, "terminate:1");
        assert!(answers[0].ends_with("SUCCESS"), "{answers:?}");
        let past = past(&running, "signal=15");
        let at = |what: &str| past.find(what).unwrap_or_else(|| panic!("no {what} in {past}"));
        assert!(at(" failed ") < at(" killed "), "{past}");
        assert!(past.contains("PMIX_EXIT_CODE=137") && past.contains("signal=15"), "{past}");
        fs::write(place.path().join("go"), "").expect("a file");
        let ended = running.wait().expect_failure();
        let _ = ended.expect_stderr(&["rank 1 was ended by px-", "by job control (SIGTERM)"]);
        fs::remove_file(place.path().join("go")).expect("a file");
    }
}
