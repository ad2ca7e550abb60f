//! What the library of a tool shows: ours no less than OpenPMIx 4.2.2. The tool itself prints nothing.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{Job, Running, launcher, libpmix, new_directory, pmix_tool};

/// Its standard output and standard error, lines in alphabetical order, and how its spawns ended. Names of jobs are JOB.
#[derive(Debug, PartialEq, Eq)]
struct ShownTexts {
    stdout: Vec<String>,
    stderr: Vec<String>,
    spawned: Vec<String>,
}

fn told(launcher: &Running, library: Option<&Path>, words: &[&str]) -> ShownTexts {
    let place = new_directory();
    let spawned = place.path().join("spawned");
    let script = format!("exec \"$@\" 3>'{}'", spawned.display());
    let tool = Job::new("sh").args(["-c", &script, "sh"]).arg(pmix_tool("told"));
    let tool = tool.arg(launcher.pid().to_string()).args(words).env("TMPDIR", launcher.tmpdir());
    let tool = match library {
        Some(library) => tool.env("LD_LIBRARY_PATH", library),
        None => tool,
    };
    let outcome = tool.run().expect_code(0);
    let spawned = fs::read_to_string(spawned).expect("what it has spawned");
    let jobs: Vec<&str> = spawned.lines().filter(|line| line.contains('@')).collect();
    let lines = |text: &str| {
        let named = |text: String, job: &&str| {
            let number = job.rsplit('@').next().unwrap_or_default();
            text.replace(job, "JOB").replace(&format!("[{number},"), "[JOB,")
        };
        let text = jobs.iter().fold(text.to_owned(), named);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    ShownTexts { stdout: lines(&outcome.stdout), stderr: lines(&outcome.stderr), spawned: lines(&spawned) }
}

/// Both libraries show the same, with these lines in it.
#[track_caller]
fn expect_both(launcher: &Running, words: &[&str], stdout: &[&str], stderr: &[&str]) {
    let ours = told(launcher, Some(libpmix()), words);
    let theirs = told(launcher, None, words);
    assert_eq!(ours, theirs, "ours and theirs with {words:?}");
    assert_eq!((&*ours.stdout, ours.stderr.len()), (&*owned(stdout), stderr.len()), "{words:?}: {ours:?}");
    for part in stderr {
        assert!(ours.stderr.iter().any(|line| line.contains(part)), "{words:?}: no {part:?} in {ours:?}");
    }
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().copied().map(str::to_owned).collect()
}

const BOTH_STREAMS: &str = "echo out; echo err >&2";

#[test]
fn output_of_spawned_jobs_is_shown() {
    let launcher = launcher(1);
    let spawn = ["spawn", BOTH_STREAMS, "over"];
    let cases: [(&[&str], &[&str], &[&str]); 9] = [
        (&["init"], &["out"], &["err"]),
        (&["init", "pmix.fwd.stdout=true", "pmix.fwd.stderr=true"], &["out"], &["err"]),
        (&["init", "pmix.fwd.stdout=false"], &[], &["err"]),
        (&["pmix.iof.local=true", "init"], &["out"], &["err"]),
        (&["pmix.iof.local=false", "init"], &[], &[]),
        (&["init", "pmix.iof.local=false"], &[], &[]),
        (&["pmix.iof.local=false", "init", "pmix.iof.local=true"], &["out"], &["err"]),
        (&["init", "pmix.iof.tag=true"], &["[JOB,0]<stdout>: out"], &["[JOB,0]<stderr>: err"]),
        (&["init", "pmix.iof.mrg=true"], &["err", "out"], &[]),
    ];
    for (words, stdout, stderr) in cases {
        expect_both(&launcher, &[words, &spawn].concat(), stdout, stderr);
    }
    launcher.end();
}

/// A tool may exit when it hears of the end of its job.
#[test]
fn all_output_is_shown_before_the_end_is_told() {
    let launcher = launcher(1);
    for script in ["seq 20000", "echo out"] {
        for _ in 0..10 {
            let words = ["init", "exits", "spawn", script, "over"];
            let ours = told(&launcher, Some(libpmix()), &words);
            let expected = if script == "echo out" { 1 } else { 20_000 };
            assert_eq!((ours.stdout.len(), ours.stderr.len()), (expected, 0), "{script}");
        }
    }
    launcher.end();
}

#[test]
fn ignored_directives_are_shown() {
    let launcher = launcher(1);
    let spawn = ["spawn", "echo out", "over"];
    let note = "(no.such.directive) is not supported, and was ignored";
    let cases: [(&[&str], &[&str], &[&str]); 4] = [
        (&["init", "no.such.directive=true"], &["out"], &[note]),
        (&["init", "no.such.directive=true", "pmix.iof.local=false"], &[], &[note]),
        (&["pmix.iof.local=false", "init", "no.such.directive=true"], &[], &[]),
        // That is the library's to do.
        (&["init", "pmix.iof.local=true"], &["out"], &[]),
    ];
    for (words, stdout, stderr) in cases {
        expect_both(&launcher, &[words, &spawn].concat(), stdout, stderr);
    }
    launcher.end();
}

#[test]
fn reason_of_a_failed_spawn_is_shown_before_the_call_returns() {
    let launcher = launcher(1);
    for last in [&["leave"][..], &[]] {
        let missing = ["init", "run", "/no/such\u{1b}[2J"];
        expect_both(
            &launcher,
            &[&missing, last].concat(),
            &[],
            &["executing /no/such\\u001b[2J: No such file"],
        );
        let required = ["init", "!no.such.directive", "run", "true"];
        expect_both(
            &launcher,
            &[&required, last].concat(),
            &[],
            &["requires an attribute (no.such.directive)"],
        );
    }
    launcher.end();
}

#[test]
fn logged_events_of_a_tools_job_are_shown() {
    let launcher = launcher(1);
    let all = [
        "job JOB: the first process has started",
        "job JOB: all processes have started",
        "job JOB: rank 0 ",
        "job JOB: all processes have ended: failed",
    ];
    let spawn = ["spawn", "echo out; exit 3", "over"];
    let cases: [(&[&str], &[&str]); 4] = [
        (&["pmix.log.jev=true", "pmix.logproc=true"], &all),
        (&["pmix.log.jev=true"], &[all[0], all[1], all[3]]),
        (&["pmix.logcomp=true"], &all[3..]),
        (&["pmix.logabproc=true"], &all[2..3]),
    ];
    for (words, stderr) in cases {
        expect_both(&launcher, &[&["init"], words, &spawn].concat(), &["out"], stderr);
    }
    launcher.end();
}

/// OpenPMIx's library writes output that is pulled without a callback twice, and not at all if the spawn turns it off.
#[test]
fn output_is_shown_once() {
    let launcher = launcher(1);
    let spawn = ["spawn", "echo out; sleep 0.3; echo end"];
    let ours = |words: &[&str]| told(&launcher, Some(libpmix()), words).stdout;
    let both = owned(&["end", "out"]);
    assert_eq!(ours(&[&["init"], &spawn[..], &["show", "over"]].concat()), both);
    assert_eq!(ours(&[&["init"], &spawn[..], &["over", "show"]].concat()), both);
    assert_eq!(ours(&[&["init", "pmix.iof.local=false"], &spawn[..], &["show", "over"]].concat()), both);
    assert_eq!(ours(&[&["pmix.iof.local=false", "init"], &spawn[..], &["show", "over"]].concat()), both);
    // What a callback gets is shown besides, on both.
    expect_both(&launcher, &[&["init"], &spawn[..], &["pull", "over"]].concat(), &["end", "out"], &[]);
    launcher.end();
}
