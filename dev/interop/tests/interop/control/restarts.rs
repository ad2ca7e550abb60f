//! Job control of programs on foreign libraries: checkpoints as in RFC0015, and ranks that are restarted.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{
    Job, Library, Running, libpmix, new_directory, pmix, pmix_on_ours, pmix_tool, px, px_binary,
};

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
