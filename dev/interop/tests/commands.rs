//! The commands that talk to servers: `px ps`, `query`, `attach`, `publish`, `events`, `why`, against `px run` and the
//! launchers of others.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job, Library::OpenMpi5, Outcome, Running, debian_file, eventually, host, new_directory, px, px_binary,
    wheel,
};
use rustix::process::Signal;

/// A command that means the server `running`: a search would find those of other tests, too.
fn command<'a>(running: &Running, arguments: impl IntoIterator<Item = &'a str>) -> Job {
    let job = Job::new(px_binary()).args(arguments).args(["--pid", &running.pid().to_string()]);
    job.env("TMPDIR", running.tmpdir()).deadline(60)
}

fn says(running: &Running, arguments: &str) -> Outcome {
    command(running, arguments.split(' ')).run()
}

/// `px attach`, whose output goes into a file.
fn attached(running: &Running, arguments: &str, seen: &Path) -> Running {
    let attach = format!(
        "exec {} attach --pid {} {arguments} > {}",
        px_binary().display(),
        running.pid(),
        seen.display()
    );
    Job::new("/bin/sh").args(["-c", &attach]).env("TMPDIR", running.tmpdir()).deadline(60).start()
}

/// Once `px ps` shows a line with all of these words.
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
    let script = format!("until [ -e {} ]; do echo this is rank $PMIX_RANK; sleep 0.1; done", over.display());
    let running = px(["-n", "2", "sh", "-c", &script]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    let attached = attached(&running, &format!("{job}:1"), &seen);
    let text = || fs::read_to_string(&seen).unwrap_or_default();
    eventually("the output is there", || text().contains("this is rank 1\n"));
    fs::write(&over, "").expect("writing");
    attached.wait().expect_code(0);
    assert!(text().lines().all(|line| line == "this is rank 1"), "{}", text());
    let outcome = running.wait().expect_code(0).expect_nothing_left();
    outcome.expect_stdout(&["this is rank 0\n", "this is rank 1\n"]);
}

#[test]
fn attach_begins_with_what_was_written_before_if_it_is_asked_to() {
    let place = new_directory();
    let over = place.path().join("over");
    let script =
        format!("echo early; until [ -e {} ]; do sleep 0.1; done; echo late; sleep 1000", over.display());
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
    let [written, over, seen] = ["written", "over", "seen"].map(|name| place.path().join(name));
    let script = format!(
        "seq 1 40000; touch {}; until [ -e {} ]; do sleep 0.1; done; echo late",
        written.display(),
        over.display()
    );
    let running = px(["-n", "1", "sh", "-c", &script]).start();
    let job = job(&running);
    eventually("more is written than is kept", || written.exists());
    let attached = attached(&running, &format!("--since-start {job}"), &seen);
    eventually("what was kept is there", || fs::read(&seen).is_ok_and(|seen| seen.starts_with(b"1\n2\n")));
    fs::write(&over, "").expect("writing");
    let outcome = attached.wait().expect_code(0);
    let whole: usize = (1..=40_000).map(|n: u32| n.to_string().len() + 1).sum::<usize>() + "late\n".len();
    let missing = whole - fs::read(&seen).expect("readable").len();
    assert!(missing > 0);
    let _ = outcome
        .expect_stderr(&[&format!("px: here {missing} bytes of rank 0's standard output are missing")]);
    let _ = running.wait().expect_code(0);
}

#[test]
fn leaving_does_not_hurt_the_job() {
    let running = px(["-n", "1", "sleep", "1000"]).start();
    let job = job(&running);
    shown(&running, "ps", &[&job, "running"]);
    let attached = command(&running, ["attach", &job]).start();
    attached.signal(Signal::INT);
    let _ = attached.wait();
    shown(&running, "ps -r", &["0", "running", &host()]);
    says(&running, &format!("attach {job}:7")).expect_failure().expect_stderr(&["has no rank 7"]);
    says(&running, "attach nobody@1").expect_failure().expect_stderr(&["nobody@1", "'px ps' lists the jobs"]);
    running.end();
}

#[test]
fn what_one_call_publishes_others_find_and_withdraw() {
    let running = px(["-n", "1", "sleep", "1000"]).start();
    shown(&running, "ps", &["running"]);
    says(&running, "publish port=tcp://here:1 other=x").expect_code(0);
    says(&running, "lookup port --wait 10s").expect_code(0).expect_lines(["port = tcp://here:1"]);
    says(&running, "publish port=again").expect_failure().expect_stderr(&["DUPLICATE"]);
    says(&running, "unpublish port").expect_code(0);
    let late = says(&running, "lookup port --wait 1s").expect_failure();
    late.expect_stderr(&["nobody has published all of port in time"]);
    let outcome = says(&running, "lookup port other").expect_failure();
    outcome.assert_line("other = x");
    outcome.expect_stderr(&["nobody has published port"]);
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
    says(&running, &format!("query QUERY_PROC_RESOURCE_USAGE:NSPACE={job}:RANK=1 QUERY_NODE_RESOURCE_USAGE"))
        .expect_code(0)
        .expect_stdout(&[
            "PMIX_PROC_RSS: ",
            "PMIX_PROC_PERCENT_CPU: ",
            "PMIX_PROC_OS_STATE: S",
            "PMIX_NODE_MEM_TOTAL: ",
        ]);
    let uri = says(&running, "query SERVER_URI").expect_code(0);
    uri.expect_stdout(&[&format!("PMIX_SERVER_URI: px-{}-{}.0;tcp4://127.0.0.1:", host(), running.pid())]);
    // Neither is there.
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
    says(&running, "why").expect_code(0).assert_line("nothing is waited for");
    running.end();
}

#[test]
fn events_are_followed() {
    // One rank after the other fails, so that whoever comes late sees some.
    let script = "sleep $PMIX_RANK; exit 3";
    let running = px(["-n", "60", "--kill-on-bad-exit", "none", "sh", "-c", script]).start();
    shown(&running, "ps", &["running"]);
    says(&running, "events --code EVENT_PROC_TERMINATED --count 1")
        .expect_code(0)
        .expect_stdout(&["PMIX_EVENT_PROC_TERMINATED", "PMIX_EXIT_CODE=3"]);
    says(&running, "events --count 0").expect_code(2).expect_stderr(&["'0' is no value of '--count"]);
    says(&running, "events --code EVENT_JOB_ENT").expect_code(2).expect_stderr(&["PMIX_EVENT_JOB_END"]);
    running.end();
}

/// The launcher of Open MPI 5 with a job that ends when the file is there, once it answers.
fn prterun(over: &Path) -> Running {
    // Ranks go on when their launcher is killed, but not without the place of the test.
    let place = over.parent().expect("a directory").display();
    let script = format!("while [ -d {place} ] && ! [ -e {} ]; do sleep 0.05; done; exit 3", over.display());
    let running = Job::new(wheel().root.join("bin/mpirun"))
        .args(["--allow-run-as-root", "-n", "1", "--map-by", ":OVERSUBSCRIBE", "sh", "-c", &script])
        .with(OpenMpi5)
        .start();
    let job = format!("prterun-{}-{}@1", host(), running.pid());
    eventually("it answers", || says(&running, "ps").stdout.contains(&job));
    running
}

#[test]
fn events_of_the_launcher_of_open_mpi_5_are_followed() {
    let place = new_directory();
    for (number, which) in ["", " --code EVENT_JOB_END"].into_iter().enumerate() {
        let over = place.path().join(format!("over{number}"));
        let running = prterun(&over);
        let ready = place.path().join(format!("ready{number}"));
        let script = format!("\"$@\" | tee {}", ready.display());
        let pid = running.pid().to_string();
        let words = format!("events --count 1 --pid {pid}{which}");
        let watching = Job::new("sh").args(["-c", &script, "sh"]).arg(px_binary()).args(words.split(' '));
        let watching = watching.env("TMPDIR", running.tmpdir()).deadline(60).start();
        // It counts tools as jobs.
        let known = format!("events --count 1 --pid {pid}");
        eventually("it is there", || says(&running, "ps").stdout.contains(&known));
        fs::write(&over, "").expect("writing");
        let seen = watching.wait().expect_code(0);
        let _ = seen.expect_stdout(&["PMIX_EVENT_JOB_END", "PMIX_JOB_TERM_STATUS=status 3"]);
        // It does not end by itself when it has served tools.
        running.signal(Signal::KILL);
        let _ = running.wait();
    }
}

#[test]
fn the_launcher_of_open_mpi_5_keeps_what_was_published_and_cannot_withdraw_it() {
    // It leaves some calls without an answer, closes some connections that come right behind others, and has been seen to answer
    // nobody any more.
    let kept = (0..4).any(|_| {
        let place = new_directory();
        let running = prterun(&place.path().join("over"));
        let kept = keeps_and_cannot_withdraw(&running);
        running.signal(Signal::KILL);
        let _ = running.wait();
        kept
    });
    assert!(kept, "none of four launchers did");
}

fn keeps_and_cannot_withdraw(running: &Running) -> bool {
    let says = |line: &str| command(running, line.split(' ')).deadline(10).run();
    let mut last = 0;
    says("publish port=tcp://here:1").expect_code(0);
    soon(|| says("lookup port").stdout == "port = tcp://here:1\n")
        && soon(|| {
            let said = "cannot withdraw: the server does not know 'px publish' again";
            says("unpublish port").stderr.contains(said)
        })
        && soon(|| {
            last += 1;
            says(&format!("publish k{last}=x")).stderr.contains("nobody can withdraw this")
        })
        && soon(|| says(&format!("lookup port k{last}")).stdout.lines().count() == 2)
}

fn soon(mut said: impl FnMut() -> bool) -> bool {
    (0..4).any(|_| said())
}

#[test]
fn calls_that_publish_at_the_same_time_wait_for_each_other() {
    let running = px(["-n", "1", "sleep", "1000"]).start();
    shown(&running, "ps", &["running"]);
    let all: Vec<Running> =
        (0..6).map(|n| command(&running, ["publish", &format!("k{n}=x")]).start()).collect();
    for publishing in all {
        let published = publishing.wait().expect_code(0);
        assert_eq!(published.stderr, "", "{published}");
    }
    says(&running, "unpublish k0 k1 k2 k3 k4 k5").expect_code(0);
    says(&running, "lookup k0 k5").expect_failure().expect_stderr(&["nobody has published k0, k5"]);
    running.end();
}

#[test]
fn the_launcher_of_open_mpi_4_takes_no_tools() {
    let mpirun = debian_file("/usr/bin/mpirun.openmpi", "openmpi-bin");
    let arguments = ["--allow-run-as-root", "--oversubscribe", "-n", "1", "sleep", "1000"];
    let running = Job::new(mpirun).args(arguments).deadline(120).start();
    let started = || fs::read_dir(running.tmpdir()).is_ok_and(|mut entries| entries.next().is_some());
    eventually("its session directory is there", started);
    let pid = running.pid().to_string();
    says(&running, "ps").expect_failure().expect_stderr(&[&format!("tool.{pid} below")]);
    running.signal(Signal::TERM);
    let _ = running.wait();
}
