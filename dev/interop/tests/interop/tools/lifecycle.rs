//! Tools are notified of the life of their spawned jobs (the standard's *Tracking the job lifecycle*).

use phalanx_interop::Library::{Pmix4, Pmix5};
use phalanx_interop::{Job, libpmix, pmix_tool, px_binary};
use rustix::process::Signal;

/// Checks the tool's report of its events, on libpmix 4.2, 5.0 and ours.
fn expect_heard(part: &str, expected: &[&str]) {
    let tool = || Job::new(pmix_tool("lifecycle"));
    let ours = tool().env("LD_LIBRARY_PATH", libpmix());
    for tool in [tool().with(Pmix4), tool().with(Pmix5), ours] {
        let dvm = Job::new(px_binary()).args(["dvm", "start"]).start();
        dvm.until_said("is ready");
        let tool = tool.args([&dvm.pid().to_string(), part]).env("TMPDIR", dvm.tmpdir());
        let outcome = tool.run().expect_code(0);
        dvm.signal(Signal::TERM);
        let _ = dvm.wait();
        assert_eq!(by_job(outcome.stdout.lines()), by_job(expected.iter().copied()));
    }
}

/// A process of a job may end before the last one runs: the lines between the first and the last event are sorted.
fn by_job<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let lines: Vec<&str> = lines.collect();
    let jobs = lines.split_inclusive(|line| line.starts_with("job end"));
    let sorted = jobs.map(|job| {
        let mut job = job.to_vec();
        if let [_, between @ .., _] = &mut job[..] {
            between.sort_unstable();
        }
        job
    });
    sorted.collect()
}

#[test]
fn a_tool_hears_of_the_life_of_its_jobs() {
    expect_heard(
        "live",
        &[
            "job start of -2: status -, first -, exit -",
            "launch complete of -2: status -, first -, exit -",
            "job end of -2: status success, first -, exit 0",
            "job start of -2: status -, first -, exit -",
            "launch complete of -2: status -, first -, exit -",
            "process terminated of 1: status -, first -, exit 3",
            "job end of -2: status non-zero, first 1, exit 3",
            "job start of -2: status -, first -, exit -",
            "launch complete of -2: status -, first -, exit -",
            "process terminated of 0: status -, first -, exit 0",
            "job end of -2: status success, first -, exit 0",
            "job start of -2: status -, first -, exit -",
            "launch complete of -2: status -, first -, exit -",
            "process terminated of 0: status -, first -, exit 139",
            "job end of -2: status signal, first 0, exit 139",
        ],
    );
}

#[test]
fn a_tool_that_asks_late_hears_of_the_end_of_its_job() {
    expect_heard(
        "late",
        &[
            "job start of -2: status -, first -, exit -",
            "launch complete of -2: status -, first -, exit -",
            "process terminated of 0: status -, first -, exit 4",
            "job end of -2: status non-zero, first 0, exit 4",
        ],
    );
}
