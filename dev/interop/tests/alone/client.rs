//! The client and tool functions, called from C on our headers and our library.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;

use phalanx_interop::{
    CLIENT_PROGRAMS, Job, SIZES, eventually, new_directory, pmix_on_ours, px, px_binary, tool_on_ours,
};
use rustix::process::Signal;

#[test]
fn the_client_functions_work_from_c() {
    for (program, verdict) in CLIENT_PROGRAMS.into_iter().filter(|(program, _)| *program != "topology") {
        for ranks in SIZES {
            let outcome = px(["-n", &ranks.to_string()]).arg(pmix_on_ours(program)).run().expect_code(0);
            for rank in 0..ranks {
                outcome.assert_line(&format!("rank {rank} of {ranks}: {verdict}"));
            }
            outcome.expect_nothing_left();
        }
    }
}

/// With peers installed, hwloc is there, which the tests with peers check.
#[test]
fn a_library_without_hwloc_says_so() {
    let outcome = px(["-n", "2"]).arg(pmix_on_ours("topology")).run().expect_code(0);
    for rank in 0..2 {
        let verdicts = ["the hardware is right", "there is no hwloc, and the library says so"];
        let lines = verdicts.map(|verdict| format!("rank {rank} of 2: {verdict}"));
        assert!(lines.iter().any(|line| outcome.stdout.lines().any(|said| said == line)), "{outcome}");
    }
}

#[test]
fn thousands_of_pending_gets_are_answered() {
    let outcome = px(["-n", "2"]).arg(pmix_on_ours("pending")).run().expect_code(0);
    outcome.expect_lines([0, 1].map(|rank| format!("rank {rank} of 2: all gets were answered")));
}

#[test]
fn job_control_names_the_targets_that_were_not_reached() {
    let outcome = px(["-n", "2"]).arg(pmix_on_ours("control")).run().expect_code(0);
    outcome.expect_stdout(&["rank 0: was told that rank 1 has ended"]);
}

#[test]
fn restarted_ranks_go_on_from_their_checkpoint() {
    let place = new_directory();
    let running = px(["-n", "2"]).arg(pmix_on_ours("checkpoint")).arg(place.path()).start();
    let job = running.job_name();
    running.until_said("rank 0: counts");
    running.until_said("rank 1: counts");
    let ctl = |words: &[&str]| {
        let px = Job::new(px_binary()).arg("ctl").args(words).arg("--pid").arg(running.pid().to_string());
        px.env("TMPDIR", running.tmpdir()).run().expect_code(0)
    };
    let taken = ctl(&["checkpoint", "--name", "night", &job]);
    taken.expect_stdout(&[&format!("{job}: ranks 0-1: checkpointed as night")]);
    let again = ctl(&["restart", "--from", "night", &format!("{job}:1")]);
    again.expect_stdout(&[&format!("{job}: rank 1: started again")]);
    running.until_said("rank 1: goes on from its checkpoint");
    running.until_said("rank 0: hears of the restart");
    fs::write(place.path().join("end"), "").expect("a file");
    let outcome = running.wait().expect_code(0);
    for rank in 0..2 {
        outcome.assert_line(&format!("rank {rank}: saved"));
        outcome.assert_line(&format!("rank {rank} of 2: counted"));
    }
}

#[test]
fn joins_end_whose_leader_is_over() {
    let place = new_directory();
    let outcome = px(["-n", "4"]).arg(pmix_on_ours("leaderless")).arg(place.path()).run().expect_code(0);
    outcome.expect_stdout(
        &[1, 2, 3]
            .map(|rank| format!("rank {rank} of 4: joins without a leader end"))
            .each_ref()
            .map(String::as_str),
    );
}

#[test]
fn session_control_reaches_every_rank() {
    let outcome = px(["-n", "3"]).arg(pmix_on_ours("session")).run().expect_code(0);
    outcome.expect_stdout(&["rank 0: every rank was signalled"]);
}

#[test]
fn ranks_say_which_version_of_ours_they_use() {
    let version = format!("Phalanx {}", env!("CARGO_PKG_VERSION"));
    let outcome = px(["-n", "2"]).arg(pmix_on_ours("version")).run().expect_code(0);
    let lines = [0, 1].map(|rank| format!("rank {rank} of 2: {version}"));
    outcome.expect_stdout(&[&lines[0], &lines[1]]);
}

#[test]
fn a_tool_spawns_and_looks_up_in_a_dvm() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    dvm.until_said("is ready");
    let place = new_directory();
    let done = place.path().join("done");
    let spawned = format!("echo spawned > '{0}.new'; mv '{0}.new' '{0}'", done.display());
    let words = ["pid", &dvm.pid().to_string(), "--", "me", "publish", "colour", "blue", "lookup", "colour"];
    let tool = Job::new(tool_on_ours("attach")).args(words).args(["nohup", &spawned, "until"]).arg(&done);
    let outcome = tool.env("TMPDIR", dvm.tmpdir()).run().expect_code(0);
    assert!(outcome.stdout.contains("blue"), "{outcome}");
    assert_eq!(std::fs::read_to_string(&done).unwrap(), "spawned\n");
    dvm.signal(Signal::TERM);
    dvm.wait().expect_code(0).expect_nothing_left();
}

#[test]
fn logs_of_a_job_in_a_dvm_are_shown_to_its_user() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    dvm.until_said("is ready");
    let run = px(["--pid", &dvm.pid().to_string(), "-n", "2"]).arg(pmix_on_ours("inquiry"));
    let outcome = run.env("TMPDIR", dvm.tmpdir()).run().expect_code(0);
    for rank in 0..2 {
        outcome.assert_line(&format!("logged to stdout by-{rank}"));
        let logged = format!("logged to stderr by-{rank}");
        assert_eq!(outcome.stderr.lines().filter(|line| *line == logged).count(), 2, "{outcome}");
    }
    let words = ["pid", &dvm.pid().to_string(), "--", "log", "by a tool"];
    let tool = Job::new(tool_on_ours("attach")).args(words).env("TMPDIR", dvm.tmpdir());
    tool.run().expect_code(0).expect_stdout(&["log PMIX_SUCCESS"]);
    dvm.until_said("logs: by a tool too");
    dvm.signal(Signal::TERM);
    dvm.wait().expect_code(0).expect_nothing_left();
}

#[test]
fn the_end_of_a_job_leaves_alone_a_job_of_another_dvm() {
    let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
    dvm.until_said("is ready");
    let place = new_directory();
    let path = |name: &str| place.path().join(name).display().to_string();
    let job = format!(
        "trap 'echo > \"{0}\"; exit 0' USR1; tr '\\0' '\\n' < /proc/self/environ > '{1}.new'; mv '{1}.new' '{1}'; while :; do sleep 0.01; done",
        path("signalled"),
        path("env")
    );
    // The rank's remaining children make the launcher search for more.
    let rank = r#"trap : TERM; "$@"; sleep 1000 & exit 0"#;
    let tool = tool_on_ours("attach");
    let words = ["pid", &dvm.pid().to_string(), "--", "nohup", &job, "until", &path("env")];
    let outer = px(["-q", "-n", "1", "sh", "-c", rank, "sh"]).arg(tool).args(words);
    let outer = outer.env("HANDS_ON_ALL", "1").env("TMPDIR", dvm.tmpdir()).outlived();
    let spawned = outer.run().expect_code(0);
    let name = spawned.stdout.lines().find_map(|line| line.strip_prefix("spawn PMIX_SUCCESS "));
    let name = name.unwrap_or_else(|| panic!("{spawned}"));
    let ctl = ["ctl", "signal", "--signal", "USR1", name, "--pid", &dvm.pid().to_string()];
    let _ = Job::new(px_binary()).args(ctl).env("TMPDIR", dvm.tmpdir()).run().expect_code(0);
    eventually("the job of the other DVM lives", || place.path().join("signalled").exists());
    let env = fs::read_to_string(place.path().join("env")).expect("the environment of the spawned job");
    let sessions: Vec<&str> = env.lines().filter(|line| line.starts_with("PHALANX_SESSION=")).collect();
    assert_eq!(sessions.len(), 1, "{env}");
    dvm.signal(Signal::TERM);
    dvm.wait().expect_code(0).expect_nothing_left();
}
