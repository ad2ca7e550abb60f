//! The commands that talk to servers: `px ps`, `query`, `attach`, `publish`, `events`, `why`, with `px run` and with other
//! launchers.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use phalanx_interop::{
    Job, Outcome, Running, debian_file, eventually, host, lives, new_directory, px, px_binary, some_prterun,
    soon,
};
use rustix::process::Signal;

/// A command for the server `running`: a search would also find those of other tests.
fn command<'a>(running: &Running, arguments: impl IntoIterator<Item = &'a str>) -> Job {
    let job = Job::new(px_binary()).args(arguments).args(["--pid", &running.pid().to_string()]);
    job.env("TMPDIR", running.tmpdir())
}

fn says(running: &Running, arguments: &str) -> Outcome {
    command(running, arguments.split(' ')).run()
}

/// `px attach` with its output in a file.
fn attached(running: &Running, arguments: &str, seen: &Path) -> Running {
    let attach = format!(
        "exec '{}' attach --pid {} {arguments} > '{}'",
        px_binary().display(),
        running.pid(),
        seen.display()
    );
    Job::new("/bin/sh").args(["-c", &attach]).env("TMPDIR", running.tmpdir()).start()
}

/// Waits until `px ps` shows a line with all of these words.
fn shown(running: &Running, arguments: &str, words: &[&str]) {
    let line = |line: &str| words.iter().all(|word| line.split_whitespace().any(|w| w == *word));
    eventually("px ps shows it", || says(running, arguments).stdout.lines().any(line));
}

fn job(running: &Running) -> String {
    format!("px-{}-{pid}@{pid}", host(), pid = running.pid())
}

#[test]
fn ps_tells_the_states_of_ranks() {
    let script = "case $PMIX_RANK in 0) exit 0;; 1) exit 3;; 2) kill -9 $$;; *) sleep 1000;; esac";
    let running = px(["-n", "4", "--kill-on-bad-exit", "none", "sh", "-c", script]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    shown(&running, "ps -r", &["0", "ended", "0"]);
    shown(&running, &format!("ps {job}"), &["1", "ended", "3"]);
    shown(&running, &format!("ps {job}"), &["2", "died", "SIGKILL"]);
    shown(&running, "ps --ranks", &["3", "running", &host()]);
    let json = says(&running, "ps --json").expect_code(0);
    json.expect_stdout(&[
        &format!("\"pid\":{},\"problem\":null", running.pid()),
        &format!("\"job\":\"{job}\""),
        "\"exit_code\":3",
        "\"state\":\"running\"",
    ]);
    says(&running, "ps nobody@1").expect_failure().expect_stderr(&["no server knows a job 'nobody@1'"]);
    running.end();
}

#[test]
fn attach_shows_the_output_of_the_ranks_that_are_meant() {
    let place = new_directory();
    let (seen, over) = (place.path().join("seen"), place.path().join("over"));
    let script =
        format!("until [ -e '{}' ]; do echo this is rank $PMIX_RANK; sleep 0.1; done", over.display());
    let running = px(["-n", "2", "sh", "-c", &script]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    let attached = attached(&running, &format!("{job}:1"), &seen);
    let text = || fs::read_to_string(&seen).unwrap_or_default();
    eventually("the output is there", || text().contains("this is rank 1\n"));
    running.until_said("this is rank 0\n");
    fs::write(&over, "").expect("writing");
    attached.wait().expect_code(0);
    assert!(text().lines().all(|line| line == "this is rank 1"), "{}", text());
    let outcome = running.wait().expect_code(0).expect_nothing_left();
    outcome.expect_stdout(&["this is rank 0\n", "this is rank 1\n"]);
}

#[test]
fn attach_since_start_shows_earlier_output() {
    let place = new_directory();
    let over = place.path().join("over");
    let script =
        format!("echo early; until [ -e '{}' ]; do sleep 0.1; done; echo late; sleep 1000", over.display());
    let running = px(["-n", "1", "sh", "-c", &script]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    let seen = place.path().join("seen");
    let attached = attached(&running, &format!("--since-start {job}"), &seen);
    let shows = |text: &str| fs::read_to_string(&seen).is_ok_and(|seen| seen == text);
    eventually("what was written before is there", || shows("early\n"));
    fs::write(&over, "").expect("writing");
    eventually("what is written now is there", || shows("early\nlate\n"));
    running.end();
    let _ = attached.wait();
}

#[test]
fn attach_says_what_is_missing_where_not_everything_was_kept() {
    let place = new_directory();
    let [over, seen] = ["over", "seen"].map(|name| place.path().join(name));
    let script = format!("seq 1 40000; until [ -e '{}' ]; do sleep 0.1; done; echo late", over.display());
    let running = px(["-n", "1", "sh", "-c", &script]).start();
    let job = job(&running);
    // More output has arrived than is kept.
    running.until_said("\n40000\n");
    let attached = attached(&running, &format!("--since-start {job}"), &seen);
    eventually("what was kept is there", || fs::read(&seen).is_ok_and(|seen| seen.starts_with(b"1\n2\n")));
    fs::write(&over, "").expect("writing");
    let outcome = attached.wait().expect_code(0);
    let whole: usize = (1..=40_000).map(|n: u32| n.to_string().len() + 1).sum::<usize>() + "late\n".len();
    let missing = whole - fs::read(&seen).expect("readable").len();
    assert!(missing > 0);
    let _ = outcome
        .expect_stderr(&[&format!("px: {missing} bytes of rank 0's standard output are missing here")]);
    let _ = running.wait().expect_code(0);
}

#[test]
fn leaving_does_not_hurt_the_job() {
    let running = px(["-n", "1", "sh", "-c", "echo begun; exec sleep 1000"]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    let attached = command(&running, ["attach", "--since-start", &job]).start();
    attached.until_said("begun\n");
    attached.signal(Signal::INT);
    let _ = attached.wait();
    shown(&running, "ps -r", &["0", "running", &host()]);
    says(&running, &format!("attach {job}:7")).expect_failure().expect_stderr(&["has no rank 7"]);
    says(&running, "attach nobody@1").expect_failure().expect_stderr(&["nobody@1", "'px ps' lists the jobs"]);
    running.end();
}

#[test]
fn values_published_by_one_command_serve_others() {
    let running = px(["-n", "1", "sleep", "1000"]).start();
    shown(&running, "ps", &["running"]);
    says(&running, "publish port=tcp://here:1 other=x").expect_code(0);
    says(&running, "lookup port --wait 200s").expect_code(0).expect_lines(["port = tcp://here:1"]);
    says(&running, "publish port=again").expect_failure().expect_stderr(&["DUPLICATE"]);
    says(&running, "unpublish port").expect_code(0);
    let late = says(&running, "lookup port --wait 1s").expect_failure();
    late.expect_stderr(&["nobody has published all of 'port' in time"]);
    let outcome = says(&running, "lookup port other").expect_failure();
    outcome.assert_line("other = x");
    outcome.expect_stderr(&["nobody has published 'port'"]);
    running.end();
}

#[test]
fn a_query_is_answered_or_says_why_not() {
    let running = px(["-n", "3", "sleep", "1000"]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    says(&running, &format!("query JOB_SIZE:NSPACE={job} HOSTNAME:NSPACE={job}:RANK=2"))
        .expect_code(0)
        .expect_lines(["PMIX_JOB_SIZE: 3".to_owned(), format!("PMIX_HOSTNAME: {}", host())]);
    says(&running, &format!("query QUERY_MEMORY_USAGE:NSPACE={job}")).expect_code(0).expect_stdout(&[
        "PMIX_DAEMON_MEMORY: ",
        "PMIX_CLIENT_AVG_MEMORY: ",
        "phalanx.memory: ",
    ]);
    let usage = format!("query QUERY_PROC_RESOURCE_USAGE:NSPACE={job}:RANK=1 QUERY_NODE_RESOURCE_USAGE");
    eventually("the rank sleeps", || says(&running, &usage).stdout.contains("PMIX_PROC_OS_STATE: S"));
    says(&running, &usage).expect_code(0).expect_stdout(&[
        "PMIX_PROC_RSS: ",
        "PMIX_PROC_PERCENT_CPU: ",
        "PMIX_NODE_MEM_TOTAL: ",
    ]);
    let uri = says(&running, "query SERVER_URI").expect_code(0);
    uri.expect_stdout(&[&format!("PMIX_SERVER_URI: px-{}-{}.0;tcp4://127.0.0.1:", host(), running.pid())]);
    // Neither exists.
    for question in ["SERVER_URI:NODEID=7", "QUERY_ALLOC_STATUS:ALLOC_ID=mine", "QUERY_ALLOC_STATUS"] {
        says(&running, &format!("query {question}")).expect_failure().expect_stderr(&["PMIX_ERR_NOT_"]);
    }
    says(&running, "query QUERY_ALLOC_STATUS").expect_failure().expect_stderr(&["PMIX_ERR_NOT_FOUND"]);
    says(&running, "query --list").expect_code(0).expect_stdout(&[
        "PMIX_CLIENT_ATTRIBUTES:",
        "PMIX_SERVER_ATTRIBUTES:",
        "PMIX_HOST_ATTRIBUTES:",
        "  PMIx_Spawn:\n    PMIX_",
    ]);
    let queues = says(&running, "query QUERY_QUEUE_LIST").expect_failure();
    queues.expect_stderr(&["PMIX_QUERY_QUEUE_LIST", "PMIX_ERR_NOT_SUPPORTED", "'px query --list'"]);
    says(&running, "query JOB_SIZE")
        .expect_failure()
        .expect_stderr(&["does not answer PMIX_JOB_SIZE", "KEY:NSPACE=JOB"]);
    says(&running, &format!("query PROC_PID:NSPACE={job}:RANK=9"))
        .expect_failure()
        .expect_stderr(&["does not answer PMIX_PROC_PID: PMIX_ERR_NOT_FOUND", "'px ps --ranks'"]);
    says(&running, "query NOTHING_LIKE_IT")
        .expect_code(2)
        .expect_stderr(&["there is no attribute", "'px query --list'"]);
    says(&running, "query JOB_SIZ")
        .expect_code(2)
        .expect_stderr(&["the nearest attribute is 'PMIX_JOB_SIZE'"]);
    says(&running, "why").expect_code(0).assert_line("nothing is waiting");
    running.end();
}

#[test]
fn events_are_followed() {
    let place = new_directory();
    let gate = |rank: u32| place.path().join(rank.to_string());
    let script = format!("until [ -e '{}'/$PMIX_RANK ]; do sleep 0.1; done; exit 3", place.path().display());
    let running = px(["-n", "31", "--kill-on-bad-exit", "none", "sh", "-c", &script]).start();
    shown(&running, "ps", &["running"]);
    let follows = command(&running, ["events", "--code", "EVENT_PROC_TERMINATED", "--count", "1"]).start();
    // One rank after another fails, with growing pauses, until `events` sees it: the test cannot tell when its registration is complete.
    let mut pause = Duration::from_millis(50);
    for rank in (0..30).take_while(|_| lives(follows.pid())) {
        fs::write(gate(rank), "").expect("writing");
        std::thread::sleep(pause);
        pause = pause * 5 / 4;
    }
    follows.wait().expect_code(0).expect_stdout(&["PMIX_EVENT_PROC_TERMINATED", "PMIX_EXIT_CODE=3"]);
    says(&running, "events --count 0").expect_code(2).expect_stderr(&["invalid value '0' for '--count"]);
    says(&running, "events --code EVENT_JOB_ENT").expect_code(2).expect_stderr(&["PMIX_EVENT_JOB_END"]);
    running.end();
}

#[test]
fn events_of_the_launcher_of_open_mpi_5_are_followed() {
    for which in [&[][..], &["--code", "EVENT_JOB_END"]] {
        some_prterun(":", |launcher| {
            let watching = launcher.command(&[&["events", "--count", "1"][..], which].concat());
            let watching = watching.start();
            // The launcher counts tools as jobs.
            let known = format!("events --pid {} --count 1", launcher.running.pid());
            if !soon(|| launcher.shows(&["ps"], &[&known])) {
                return false;
            }
            // The job of a tool that the launcher counts also ends.
            fs::write(&launcher.over, "").expect("writing");
            watching.wait().shows(&["PMIX_EVENT_JOB_END", "PMIX_JOB_TERM_STATUS=status 3"])
        });
    }
}

#[test]
fn calls_that_publish_at_the_same_time_wait_for_each_other() {
    let running = px(["-n", "1", "sleep", "1000"]).start();
    shown(&running, "ps", &["running"]);
    // A call that waits for many seconds publishes anyway, but prints that the data cannot be withdrawn.
    let all_wait = |round: u32| {
        let publish = |n: u32| command(&running, ["publish", &format!("k{n}.{round}=x")]).start();
        let all: Vec<Running> = (0..6).map(publish).collect();
        let all: Vec<Outcome> = all.into_iter().map(|publishing| publishing.wait().expect_code(0)).collect();
        all.iter().all(|published| published.stderr.is_empty())
    };
    let round = (0..20).find(|round| all_wait(*round)).expect("a round in which all have waited");
    let all = (0..6).map(|n| format!("k{n}.{round}"));
    command(&running, ["unpublish"]).args(all).run().expect_code(0);
    let two = format!("k0.{round} k5.{round}");
    let gone = says(&running, &format!("lookup {two}")).expect_failure();
    gone.expect_stderr(&[&format!("nobody has published '{}'", two.replace(' ', "', '"))]);
    running.end();
}

#[test]
fn the_launcher_of_open_mpi_4_takes_no_tools() {
    let mpirun = debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin");
    let arguments = ["--allow-run-as-root", "--oversubscribe", "-n", "1", "sleep", "1000"];
    let running = Job::new(mpirun).args(arguments).start();
    let started = || fs::read_dir(running.tmpdir()).is_ok_and(|mut entries| entries.next().is_some());
    eventually("its session directory is there", started);
    let pid = running.pid().to_string();
    says(&running, "ps").expect_failure().expect_stderr(&[&format!("tool.{pid} below")]);
    running.signal(Signal::TERM);
    let _ = running.wait();
}
