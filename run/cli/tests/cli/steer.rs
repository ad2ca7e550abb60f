//! `px ctl`, `px kill` and `px wait`: jobs that run elsewhere are steered, and waited for.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory for the files of servers, so that only those of this test are found.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_px"));
        command.args(words).current_dir(self.0.path()).env("TMPDIR", self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null());
        command
    }

    fn px(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("px runs")
    }

    /// A job of two ranks whose launcher waits for it: the launcher, and the name of the job.
    fn launcher(&self, options: &[&str]) -> (Child, String) {
        let words =
            [&["run", "-n", "2"], options, &["sh", "-c", "echo >ready.$PMIX_RANK; exec sleep 1000"]].concat();
        let mut command = self.command(&words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("px runs");
        self.wait_for("both ranks", || exists(&self.path("ready.0")) && exists(&self.path("ready.1")));
        let shown = said(&self.px(&["ps", "--pid", &child.id().to_string()]).stdout);
        let name = shown.split_whitespace().find(|word| word.contains('@')).expect("a job").to_owned();
        (child, name)
    }

    /// Starts a script as the ranks of a job that goes on by itself: its name.
    fn job(&self, ranks: &str, script: &str) -> String {
        let started = self.px(&["run", "-q", "--detach", "-n", ranks, "sh", "-c", script]);
        assert!(started.status.success(), "{started:?}");
        said(&started.stdout).trim().to_owned()
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let since = Instant::now();
        while !condition() {
            assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn exists(path: &Path) -> bool {
    path.exists()
}

#[test]
fn ranks_are_paused_and_resumed_as_asked() {
    let place = Place::new();
    let job = place.job("3", "until [ -e go ]; do sleep 0.02; done");
    let paused = place.px(&["ctl", "pause", &format!("{job}:0,2")]);
    assert_eq!(said(&paused.stdout), format!("{job}: ranks 0, 2: paused\n"), "{paused:?}");
    let shown = said(&place.px(&["ps", &job]).stdout);
    let states: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(states.iter().filter(|state| **state == "paused").count(), 2, "{shown}");
    let resumed = place.px(&["ctl", "resume", &job, "--json"]);
    let line = said(&resumed.stdout);
    assert_eq!(
        line,
        format!("{{\"failed\":[],\"job\":\"{job}\",\"ranks\":\"0-2\",\"what\":\"resumed\"}}\n"),
        "{resumed:?}"
    );
    std::fs::write(place.path("go"), "").expect("a file");
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(0));
}

#[test]
fn a_signal_reaches_the_ranks_that_are_named() {
    let place = Place::new();
    let script =
        "trap 'echo >caught.$PMIX_RANK; exit 7' USR1; echo >ready.$PMIX_RANK; while :; do sleep 0.02; done";
    let job = place.job("2", script);
    place.wait_for("both ranks", || exists(&place.path("ready.0")) && exists(&place.path("ready.1")));
    let sent = place.px(&["ctl", "signal", "--signal", "usr1", &format!("{job}:1")]);
    assert_eq!(said(&sent.stdout), format!("{job}: rank 1: sent SIGUSR1\n"), "{sent:?}");
    let waited = place.px(&["wait", &job, "--json"]);
    assert_eq!(said(&waited.stdout), format!("{{\"exit_code\":7,\"job\":\"{job}\"}}\n"));
    assert_eq!(waited.status.code(), Some(7), "{waited:?}");
    assert!(exists(&place.path("caught.1")) && !exists(&place.path("caught.0")));
}

#[test]
fn a_job_that_was_ended_has_not_succeeded() {
    let place = Place::new();
    for (words, code) in [(&["kill"][..], 143), (&["kill", "-s", "9"], 137), (&["ctl", "kill"], 137)] {
        let job = place.job("2", "exec sleep 1000");
        let ended = place.px(&[words, &[job.as_str()]].concat());
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(place.px(&["wait", &job]).status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn the_end_of_some_ranks_is_told_at_once_and_in_the_end() {
    let place = Place::new();
    let (launcher, job) = place.launcher(&["--timeout", "5"]);
    assert!(place.px(&["ctl", "kill", &format!("{job}:0")]).status.success());
    let ended = launcher.wait_with_output().expect("px ends");
    let text = said(&ended.stderr);
    assert_eq!(ended.status.code(), Some(124), "{text}");
    assert!(text.contains("rank 0: ended by ") && text.contains("(SIGKILL); the others go on"), "{text}");
    assert!(text.contains("its time limit; rank 1 was still running"), "{text}");
}

#[test]
fn a_launcher_that_is_stopped_says_by_whom() {
    let place = Place::new();
    let (launcher, _) = place.launcher(&[]);
    assert!(place.px(&["dvm", "stop", "--pid", &launcher.id().to_string()]).status.success());
    let ended = launcher.wait_with_output().expect("px ends");
    let text = said(&ended.stderr);
    assert_eq!(ended.status.code(), Some(143), "{text}");
    assert!(text.contains("the job was ended by ") && text.contains("by job control (SIGTERM)"), "{text}");
}

#[test]
fn requests_with_a_name_are_known_afterwards() {
    let place = Place::new();
    let job = place.job("2", "exec sleep 1000");
    assert!(place.px(&["ctl", "pause", "--id", "night", &job]).status.success());
    let shown = place.px(&["ctl", "status", "night", "--json"]);
    let line = said(&shown.stdout);
    assert!(shown.status.success() && line.contains("\"state\":\"done\""), "{shown:?}");
    assert!(line.contains("\"ranks\":\"0-1\""), "{line}");
    let words = said(&place.px(&["ctl", "status", "night"]).stdout);
    assert!(words.starts_with("night: done ") && words.contains(": ranks 0-1: done\n"), "{words}");
    for (what, why) in [("status", "knows no request 'day'"), ("cancel", "no request 'day' is under way")] {
        let unknown = place.px(&["ctl", what, "day"]);
        assert!(!unknown.status.success() && said(&unknown.stderr).contains(why), "{unknown:?}");
    }
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

#[test]
fn who_ends_ranks_says_how_long_they_may_take() {
    let place = Place::new();
    let job = place.job("1", "trap '' TERM; echo >deaf; while :; do sleep 0.02; done");
    place.wait_for("the rank", || exists(&place.path("deaf")));
    let since = Instant::now();
    assert!(place.px(&["ctl", "terminate", "--grace", "50ms", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
    assert!(since.elapsed() < Duration::from_secs(3), "that is the time without the option");
}

#[test]
fn who_waits_too_long_gives_up() {
    let place = Place::new();
    let job = place.job("1", "exec sleep 1000");
    let waited = place.px(&["wait", &job, "--timeout", "50ms"]);
    assert_eq!(waited.status.code(), Some(124));
    assert!(said(&waited.stderr).contains("has not ended in the time of '--timeout'"), "{waited:?}");
    assert!(place.px(&["kill", &job]).status.success());
}

#[test]
fn what_cannot_be_steered_is_an_error() {
    let place = Place::new();
    let job = place.job("2", "exec sleep 1000");
    for (words, why) in [
        (vec!["ctl", "pause", "nobody@1"], "does not know the job nobody@1"),
        (vec!["wait", "nobody@1"], "does not know the job nobody@1"),
        (vec!["wait", "nobody@1:3"], "only whole jobs can be waited for"),
        (vec!["ctl", "signal", "-s", "STOPP", "a"], "expected a signal such as USR1, SIGUSR1 or 10"),
    ] {
        let refused = place.px(&words);
        assert!(!refused.status.success() && said(&refused.stderr).contains(why), "{refused:?}");
    }
    let beyond = place.px(&["kill", &format!("{job}:7"), &job]);
    assert!(said(&beyond.stderr).contains("has no rank 7"), "{beyond:?}");
    // The other target was not left out.
    assert_eq!(beyond.status.code(), Some(1));
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

const PATIENCE: Duration = Duration::from_secs(60);
