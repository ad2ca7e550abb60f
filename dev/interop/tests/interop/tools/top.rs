//! `px top`: what ranks use and wait for.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{Job, Library::OpenMpi4, Outcome, Running, eventually, mpi, px, px_binary};
use serde_json::Value;

fn top(job: &Running, words: &[&str]) -> Outcome {
    let job_name = job.job_name();
    let command = Job::new(px_binary()).arg("top").args(words).arg(job_name);
    command.env("TMPDIR", job.tmpdir()).run()
}

fn tables(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn the_rank_that_computes_comes_first() {
    let script = "[ $PMIX_RANK = 2 ] || exec sleep 1000; while :; do :; done";
    let job = px(["-n", "3", "sh", "-c", script]).start();
    eventually("rank 2 is seen to compute", || {
        let outcome = top(&job, &["--json", "-n", "2", "-i", "0.3"]).expect_code(0);
        let tables = tables(&outcome);
        assert_eq!(tables.len(), 2, "{outcome}");
        let ranks = tables[1]["ranks"].as_array().expect("ranks");
        assert_eq!(ranks.len(), 3, "{outcome}");
        assert!(ranks.iter().all(|rank| rank["memory_bytes"].as_u64() > Some(0)), "{outcome}");
        ranks[0]["rank"] == 2 && ranks[0]["cpu_percent"].as_f64() > Some(1.0)
    });
    let text = top(&job, &["--sort", "rank"]).expect_code(0);
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(lines.len() == 5 && lines[0].contains(": 3 ranks, "), "{text}");
    assert!(lines[1].starts_with("RANK  HOST") && lines[4].trim_start().starts_with("2  "), "{text}");
    job.end();
}

#[test]
fn ranks_that_wait_say_for_what() {
    let script = "[ $PMIX_RANK = 1 ] && exec sleep 1000; exec \"$0\" 3";
    let job = px(["-n", "3", "sh", "-c", script]).arg(mpi(OpenMpi4, "hello")).with(OpenMpi4).start();
    eventually("two ranks wait for the third", || {
        let outcome = top(&job, &["--json", "--sort", "rank"]).expect_code(0);
        let table = tables(&outcome).remove(0);
        let waits = |rank: usize| table["ranks"][rank]["waits_for"].as_str().unwrap_or_default().to_owned();
        [waits(0), waits(2)] == ["fence for rank 1", "fence for rank 1"] && waits(1).is_empty()
    });
    job.end();
}

#[test]
fn it_ends_with_the_job() {
    let job = px(["-n", "1", "sleep", "1000"]).start();
    let command = Job::new(px_binary()).args(["top", "--json", "-n", "1000000", "-i", "0.1"]);
    let shown = command.arg(job.job_name()).env("TMPDIR", job.tmpdir()).start();
    shown.until_said("cpu_percent");
    job.end();
    shown.wait().expect_code(0).expect_stderr(&["has ended"]);
}
