//! Ranks that spawn jobs: the answers that they get, which of their directives are carried out, and which are not.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use phalanx_interop::{
    Job,
    Library::{Pmix4, Pmix5},
    Outcome, eventually, host, launcher, libpmix, new_directory, pmix, pmix_tool, px, write_program,
};
use rustix::process::Signal;

/// One rank that follows these instructions, on OpenPMIx's library and on ours.
fn spawners(words: &[&str]) -> [Job; 2] {
    let job = || px(["-n", "1"]).arg(pmix("spawn")).args(words);
    [job(), job().env("LD_LIBRARY_PATH", libpmix())]
}

/// The lines of its standard output, in order.
fn lines(outcome: &Outcome) -> Vec<&str> {
    outcome.stdout.lines().collect()
}

#[test]
fn a_spawn_is_answered_with_what_could_not_be_started() {
    let place = new_directory();
    let plain = place.path().join("plain");
    fs::write(&plain, "no program").expect("a file");
    fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).expect("it is ours");
    let plain = plain.to_str().expect("text");
    let words = [
        &["run", "/nonexist", "run", "no-such-program", "cwd", "/no/such/directory", "run", "true"][..],
        &["cwd", plain, "run", "true", "run", plain, "with", "true", "run", "/nonexist", "run", "true"],
    ];
    for job in spawners(&words.concat()) {
        let outcome = job.run().expect_code(0).expect_nothing_left();
        let names = ["/nonexist", "no-such-program", "true", "true", plain, "/nonexist", "true"];
        let codes = [-190, -190, -233, -74, -177, -190, 0];
        let expected: Vec<String> =
            names.iter().zip(codes).map(|(name, code)| format!("{name}: {code}")).collect();
        assert_eq!(lines(&outcome), expected, "{outcome}");
        let on_host = format!("starting rank 0 on {}: executing /nonexist: No such file", host());
        let _ = outcome.expect_stderr(&[
            &on_host,
            "looking for the program no-such-program in PATH and in its working directory",
            "changing to the directory /no/such/directory: No such file",
        ]);
    }
}

/// Nothing foretells the end of a worker that does not use PMIx.
#[test]
fn a_spawn_gets_the_slot_of_a_worker_that_is_just_ending() {
    let place = new_directory();
    let files: Vec<String> = (0..5).map(|n| place.path().join(n.to_string()).display().to_string()).collect();
    let scripts: Vec<String> = files.iter().map(|file| format!(": > '{file}'; sleep 0.05")).collect();
    let rounds = scripts.iter().zip(&files).flat_map(|(script, file)| ["sh", script, "until", file]);
    let words: Vec<&str> = rounds.collect();
    let job = px(["-n", "1", "--host", "localhost:2"]).arg(pmix("spawn")).args(words);
    let outcome = job.run().expect_code(0).expect_nothing_left();
    assert_eq!(lines(&outcome), ["sh: 0"; 5], "{outcome}");
}

/// Programs ask whether they have a parent; those without one spawn children.
#[test]
fn spawned_jobs_know_their_parent() {
    let job = |ranks| px(["-n", ranks]).arg(pmix("family"));
    for ranks in ["1", "3"] {
        let on_ours = job(ranks).with(Pmix4).env("LD_LIBRARY_PATH", libpmix());
        for job in [job(ranks).with(Pmix4), job(ranks).with(Pmix5), on_ours] {
            let parents = (0..ranks.parse::<u32>().expect("a number"))
                .map(|rank| format!("rank {rank} of {ranks}: has none"));
            let children = (0..2).map(|rank| format!("rank {rank} of 2: has a parent"));
            let _ = job.run().expect_code(0).expect_nothing_left().expect_lines(parents.chain(children));
        }
    }
}

#[test]
fn programs_begin_in_the_directory_of_the_process_that_spawns() {
    let place = new_directory();
    let path = fs::canonicalize(place.path()).expect("a directory");
    let path = path.to_str().expect("text");
    for job in spawners(&["chdir", path, "flag", "pmix.fwd.stdout", "sh", "pwd", "cwd", "/", "sh", "pwd"]) {
        let outcome = job.run().expect_code(0);
        for expected in [path, "/"] {
            outcome.assert_line(expected);
        }
    }
}

#[test]
fn a_bare_name_is_looked_for_in_the_working_directory() {
    let place = new_directory();
    let program = place.path().join("only-here");
    write_program(&program, "#!/bin/sh\necho found\n");
    let _ = px(["-n", "1", "only-here"]).dir(place.path()).run().expect_code(0).expect_lines(["found"]);
    for job in spawners(&["cwd", place.path().to_str().expect("text"), "run", "only-here"]) {
        let _ = job.run().expect_code(0).expect_lines(["only-here: 0", "found"]);
    }
}

#[test]
fn a_spawn_says_which_directives_it_ignores() {
    let words = [
        &["require", "pmix.pset.nm", "mine", "run", "true", "app", "require", "pmix.pset.nm", "mine"][..],
        &["run", "true", "text", "pmix.pset.nm", "mine", "app", "flag", "pmix.preloadbin", "run", "true"],
        &["text", "pmix.pers", "ompi", "run", "true"],
    ];
    for job in spawners(&words.concat()) {
        let outcome = job.run().expect_code(0);
        let expected =
            ["true: -47", "true: -47", "true: 0", "ignored: pmix.preloadbin,pmix.pset.nm", "true: 0"];
        assert_eq!(lines(&outcome), expected, "{outcome}");
        let _ = outcome.expect_stderr(&[
            "it requires PMIX_PSET_NAME (pmix.pset.nm), which is not supported",
            "PMIX_PSET_NAME (pmix.pset.nm) is not supported, and was ignored",
            "PMIX_PRELOAD_BIN (pmix.preloadbin) is not supported, and was ignored",
        ]);
    }
}

#[test]
fn changes_of_the_environment_are_made_in_their_order() {
    let script = "echo $INHERITED,$OWN,$LIST,$NEW";
    let words = [
        &["unset", "INHERITED", "variable", "OWN=own", "app", "unset", "OWN", "sh", script][..],
        &["set", "NEW", "a", "unset", "NEW", "set", "NEW", "b", "append", "NEW", "c", "-", "sh", script],
        &["prepend", "LIST", "0", ".", "app", "first", "LIST", "2", ".", "add", "LIST", "x", "sh", script],
    ];
    for job in spawners(&words.concat()) {
        let outcome = job.env("INHERITED", "yes").env("LIST", "1.2").run().expect_code(0);
        let _ = outcome.expect_lines(["sh: 0", "sh: 0", "sh: 0", ",,1.2,", "yes,,1.2,b-c", "yes,,2.0.1,"]);
    }
}

#[test]
fn a_limit_of_a_spawn_does_not_end_the_job() {
    let place = new_directory();
    let file = place.path().join("lived on");
    let file = file.to_str().expect("text");
    let script = format!("sleep 1.2; touch \"{file}\"");
    for job in spawners(&["seconds", "pmix.timeout", "1", "sh", &script, "until", file]) {
        let _ = job.run().expect_code(0).expect_lines(["sh: 0"]);
        fs::remove_file(file).expect("it was made");
    }
    for job in spawners(&["seconds", "pmix.job.time", "1", "sh", "exec sleep 1000"]) {
        let _ = job.run().expect_code(124).expect_lines(["sh: 0"]).expect_stderr(&["1 s, its time limit"]);
    }
}

#[test]
fn files_of_spawned_ranks_are_their_own() {
    let place = new_directory();
    let files = place.path().join("out");
    let output = format!("directory={}", files.display());
    let job = px(["-n", "1", "--output", &output]).arg(pmix("spawn")).args(["sh", "echo child"]);
    let _ = job.run().expect_code(0);
    let of_parent = fs::read_to_string(files.join("rank.0/stdout")).expect("the parent's file");
    assert_eq!(of_parent, "sh: 0\n");
    let below = fs::read_dir(&files).expect("the directory").flatten();
    let below = below.map(|entry| entry.path().join("rank.0/stdout"));
    let of_child: Vec<String> = below.filter_map(|file| fs::read_to_string(file).ok()).collect();
    assert_eq!(of_child, ["child\n"]);
}

#[test]
fn remarks_about_spawned_jobs_appear_once() {
    let crowd = (2 * std::thread::available_parallelism().map_or(1, usize::from) + 1).to_string();
    for job in spawners(&["ranks", &crowd, "sh", "true", "ranks", &crowd, "sh", "true"]) {
        let outcome = job.run().expect_code(0);
        let remarks = outcome.stderr.matches(&format!("for {crowd} ranks")).count();
        assert_eq!(remarks, 1, "{outcome}");
    }
}

#[test]
fn px_run_ends_with_the_last_job_that_was_spawned() {
    for job in spawners(&["sh", "sleep 0.3; echo late; exit 3"]) {
        let outcome = job.run().expect_code(3).expect_nothing_left();
        let _ =
            outcome.expect_lines(["sh: 0", "late"]).expect_stderr(&["job px-", "rank 0 exited with code 3"]);
    }
    // Its time limit applies to all of them.
    let limited = px(["-n", "1", "--timeout", "1"]).arg(pmix("spawn")).args(["sh", "exec sleep 1000"]);
    let _ = limited.run().expect_code(124).expect_nothing_left().expect_stderr(&["its time limit"]);
}

#[test]
fn children_end_with_a_parent_that_fails_or_keeps_them() {
    for (words, code) in [
        (&["sh", "exec sleep 1000", "exit", "5"][..], 5),
        (&["no", "pmix.spchildsep", "sh", "exec sleep 1000"], 0),
    ] {
        for job in spawners(words) {
            let outcome = job.run().expect_code(code).expect_nothing_left();
            let _ = outcome.expect_stderr(&["the job was ended with its parent, job px-"]);
        }
    }
}

#[test]
fn separate_children_outlive_a_parent_that_fails() {
    let place = new_directory();
    let parent = place.path().join("parent");
    let parent = parent.to_str().expect("text");
    let spawner = format!("echo $$ > '{parent}'; exec \"$@\"");
    let script = format!("while [ -e /proc/$(cat '{parent}') ]; do sleep 0.02; done; echo outlived");
    for library in ["", libpmix().to_str().expect("text")] {
        let job = px(["-n", "1", "sh", "-c", &spawner, "sh"]).arg(pmix("spawn"));
        let job = job.args(["flag", "pmix.spchildsep", "sh", &script, "exit", "5"]);
        let outcome = job.env("LD_LIBRARY_PATH", library).run().expect_code(5).expect_nothing_left();
        let _ = outcome.expect_lines(["sh: 0", "outlived"]);
    }
}

#[test]
fn the_user_ends_what_a_finished_job_has_spawned() {
    let place = new_directory();
    let ready = place.path().join("ready");
    let script = format!("touch '{}'; exec sleep 1000", ready.display());
    let running = px(["-n", "1", "-v"]).arg(pmix("spawn")).args(["sh", &script]).start();
    eventually("the child runs", || ready.exists());
    running.until_said("sh: 0");
    running.signal(Signal::INT);
    let _ = running.wait().expect_code(130).expect_nothing_left();
}

#[test]
fn a_job_that_was_killed_by_job_control_has_not_succeeded() {
    let launcher = launcher(2);
    let job = launcher.job_name();
    let tool = Job::new(pmix_tool("attach")).args(["pid", &launcher.pid().to_string(), "--", "kill", &job]);
    let _ = tool.env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
    let outcome = launcher.wait().expect_code(137).expect_nothing_left();
    let _ = outcome.expect_stderr(&[
        "px: error: the job was ended by px-",
        "-tool1:0 (uid ",
        "), by job control",
    ]);
    // A job ended by a signal through job control has not succeeded either.
    let launcher = phalanx_interop::launcher(2);
    let job = launcher.job_name();
    let words = ["pid", &launcher.pid().to_string(), "--", "signal", &job, "12"];
    let tool = Job::new(pmix_tool("attach")).args(words);
    let _ = tool.env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
    let outcome = launcher.wait().expect_code(140).expect_nothing_left();
    let _ = outcome.expect_stderr(&["px: error: ", "-tool1:0 (uid ", "), by job control (SIGUSR2)"]);
    // Job control by a rank on its own children does not make its job fail.
    for job in spawners(&["sh", "exec sleep 1000", "signal", "10"]) {
        let _ = job.run().expect_code(0).expect_stderr(&[":0, by job control (SIGUSR1)"]);
    }
    for job in spawners(&["sh", "exec sleep 1000", "kill"]) {
        let _ = job.run().expect_code(0).expect_stderr(&["the job was ended by px-", ":0, by job control"]);
    }
}
