//! The commands of `px` at other launchers: what works there, and what they refuse.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{Ended, Job, mpirun_4, px_binary, some_prterun, soon};
use rustix::process::Signal;

#[test]
fn commands_work_at_prterun_as_far_as_it_serves_them() {
    some_prterun("echo tick", |launcher| {
        let done = |words: &[&str], parts: &[&str]| soon(|| launcher.shows(words, parts));
        let published = || launcher.command(&["publish", "px.key=value"]).run().ended == Ended::Code(0);
        let there = ["run", "-n", "1", "--map-by", ":OVERSUBSCRIBE"];
        let watched = || {
            let one_line = ["-c", "\"$0\" attach --pid \"$1\" \"$2\" | head -n 1"];
            let pid = launcher.running.pid().to_string();
            let watched = Job::new("sh").args(one_line).arg(px_binary()).args([&pid, &launcher.job]);
            watched.env("TMPDIR", launcher.running.tmpdir()).deadline(15).run().stdout == "tick\n"
        };
        done(&["ps", "--ranks"], &[&launcher.job, "running"])
            && done(&["query", &format!("JOB_SIZE:NSPACE={}", launcher.job)], &["PMIX_JOB_SIZE: 1"])
            && done(&["query", "--list"], &["PMIX_CLIENT_ATTRIBUTES"])
            && soon(published)
            && done(&["lookup", "px.key"], &["px.key = value"])
            && done(&["why"], &["only servers of px can"])
            && done(&[&there[..], &["echo", "from there"]].concat(), &["from there"])
            && done(&[&there[..], &["sh", "-c", "exit 3"]].concat(), &["a rank exited with code 3"])
            && soon(watched)
    });
}

/// It exits as in a DVM of its own, and names the limit.
#[test]
fn a_time_limit_ends_a_job_at_prterun_with_124() {
    some_prterun(":", |launcher| {
        let words = ["run", "-n", "1", "--map-by", ":OVERSUBSCRIBE", "--timeout", "2", "sleep", "1000"];
        soon(|| {
            let outcome = launcher.command(&words).run();
            outcome.ended == Ended::Code(124) && outcome.stderr.contains("its time limit")
        })
    });
}

/// PRRTE would ignore options that it does not know.
#[test]
fn prterun_is_not_asked_for_what_only_px_can_do() {
    some_prterun(":", |launcher| {
        let options = [&["--kill-on-bad-exit", "signal"][..], &["--dry-run"], &["--display", "map"]];
        options.iter().all(|option| {
            let words = [&["run", "-n", "1", "--map-by", ":OVERSUBSCRIBE"], *option, &["true"]].concat();
            soon(|| {
                let said = launcher.command(&words).run().stderr;
                said.contains(&format!("'{}' is not supported by this server", name_of(option)))
            })
        })
    });
}

/// The name used in messages.
fn name_of(option: &[&str]) -> String {
    match option {
        ["--display", _] => "--display".to_owned(),
        words => words.join(" "),
    }
}

/// Debian's mpirun 4.1 refuses tools.
#[test]
fn mpirun_4_refuses_every_command_and_they_say_why() {
    for command in [&["ps"][..], &["query", "QUERY_NAMESPACES"], &["run", "true"]] {
        // It does not survive refusing a tool.
        let (mpirun, uri) = mpirun_4();
        let (name, rest) = command.split_first().expect("a command");
        let outcome = Job::new(px_binary()).args([name, "--uri", &uri]).args(rest).run();
        let outcome = outcome.expect_failure();
        let _ = outcome.expect_stderr(&["PMIX_ERR_NOT_SUPPORTED", "it serves no tools"]);
        mpirun.signal(Signal::KILL);
        let _ = mpirun.wait();
    }
}
