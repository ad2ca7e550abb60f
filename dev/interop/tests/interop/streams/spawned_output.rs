//! Spawning tools get the output of their jobs from its first byte, however early it is written.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::sync::{Arc, Mutex};

use phalanx_interop::{Job, eventually, launcher, new_directory, pmix_tool, rust_tool};

const JOBS: usize = 50;

#[test]
fn a_c_tool_pulls_the_output_of_each_job_that_it_has_spawned() {
    let launcher = launcher(1);
    let (pid, jobs) = (launcher.pid().to_string(), JOBS.to_string());
    let place = new_directory();
    let tool =
        Job::new(pmix_tool("spawn")).args([&jobs, "callback", "pid", &pid]).arg(place.path().join("go"));
    let outcome = tool.env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
    assert!(outcome.stderr.contains(&format!("{JOBS} jobs")), "{outcome}");
    launcher.end();
}

#[test]
fn c_tool_shows_forwarded_output() {
    let launcher = launcher(1);
    let (pid, jobs) = (launcher.pid().to_string(), JOBS.to_string());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (reader, watched) = (seen.clone(), seen.clone());
    let lines = move || watched.lock().expect("it works").iter().filter(|byte| **byte == b'\n').count();
    let tool =
        Job::new(pmix_tool("spawn")).args([&jobs, "own", "pid", &pid, "-"]).env("TMPDIR", launcher.tmpdir());
    let tool = tool.reading(move |piece| reader.lock().expect("it works").extend_from_slice(piece));
    // The tool ends with its input, which is closed when everything has come.
    let tool = tool.feeding(move |pipe| {
        eventually("all lines are there", || lines() >= 2 * JOBS);
        drop(pipe);
    });
    let outcome = tool.run().expect_code(0);
    let text = String::from_utf8_lossy(&seen.lock().expect("it works")).into_owned();
    for job in 0..JOBS {
        let start = format!("job {job} ");
        let of_job: Vec<&str> = text.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(of_job, [format!("{start}first"), format!("{start}last")], "{outcome}");
    }
    assert_eq!(text.lines().count(), 2 * JOBS, "{text}");
    launcher.end();
}

#[test]
fn own_tool_pulls_output_of_each_spawned_job() {
    let launcher = launcher(1);
    let (pid, jobs) = (launcher.pid().to_string(), JOBS.to_string());
    let place = new_directory();
    let tool = Job::new(rust_tool("spawn")).args([&pid, &jobs]).arg(place.path().join("go"));
    tool.env("TMPDIR", launcher.tmpdir()).run().expect_code(0).assert_line(&format!("{JOBS} jobs"));
    launcher.end();
}
