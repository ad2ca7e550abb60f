//! `px ctl`, `px kill` and `px wait`: acting on jobs that run elsewhere, and waiting for them.

#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory for the files of servers, so that only those of this test are found.
pub(crate) struct OwnTmp(tempfile::TempDir);

impl OwnTmp {
    pub(crate) fn new() -> OwnTmp {
        OwnTmp(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_px"));
        command.args(words).current_dir(self.0.path()).env("TMPDIR", self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn px(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("px runs")
    }

    /// A job of two ranks with a launcher that waits for it; returns the launcher and the name of the job.
    fn launcher(&self, options: &[&str]) -> (Child, String) {
        let child = self.start(options);
        let name = self.job_of(child.id());
        (child, name)
    }

    fn start(&self, options: &[&str]) -> Child {
        let words =
            [&["run", "-n", "2"], options, &["sh", "-c", "echo >ready.$PMIX_RANK; exec sleep 1000"]].concat();
        let ready = [0, 1].map(|rank| self.path(&format!("ready.{rank}")));
        for file in ready.iter().filter(|file| exists(file)) {
            std::fs::remove_file(file).expect("an old file");
        }
        let mut command = self.command(&words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("px runs");
        self.wait_for("both ranks", || ready.iter().all(|file| exists(file)));
        child
    }

    /// The name of the job that this server runs.
    fn job_of(&self, server: u32) -> String {
        let shown = said(&self.px(&["ps", "--pid", &server.to_string()]).stdout);
        shown.split_whitespace().find(|word| word.contains('@')).expect("a job").to_owned()
    }

    /// Starts a script as the ranks of a detached job; returns its name.
    pub(crate) fn job(&self, ranks: &str, script: &str) -> String {
        let started = self.px(&["run", "-q", "--detach", "-n", ranks, "sh", "-c", script]);
        assert!(started.status.success(), "{started:?}");
        said(&started.stdout).trim().to_owned()
    }

    /// The pid that a process has written into a file of this name.
    fn pid(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.path(name)).ok()?.trim().parse().ok()
    }

    /// What that process does, in the letter of the kernel; none if it is gone.
    fn state(&self, name: &str) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid(name)?)).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().next().map(str::to_owned)
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let since = Instant::now();
        while !condition() {
            assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(crate) fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn exists(path: &Path) -> bool {
    path.exists()
}

#[test]
fn ranks_are_paused_and_resumed_as_asked() {
    let place = OwnTmp::new();
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
    let place = OwnTmp::new();
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
    let place = OwnTmp::new();
    for (words, code) in [(&["kill"][..], 143), (&["kill", "-s", "9"], 137), (&["ctl", "kill"], 137)] {
        let job = place.job("2", "exec sleep 1000");
        let ended = place.px(&[words, &[job.as_str()]].concat());
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(place.px(&["wait", &job]).status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn ends_of_some_ranks_are_reported_at_once_and_at_the_end() {
    let place = OwnTmp::new();
    let (launcher, job) = place.launcher(&["--timeout", "5"]);
    assert!(place.px(&["ctl", "kill", &format!("{job}:0")]).status.success());
    let ended = launcher.wait_with_output().expect("px ends");
    let text = said(&ended.stderr);
    assert_eq!(ended.status.code(), Some(124), "{text}");
    assert!(text.contains("rank 0: ended by ") && text.contains("(SIGKILL); the others go on"), "{text}");
    assert!(text.contains("its time limit; rank 1 was still running"), "{text}");
    assert!(names_the_tool(&text, &format!("px ctl kill {job}:0")), "{text}");
}

#[test]
fn nobody_is_left_when_the_last_rank_is_ended() {
    let place = OwnTmp::new();
    let script = "echo >ready.$PMIX_RANK; [ $PMIX_RANK = 1 ] && exit 0; exec sleep 1000";
    let px = place.command(&["run", "-n", "2", "sh", "-c", script]);
    let px = { px }.stderr(Stdio::piped()).spawn().expect("px runs");
    place.wait_for("both ranks", || exists(&place.path("ready.0")) && exists(&place.path("ready.1")));
    let server = px.id().to_string();
    place.wait_for("the end of rank 1", || {
        said(&place.px(&["ps", "--ranks", "--pid", &server]).stdout).contains("ended")
    });
    let job = place.job_of(px.id());
    assert!(place.px(&["ctl", "kill", &format!("{job}:0")]).status.success());
    let text = said(&px.wait_with_output().expect("px ends").stderr);
    assert!(text.contains("rank 0 was ended by") && !text.contains("go on"), "{text}");
}

#[test]
fn the_first_failure_counts_though_job_control_ends_the_rest() {
    let place = OwnTmp::new();
    let script = "echo >ready.$PMIX_RANK; [ $PMIX_RANK = 1 ] && exit 3; exec sleep 1000";
    for (name, rest) in [("whole", "0,2"), ("part", "0")] {
        let script = format!("[ {name} = part ] && [ $PMIX_RANK = 2 ] && exit 0; {script}");
        let options = ["run", "-n", "3", "--kill-on-bad-exit", "none", "--report", name, "sh", "-c", &script];
        let mut px = place.command(&options);
        let px = px.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("px runs");
        let server = px.id().to_string();
        place.wait_for("the end of rank 1", || {
            let shown = said(&place.px(&["ps", "--ranks", "--pid", &server]).stdout);
            shown.lines().any(|line| line.contains(" ended ") && line.ends_with(" 3"))
        });
        let job = place.job_of(px.id());
        assert!(place.px(&["ctl", "kill", &format!("{job}:{rest}")]).status.success());
        let ended = px.wait_with_output().expect("px ends");
        let text = said(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{text}");
        assert!(text.contains("rank 1") && text.contains("exited with code 3"), "{text}");
        assert!(text.contains(" ended by ") && !text.contains("as a consequence"), "{text}");
        assert!(names_the_tool(&text, &format!("px ctl kill {job}:{rest}")), "{text}");
    }
}

/// Whether a message names a tool by user, pid and what was typed.
fn names_the_tool(text: &str, typed: &str) -> bool {
    let user = format!(" (uid {}, pid ", rustix::process::geteuid());
    let told = text.split_once(&user).and_then(|(_, rest)| rest.split_once(", '"));
    told.is_some_and(|(pid, rest)| {
        pid.parse::<u32>().is_ok()
            && rest.split_once('\'').is_some_and(|(command, _)| command.ends_with(typed))
    })
}

#[test]
fn a_tool_that_ends_a_job_of_a_dvm_is_named() {
    let place = OwnTmp::new();
    let mut dvm = place.command(&["dvm", "start"]).stdout(Stdio::null()).spawn().expect("px runs");
    let pid = dvm.id().to_string();
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &pid]).status.success());
    let ended = |launcher: Child, how: &str, typed: &str| {
        let text = said(&launcher.wait_with_output().expect("px ends").stderr);
        assert!(text.contains(how) && names_the_tool(&text, typed), "{text}");
    };
    let launcher = place.start(&["--pid", &pid]);
    let job = place.job_of(dvm.id());
    assert!(place.px(&["ctl", "kill", "--pid", &pid, &job]).status.success());
    ended(launcher, "the job was ended by ", &format!("px ctl kill --pid {pid} {job}"));
    let launcher = place.start(&["--pid", &pid, "--report", "stopped"]);
    assert!(place.px(&["dvm", "stop", "--pid", &pid]).status.success());
    ended(launcher, "the DVM was stopped by ", &format!("px dvm stop --pid {pid}"));
    let report = std::fs::read_to_string(place.path("stopped")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["procs"].as_array().map(Vec::len), Some(2), "{report}");
    assert!(report["procs"][1]["pid"].is_u64() && report["phases"]["started"].is_number(), "{report}");
    assert!(dvm.wait().expect("it ends").success());
}

#[test]
fn all_tools_that_end_ranks_of_a_job_are_named() {
    let place = OwnTmp::new();
    let mut dvm = place.command(&["dvm", "start"]).stdout(Stdio::null()).spawn().expect("px runs");
    let pid = dvm.id().to_string();
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &pid]).status.success());
    for options in [&[][..], &["--pid", &pid]] {
        let options = [options, &["--report", "end"]].concat();
        let launcher = place.start(&options);
        let server = if options.len() > 2 { dvm.id() } else { launcher.id() };
        let job = place.job_of(server);
        let ends: Vec<String> = [0, 1].map(|rank| format!("{job}:{rank}")).into();
        for end in &ends {
            assert!(place.px(&["ctl", "kill", "--pid", &server.to_string(), end]).status.success());
        }
        let text = said(&launcher.wait_with_output().expect("px ends").stderr);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(" was ended by ")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        for (line, end) in lines.iter().zip(&ends) {
            assert!(names_the_tool(line, &format!("px ctl kill --pid {server} {end}")), "{text}");
        }
        let report = std::fs::read_to_string(place.path("end")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["enders"][1]["ranks"], "1", "{report}");
    }
    assert!(place.px(&["dvm", "stop", "--pid", &pid]).status.success());
    assert!(dvm.wait().expect("it ends").success());
}

#[test]
fn a_launcher_that_waits_for_slots_ends_when_asked() {
    let place = OwnTmp::new();
    let start = ["dvm", "start", "--host", "localhost:2"];
    let mut dvm = place.command(&start).stdout(Stdio::null()).spawn().expect("px runs");
    let pid = dvm.id().to_string();
    let shown = |command: &str| said(&place.px(&[command, "--pid", &pid]).stdout);
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &pid]).status.success());
    let endless = "trap '' TERM; echo >ready.$PMIX_RANK; while :; do sleep 0.02; done";
    let options = ["run", "--pid", &pid, "-n", "2", "--kill-after", "1000s", "sh", "-c", endless];
    let ending = place.command(&options).stderr(Stdio::null()).spawn().expect("px runs");
    place.wait_for("both ranks", || exists(&place.path("ready.0")) && exists(&place.path("ready.1")));
    signal(&ending, "-TERM");
    place.wait_for("the end of the job to begin", || shown("ps").contains("ending"));
    let mut waiting = place.command(&["run", "--pid", &pid, "-n", "1", "true"]);
    let waiting = waiting.stderr(Stdio::piped()).spawn().expect("px runs");
    place.wait_for("the next job to wait", || shown("why").contains("spawn of true "));
    signal(&waiting, "-TERM");
    let ended = waiting.wait_with_output().expect("px ends");
    assert_eq!(ended.status.code(), Some(143), "{ended:?}");
    assert!(said(&ended.stderr).contains("the job was not started"), "{ended:?}");
    place.wait_for("the request to be forgotten", || shown("why").contains("nothing is waiting"));
    // The second time, its ranks are killed.
    signal(&ending, "-TERM");
    let _ = ending.wait_with_output().expect("px ends");
    assert!(place.px(&["dvm", "stop", "--pid", &pid]).status.success());
    assert!(dvm.wait().expect("it ends").success());
}

#[test]
fn a_stopped_launcher_reports_how_its_job_was_ended() {
    let place = OwnTmp::new();
    let (launcher, _) = place.launcher(&[]);
    assert!(place.px(&["dvm", "stop", "--pid", &launcher.id().to_string()]).status.success());
    let ended = launcher.wait_with_output().expect("px ends");
    let text = said(&ended.stderr);
    assert_eq!(ended.status.code(), Some(143), "{text}");
    assert!(text.contains("the job was ended by ") && text.contains("by job control (SIGTERM)"), "{text}");
}

#[test]
fn requests_with_a_name_are_known_afterwards() {
    let place = OwnTmp::new();
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
fn terminated_ranks_are_killed_after_the_given_grace() {
    let place = OwnTmp::new();
    let job = place.job("1", "trap '' TERM; echo >deaf; while :; do sleep 0.02; done");
    place.wait_for("the rank", || exists(&place.path("deaf")));
    let since = Instant::now();
    assert!(place.px(&["ctl", "terminate", "--grace", "50ms", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
    assert!(since.elapsed() < Duration::from_secs(3), "that is the time without the option");
}

/// Writes a line when it begins, with the number of restarts and the checkpoint, and waits to be ended.
const BEGINS: &str = "echo \"$PHALANX_RESTARTS:$PHALANX_RESTART_FROM\" >>began.$PMIX_RANK; exec sleep 1000";

/// The script of [`going_on_does_not_end_the_pauses_of_others`]: each rank tells its pid, and waits for a file.
const RANKS: &str =
    r#"echo $$ > $0.$PMIX_RANK; exec perl -e 'select undef, undef, undef, 0.01 until -e "stop"'"#;

/// A px of ours gets this signal.
fn signal(process: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

fn going_on(place: &OwnTmp, name: &str, options: &[&str]) {
    let server = options.last().map(|pid| (*pid).to_owned());
    let words = [&["run", "-n", "2"], options, &["sh", "-c", RANKS, name]].concat();
    let px = place.command(&words).spawn().expect("px runs");
    let [first, second] = [0, 1].map(|rank| format!("{name}.{rank}"));
    place.wait_for("the ranks", || place.pid(&first).is_some() && place.pid(&second).is_some());
    std::fs::write(place.path("px"), px.id().to_string()).expect("a file");
    let is_stopped = |file: &str| place.state(file).as_deref() == Some("T");
    let server = server.unwrap_or_else(|| px.id().to_string());
    let shown = said(&place.px(&["ps", "--pid", &server]).stdout);
    let line = shown.lines().find(|line| line.contains(name)).expect("the job");
    let job = line.split_whitespace().find(|word| word.contains('@')).expect("a name").to_owned();
    let control = |action: &str, ranks: &str| {
        let told = place.px(&["ctl", action, "--pid", &server, &format!("{job}{ranks}")]);
        assert!(told.status.success(), "{told:?}");
        said(&told.stdout)
    };
    let states = || {
        let shown = said(&place.px(&["ps", "--pid", &server, &job, "--json"]).stdout);
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let of_job = |job: &serde_json::Value| {
            let procs = job["procs"].as_array().cloned().unwrap_or_default();
            procs.iter().map(|proc| proc["state"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        shown.pointer("/jobs/0").or_else(|| shown.pointer("/0/jobs/0")).map(of_job).unwrap_or_default()
    };
    control("pause", ":1");
    place.wait_for("the pause", || is_stopped(&second));
    signal(&px, "-TSTP");
    place.wait_for("all to stop", || ["px", &first, &second].iter().all(|file| is_stopped(file)));
    if !options.is_empty() {
        assert_eq!(states(), ["suspended", "paused, suspended"]);
        let told = control("resume", ":1");
        assert_eq!(
            told,
            format!("{job}: rank 1: resumed; the launcher, which is suspended, still holds rank 1\n")
        );
        assert!(is_stopped(&second), "its launcher stands");
        let why = said(&place.px(&["why", "--pid", &server]).stdout);
        assert!(why.contains(&format!("suspension of {job}:0-1 ")), "{why}");
        control("pause", ":1");
    }
    signal(&px, "-CONT");
    place.wait_for("px and rank 0 to go on", || !is_stopped("px") && !is_stopped(&first));
    control("resume", ":0");
    assert!(is_stopped(&second), "it was paused before");
    let why = said(&place.px(&["why", "--pid", &server]).stdout);
    assert!(why.contains(&format!("pause of {job}:1 ")), "{why}");
    control("resume", ":1");
    place.wait_for("rank 1 to go on", || !is_stopped(&second));
    std::fs::write(place.path("stop"), "").expect("a file");
    assert!(px.wait_with_output().expect("px ends").status.success());
    std::fs::remove_file(place.path("stop")).expect("the file");
}

#[test]
fn going_on_does_not_end_the_pauses_of_others() {
    let place = OwnTmp::new();
    going_on(&place, "alone", &[]);
    let mut dvm = place.command(&["dvm", "start"]).spawn().expect("a DVM");
    let pid = dvm.id().to_string();
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &pid]).status.success());
    going_on(&place, "dvm", &["--pid", &pid]);
    assert!(place.px(&["dvm", "stop", "--pid", &pid]).status.success());
    assert!(dvm.wait().expect("an end").success());
}

#[test]
fn a_restart_waits_for_no_slot_that_another_job_has() {
    let place = OwnTmp::new();
    let mut dvm = place.command(&["dvm", "start", "--host", "localhost:2"]);
    let mut dvm = dvm.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("px runs");
    let server = dvm.id().to_string();
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &server]).status.success());
    let run = |script: &str, ranks: &str| {
        let started = place.px(&["run", "-q", "--detach", "--pid", &server, "-n", ranks, "sh", "-c", script]);
        assert!(started.status.success(), "{started:?}");
        said(&started.stdout).trim().to_owned()
    };
    let waits = "until [ -e go ]; do sleep 0.02; done";
    let pool = run(&format!("[ $PMIX_RANK = 1 ] && [ -z \"$PHALANX_RESTARTS\" ] || {waits}"), "2");
    let other = run("until [ -e over ]; do sleep 0.02; done", "1");
    let refused = place.px(&["ctl", "restart", &format!("{pool}:1")]);
    let line = format!("{pool}: rank 1: not started again: the slot was given to another job, and all 2 of ");
    assert!(said(&refused.stdout).starts_with(&line) && refused.status.code() == Some(1), "{refused:?}");
    std::fs::write(place.path("over"), "").expect("a file");
    assert_eq!(place.px(&["wait", &other]).status.code(), Some(0));
    let again = || place.px(&["ctl", "restart", &format!("{pool}:1")]).status.success();
    place.wait_for("the slot", again);
    std::fs::write(place.path("go"), "").expect("a file");
    assert_eq!(place.px(&["wait", &pool]).status.code(), Some(0));
    assert!(place.px(&["dvm", "stop", "--pid", &server]).status.success());
    assert!(dvm.wait().expect("a status").success());
}

#[test]
fn ranks_are_started_again_as_asked() {
    let place = OwnTmp::new();
    let job = place.job("3", BEGINS);
    let began = |rank: u32| std::fs::read_to_string(place.path(&format!("began.{rank}"))).unwrap_or_default();
    (0..3).for_each(|rank| place.wait_for("the ranks", || began(rank) == ":\n"));
    let again = place.px(&["ctl", "restart", "--from", "night", &format!("{job}:0,2")]);
    assert_eq!(said(&again.stdout), format!("{job}: ranks 0, 2: started again\n"), "{again:?}");
    for rank in [0, 2] {
        place.wait_for("the restarted rank", || began(rank) == ":\n1:night\n");
    }
    assert!(place.px(&["ctl", "restart", &job]).status.success());
    place.wait_for("the whole job", || began(1) == ":\n1:\n" && began(2) == ":\n1:night\n2:\n");
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

#[test]
fn failed_ranks_are_started_again_as_often_as_wanted() {
    let place = OwnTmp::new();
    let run = |script: &str| {
        let words =
            ["run", "-n", "2", "--kill-on-bad-exit", "restart", "--max-restarts", "2", "sh", "-c", script];
        place.px(&words)
    };
    let better = run("echo begin $PMIX_RANK; [ $PMIX_RANK = 0 ] || [ \"$PHALANX_RESTARTS\" = 2 ] || exit 3");
    let text = said(&better.stderr);
    assert_eq!(better.status.code(), Some(0), "{text}");
    let mut lines: Vec<String> = said(&better.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["begin 0", "begin 1", "begin 1", "begin 1"]);
    assert!(text.contains("rank 1 exited with code 3; it is started again (2 of 2)"), "{text}");
    let hopeless = run("[ $PMIX_RANK = 0 ] && exec sleep 1000; exit 3");
    let text = said(&hopeless.stderr);
    assert_eq!(hopeless.status.code(), Some(3), "{text}");
    assert!(text.contains("rank 1 has been started again 2 times, and is given up"), "{text}");
}

#[test]
fn programs_without_a_way_to_take_a_checkpoint_are_named() {
    let place = OwnTmp::new();
    let job = place.job("2", "exec sleep 1000");
    let refused = place.px(&["ctl", "checkpoint", &job]);
    let why = "not checkpointed as checkpoint: they have registered no way to take a checkpoint";
    assert_eq!(said(&refused.stdout), format!("{job}: ranks 0-1: {why}\n"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1));
    let preempted = said(&place.px(&["ctl", "preempt", &job]).stdout);
    assert!(
        preempted.ends_with("not alerted and asked to end: their job is not preemptible\n"),
        "{preempted}"
    );
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

#[test]
fn programs_that_know_nothing_are_checkpointed_by_a_command() {
    let place = OwnTmp::new();
    // It counts, writes the count on a signal, and begins at the given count.
    let program = "n=${1:-0}; trap 'echo $n >saved.$PMIX_RANK' USR1; echo $n >from.$PMIX_RANK; \
                   while :; do n=$((n + 1)); sleep 0.01; done";
    std::fs::write(place.path("count"), program).expect("a program");
    let save = "[ \"$PHALANX_CHECKPOINT\" = bad ] && { echo \"this kernel lacks it\" >&2; exit 7; }; \
                kill -USR1 $PHALANX_PID; until [ -s saved.$PHALANX_RANK ]; do sleep 0.01; done";
    let go_on = "[ $PHALANX_RESTART_FROM = night ] && exec sh count $(cat saved.$PMIX_RANK)";
    let options = ["--checkpoint-command", save, "--restart-command", go_on];
    let words = [&["run", "-q", "--detach", "-n", "2"], &options[..], &["sh", "count"]].concat();
    let job = said(&place.px(&words).stdout).trim().to_owned();
    let from = |rank: u32| {
        let text = std::fs::read_to_string(place.path(&format!("from.{rank}"))).unwrap_or_default();
        text.trim().parse::<u32>().ok()
    };
    (0..2).for_each(|rank| place.wait_for("the ranks", || from(rank) == Some(0)));
    let bad = said(&place.px(&["ctl", "checkpoint", "--name", "bad", &job]).stdout);
    assert!(bad.ends_with(": its command exited with code 7: this kernel lacks it\n"), "{bad}");
    let taken = place.px(&["ctl", "checkpoint", "--name", "night", &job]);
    assert_eq!(said(&taken.stdout), format!("{job}: ranks 0-1: checkpointed as night\n"), "{taken:?}");
    assert!(place.px(&["ctl", "restart", "--from", "night", &job]).status.success());
    (0..2).for_each(|rank| place.wait_for("the counts to go on", || from(rank).is_some_and(|n| n > 0)));
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

#[test]
fn missing_support_by_criu_is_reported_in_one_line() {
    let place = OwnTmp::new();
    let start = ["run", "-q", "--detach", "--checkpoint-command", "criu", "sleep", "1000"];
    let job = said(&place.px(&start).stdout).trim().to_owned();
    let taken = place.px(&["ctl", "checkpoint", &job]);
    let line = said(&taken.stdout);
    // If criu works here, it has taken the checkpoint.
    assert_eq!(line.lines().count(), 1, "{taken:?}");
    let is_said =
        line.contains("criu is not installed") || line.contains("criu cannot take checkpoints here:");
    assert!(is_said || taken.status.success(), "{taken:?}");
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

#[test]
fn processes_started_by_ranks_pause_with_them() {
    let place = OwnTmp::new();
    let script = "setsid sh -c 'echo $$ >far; exec sleep 1000' & env -i sh -c 'echo $$ >bare; exec sleep 1000' & \
                  echo $$ >near; exec sleep 1000";
    let job = place.job("1", script);
    let names = ["near", "far", "bare"];
    place.wait_for("all processes", || names.iter().all(|name| place.pid(name).is_some()));
    let are = |wanted: &str| names.iter().all(|name| place.state(name).as_deref() == Some(wanted));
    for (what, wanted) in [("pause", "T"), ("resume", "S"), ("pause", "T")] {
        assert!(place.px(&["ctl", what, &job]).status.success());
        place.wait_for(what, || are(wanted));
    }
    assert!(place.px(&["kill", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(143));
}

/// Rank 1 has started a process in a session of its own, and one that does not hear SIGTERM.
const STARTS_OTHERS: &str = "echo $$ >near.$PMIX_RANK; [ $PMIX_RANK = 0 ] || {
        setsid sh -c 'echo $$ >far; exec sleep 1000' & env -i setsid sh -c 'echo $$ >bare; exec sleep 1000' & setsid sh -c 'trap \"\" TERM; echo $$ >deaf; exec sleep 1000' &
    }
    exec sleep 1000";

#[test]
fn processes_started_by_a_rank_end_with_that_rank() {
    for words in [&["ctl", "kill"][..], &["ctl", "terminate", "--grace", "50ms"]] {
        let place = OwnTmp::new();
        let job = place.job("2", STARTS_OTHERS);
        let pid = |name: &str| place.pid(name);
        place.wait_for("all processes", || {
            ["near.0", "near.1", "far", "bare", "deaf"].into_iter().all(|name| pid(name).is_some())
        });
        assert!(place.px(&["ctl", "pause", &format!("{job}:1")]).status.success());
        assert!(place.px(&[words, &[&format!("{job}:1")]].concat()).status.success());
        place.wait_for("the end of all that rank 1 has started", || {
            ["near.1", "far", "bare", "deaf"]
                .into_iter()
                .all(|name| matches!(place.state(name).as_deref(), None | Some("Z")))
        });
        assert_eq!(place.state("near.0").as_deref(), Some("S"), "rank 0 goes on");
        assert!(place.px(&["kill", &format!("{job}:0")]).status.success());
        assert!(matches!(place.px(&["wait", &job]).status.code(), Some(137 | 143)));
    }
}

#[test]
fn processes_left_by_a_paused_rank_resume_when_it_ends() {
    let place = OwnTmp::new();
    let started =
        ["run", "-q", "--detach", "--kill-on-bad-exit", "none", "-n", "2", "sh", "-c", STARTS_OTHERS];
    let started = place.px(&started);
    assert!(started.status.success(), "{started:?}");
    let job = said(&started.stdout).trim().to_owned();
    place.wait_for("all processes", || {
        ["near.0", "near.1", "far"].into_iter().all(|name| place.pid(name).is_some())
    });
    assert!(place.px(&["ctl", "pause", &format!("{job}:1")]).status.success());
    place.wait_for("the pause", || place.state("far").as_deref() == Some("T"));
    let near = place.pid("near.1").map_or_else(String::new, |pid| pid.to_string());
    assert!(Command::new("kill").args(["-9", &near]).status().expect("kill runs").success());
    place.wait_for("the others", || place.state("far").as_deref() == Some("S"));
    assert!(place.px(&["kill", &format!("{job}:0")]).status.success());
}

#[test]
fn wait_gives_up_after_its_timeout() {
    let place = OwnTmp::new();
    let job = place.job("1", "exec sleep 1000");
    let waited = place.px(&["wait", &job, "--timeout", "50ms"]);
    assert_eq!(waited.status.code(), Some(124));
    assert!(said(&waited.stderr).contains("has not ended in the time of '--timeout'"), "{waited:?}");
    assert!(place.px(&["kill", &job]).status.success());
}

#[test]
fn unknown_targets_and_signals_are_errors() {
    let place = OwnTmp::new();
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

#[test]
fn names_of_programs_reach_the_terminal_escaped() {
    let place = OwnTmp::new();
    let job = place.job("1", "echo > ready; exec sleep 1000 # \x1b[31mred\nrank  HOST\u{9b}2J");
    place.wait_for("the rank", || exists(&place.path("ready")));
    let server = job.split_once('@').expect("a job of a server").0;
    let commands: [&[&str]; 4] =
        [&["ps"], &["ps", "--json"], &["ps", "--long", "--ranks"], &["query", "phalanx.jobs"]];
    for words in commands {
        let output = place.px(&[words, &["--nspace", server]].concat());
        let shown = said(&output.stdout);
        assert!(shown.contains("red\\nrank"), "{words:?}: {output:?}");
        let obeyed = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(obeyed, None, "{shown:?}");
    }
    let table = said(&place.px(&["ps", "--nspace", server]).stdout);
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(place.px(&["kill", &job]).status.success());
    let failed = place.px(&["run", "-n", "1", "./no\x1b[31m\npx: hint: it"]);
    let told = said(&failed.stderr);
    assert!(told.contains("./no\\u001b[31m\\npx: hint: it"), "{told}");
}

#[test]
fn an_interrupt_ends_a_command_in_a_scripts_background() {
    let place = OwnTmp::new();
    let job = place.job("1", "echo > ready; exec sleep 1000");
    place.wait_for("the rank", || exists(&place.path("ready")));
    let px = env!("CARGO_BIN_EXE_px");
    // Shells ignore SIGINT in what they start in the background.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("\"{px}\" wait {job} & echo $! > pid.new; mv pid.new pid; wait $!; echo $? > code"),
    ]);
    let shell = command.current_dir(place.0.path()).env("TMPDIR", place.0.path()).spawn();
    let mut shell = shell.expect("a shell");
    let code = || std::fs::read_to_string(place.path("code")).unwrap_or_default();
    place.wait_for("its pid", || exists(&place.path("pid")));
    // The process handles signals only once it is px.
    place.wait_for("the end", || {
        let kill =
            Command::new("sh").args(["-c", "kill -INT $(cat pid)"]).current_dir(place.0.path()).output();
        kill.is_ok() && !code().is_empty()
    });
    assert_eq!(code(), "130\n");
    shell.wait().expect("it has ended");
    assert!(place.px(&["kill", &job]).status.success());
}

#[test]
fn a_job_that_has_ended_is_not_blamed_on_other_servers_files() {
    let place = OwnTmp::new();
    let (mut launcher, name) = place.launcher(&[]);
    assert!(place.px(&["kill", &name]).status.success());
    launcher.wait().expect("px ends");
    // A file of a server that was killed.
    let (mut other, _) = place.launcher(&[]);
    other.kill().expect("a launcher");
    other.wait().expect("its end");
    let refused = place.px(&["kill", &name]);
    let said = said(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("knows job {name}")) && !said.contains("pmix."), "{said}");
}

/// Each process of the chain starts the next one, in a session of its own, and ends. The last one ends with the directory.
const CHAIN: &str =
    r#"export CHAIN='echo >>beats || exit; setsid sh -c "$CHAIN" & exit'; sh -c "$CHAIN"; exec sleep 1000"#;

#[test]
fn a_program_that_forks_on_and_on_is_paused() {
    let place = OwnTmp::new();
    let job = place.job("1", CHAIN);
    let beats = || std::fs::metadata(place.path("beats")).map_or(0, |file| file.len());
    place.wait_for("the chain", || beats() > 10);
    for _ in 0..5 {
        let paused = place.px(&["ctl", "pause", &job]);
        assert_eq!(said(&paused.stdout), format!("{job}: rank 0: paused\n"), "{paused:?}");
        let before = beats();
        let shown = said(&place.px(&["ps", "--ranks", &job]).stdout);
        assert!(shown.contains("paused"), "{shown}");
        assert_eq!(beats(), before, "the chain goes on");
        assert!(place.px(&["ctl", "resume", &job]).status.success());
        place.wait_for("the chain to go on", || beats() > before);
    }
    assert!(place.px(&["ctl", "pause", &job]).status.success());
    assert!(place.px(&["kill", "-s", "KILL", &job]).status.success());
    assert_eq!(place.px(&["wait", &job]).status.code(), Some(137));
    let before = beats();
    assert!(!place.px(&["ps", &job]).status.success());
    assert_eq!(beats(), before, "nothing of the job is left");
}

#[test]
fn jobs_beside_one_that_forks_on_are_not_paused() {
    let place = OwnTmp::new();
    let mut dvm = place.command(&["dvm", "start"]).stdout(Stdio::null()).spawn().expect("px runs");
    let pid = dvm.id().to_string();
    let px = |words: &[&str]| {
        place.px(&[&words[..words.len() - 1], &["--pid", &pid], &words[words.len() - 1..]].concat())
    };
    place.wait_for("the DVM", || place.px(&["ps", "--pid", &pid]).status.success());
    let beats = |job: &str| std::fs::metadata(place.path(job).join("beats")).map_or(0, |file| file.len());
    let run = |name: &str| {
        std::fs::create_dir(place.path(name)).expect("a directory");
        let known = said(&place.px(&["ps", "--pid", &pid]).stdout);
        let script = format!("cd {name} && {CHAIN}");
        let mut command = place.command(&["run", "-q", "-n", "1", "--pid", &pid, "sh", "-c", &script]);
        let launcher = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("px runs");
        place.wait_for("the chain", || beats(name) > 10);
        let shown = said(&place.px(&["ps", "--pid", &pid]).stdout);
        let mut jobs = shown.split_whitespace().filter(|word| word.contains('@'));
        let job = jobs.find(|job| !known.contains(*job)).expect("a job").to_owned();
        (launcher, job)
    };
    let [(mut paused_launcher, paused), (mut other_launcher, other)] = ["paused", "other"].map(run);
    for _ in 0..3 {
        let done = px(&["ctl", "pause", &paused]);
        assert_eq!(said(&done.stdout), format!("{paused}: rank 0: paused\n"), "{done:?}");
        let before = ["paused", "other"].map(beats);
        place.wait_for("the other job to go on", || beats("other") > before[1] + 5);
        assert_eq!(beats("paused"), before[0], "the chain goes on");
        assert!(px(&["ctl", "resume", &paused]).status.success());
        place.wait_for("the chain to go on", || beats("paused") > before[0]);
    }
    for job in [&paused, &other] {
        assert!(px(&["ctl", "pause", job]).status.success());
        assert!(px(&["ctl", "kill", job]).status.success());
    }
    for launcher in [&mut paused_launcher, &mut other_launcher] {
        assert_eq!(launcher.wait().expect("it ends").code(), Some(137));
    }
    assert!(place.px(&["dvm", "stop", "--pid", &pid]).status.success());
    assert!(dvm.wait().expect("it ends").success());
}
