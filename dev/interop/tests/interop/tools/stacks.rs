//! `px stacks`, with each of the programs that read stacks.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::os::unix::fs::symlink;
use std::path::Path;

use phalanx_interop::{
    Job, Library::OpenMpi4, Library::OpenMpi5, Outcome, Running, debian_file, eventually, mpi, new_directory,
    px, px_binary, wheel,
};
use serde_json::Value;

use crate::site::{Site, over_tcp};

fn stacks(job: &Running, words: &[&str]) -> Outcome {
    let name = job.job_name();
    let (ranks, more) = words.split_first().map_or(("", words), |(ranks, more)| (*ranks, more));
    let target = if ranks.is_empty() { name } else { format!("{name}:{ranks}") };
    Job::new(px_binary()).args(["stacks", &target]).args(more).env("TMPDIR", job.tmpdir()).run()
}

/// The ranks of stacks that contain this function.
fn ranks_in(json: &Value, function: &str) -> Vec<String> {
    let stacks = json["stacks"].as_array().expect("stacks").iter();
    let has =
        |stack: &&Value| stack["frames"].as_array().expect("frames").iter().any(|name| name == function);
    stacks.filter(has).map(|stack| stack["ranks"].as_str().expect("ranks").to_owned()).collect()
}

/// Until all ranks are where they stay: libraries take a moment on the way there.
fn expect_stuck(what: &str, others: &str, stacks: impl Fn() -> Outcome) {
    eventually(what, || {
        let outcome = stacks().expect_code(0);
        let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        assert_eq!(json["type"], "stacks", "{outcome}");
        assert_eq!(json["unread"], Value::Array(Vec::new()), "{outcome}");
        let mut waiting = ranks_in(&json, "PMPI_Barrier");
        waiting.sort();
        let together: phalanx_dvm::Ranges = waiting.join(",").parse().unwrap_or_default();
        ranks_in(&json, "compute_for_ever") == ["1"] && together.to_string() == others
    });
}

#[test]
fn the_rank_that_does_not_come_is_seen_in_the_tree() {
    for library in [OpenMpi4, OpenMpi5] {
        let job = px(["-n", "4"]).arg(mpi(library, "stuck")).with(library).start();
        (0..4).for_each(|rank| job.until_said(&format!("rank {rank} is stuck")));
        expect_stuck("three ranks wait", "0,2-3", || stacks(&job, &["", "--json"]));
        let tree = stacks(&job, &[]).expect_code(0).expect_stdout(&["stuck  [ranks 0-3", "main"]);
        let ends = |line: &str, name: &str, ranks: &str| line.trim() == format!("{name}  [{ranks}]");
        assert!(tree.stdout.lines().any(|line| ends(line, "compute_for_ever", "rank 1")), "{tree}");
        assert!(tree.stdout.lines().any(|line| ends(line, "PMPI_Barrier", "ranks 0, 2-3")), "{tree}");
        let one = stacks(&job, &["1"]).expect_code(0).expect_stdout(&["compute_for_ever"]);
        assert!(!one.stdout.contains("PMPI_Barrier"), "{one}");
        stacks(&job, &["7"]).expect_failure().expect_stderr(&["has no rank 7", "0 to 3"]);
        job.end();
    }
}

/// A directory with these programs alone, as PATH of the job's daemon.
fn only(programs: &[&'static str]) -> tempfile::TempDir {
    let place = new_directory();
    let mut all = vec!["/usr/bin/cat", "/usr/bin/readlink", "/usr/bin/sleep", "/usr/bin/sh"];
    all.extend(programs);
    for program in all {
        let name = program.rsplit('/').next().expect("a name");
        symlink(program, place.path().join(name)).expect("a link");
    }
    place
}

/// A job of two ranks that run already.
fn sleepers(path: &Path) -> Running {
    let job = px(["-n", "2", "sh", "-c", "echo here; exec sleep 1000"]).env("PATH", path).start();
    job.until_said("here\nhere");
    job
}

#[test]
fn gdb_reads_stacks_where_there_is_no_eu_stack() {
    debian_file("/usr/bin/gdb", "gdb");
    let path = only(&["/usr/bin/gdb"]);
    let job = sleepers(path.path());
    // The shells become their programs.
    eventually("both ranks sleep", || {
        let tree = stacks(&job, &[]).expect_code(0);
        tree.stdout.starts_with("sleep  [ranks 0-1]\n") && tree.stdout.contains("nanosleep")
    });
    job.end();
}

#[test]
fn without_a_reader_it_says_what_is_missing() {
    let path = only(&[]);
    let job = sleepers(path.path());
    let none = stacks(&job, &[]).expect_failure();
    none.expect_stderr(&["no stacks of ranks 0-1: neither eu-stack (of elfutils) nor gdb is in PATH"]);
    job.end();
}

#[test]
fn functions_of_python_are_seen() {
    let bin = wheel().root.join("bin");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let program = "import time\ndef deep():\n  print('here', flush=True)\n  time.sleep(1000)\ndeep()";
    let job = px(["-n", "2", "python3", "-c", program]).env("PATH", path).start();
    job.until_said("here\nhere");
    stacks(&job, &[]).expect_code(0).expect_stdout(&[
        "[ranks 0-1",
        "<module> (<string>:5)",
        "deep (<string>:4)",
    ]);
    job.end();
}

/// One tree for all hosts; ranks that have ended are listed.
#[test]
fn stacks_come_from_all_hosts() {
    let site = Site::new();
    let dvm = site.px(1, "dvm start --system-server --host n1:4,n2:4,n3:4").start();
    dvm.until_said("is ready");
    let program = mpi(OpenMpi4, "stuck");
    let job = over_tcp(site.px(2, "run --system -n 12").arg(program), OpenMpi4).start();
    (0..12).for_each(|rank| job.until_said(&format!("rank {rank} is stuck")));
    let name = || job_of(&site);
    let shown = |words: &str| site.px(3, &format!("stacks --system {} {words}", name())).run();
    expect_stuck("eleven ranks wait", "0,2-11", || shown("--json"));
    job.end();
    let other = site
        .px(1, "run --system -n 3 --map-by node --kill-on-bad-exit none sh -c")
        .arg("[ $PMIX_RANK = 1 ] && exit 3; exec sleep 1000")
        .start();
    eventually("one rank has ended", || {
        let outcome = site.px(3, &format!("stacks --system {}", name())).run();
        outcome.stdout.starts_with("sleep  [ranks 0, 2]\n")
            && outcome.stderr.contains("no stacks of rank 1: it does not run")
    });
    site.px(1, &format!("kill --system {}:0,2", name())).run().expect_code(0);
    other.wait().expect_failure();
    site.px(1, "dvm stop --system").run().expect_code(0);
    dvm.wait().expect_code(0);
    site.expect_nothing_left();
}

fn job_of(site: &Site) -> String {
    let ps = site.px(1, "ps --system --json").run();
    let json: Value = serde_json::from_str(ps.stdout.lines().next().unwrap_or("{}")).unwrap_or_default();
    json["jobs"][0]["job"].as_str().unwrap_or_default().to_owned()
}
