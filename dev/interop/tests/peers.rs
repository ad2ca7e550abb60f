//! The commands of `px` at the launchers of others: what they do there, and what these refuse.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

use phalanx_interop::{Job, Library::OpenMpi5, Running, eventually, host, mpirun_4, px_binary, wheel};
use rustix::process::Signal;

/// The launcher of Open MPI 5, which is PRRTE's, with a job that goes on talking.
fn prterun() -> Running {
    let running = Job::new(wheel().root.join("bin/mpirun"))
        .args(["--allow-run-as-root", "-n", "1", "--map-by", ":OVERSUBSCRIBE"])
        .args(["sh", "-c", "while :; do echo tick; sleep 0.1; done"])
        .with(OpenMpi5)
        .deadline(300)
        .start();
    eventually("the launcher can be found", || running.rendezvous_file().is_some());
    running
}

/// A command there. PRRTE closes connections of tools that come close behind others: such a one is made again.
fn at(launcher: &Running, words: &[&str]) -> Job {
    let pid = launcher.pid().to_string();
    let (command, rest) = words.split_first().expect("a command");
    Job::new(px_binary())
        .args([*command, "--pid", &pid])
        .args(rest)
        .env("TMPDIR", launcher.tmpdir())
        .deadline(60)
}

fn done(launcher: &Running, words: &[&str], parts: &[&str]) {
    let mut last = String::new();
    eventually("the command is served", || {
        let outcome = at(launcher, words).run();
        last = outcome.to_string();
        parts.iter().all(|part| outcome.stdout.contains(part) || outcome.stderr.contains(part))
    });
    assert!(!last.is_empty());
}

#[test]
fn commands_work_at_prterun_as_far_as_it_serves_them() {
    let launcher = prterun();
    let job = format!("prterun-{}-{}@1", host(), launcher.pid());
    eventually("the job is known", || at(&launcher, &["ps"]).run().stdout.contains(&job));
    done(&launcher, &["ps", "--ranks"], &[&job, "running"]);
    done(&launcher, &["query", &format!("JOB_SIZE:NSPACE={job}")], &["PMIX_JOB_SIZE: 1"]);
    done(&launcher, &["query", "--list"], &["PMIX_CLIENT_ATTRIBUTES"]);
    done(&launcher, &["publish", "px.key=value"], &[""]);
    done(&launcher, &["lookup", "px.key"], &["px.key = value"]);
    done(&launcher, &["why"], &["only servers of px tell"]);
    let there = ["run", "-n", "1", "--map-by", ":OVERSUBSCRIBE"];
    done(&launcher, &[&there[..], &["echo", "from there"]].concat(), &["from there"]);
    done(&launcher, &[&there[..], &["sh", "-c", "exit 3"]].concat(), &["a rank exited with code 3"]);
    let one_line = ["-c", "\"$0\" attach --pid \"$1\" \"$2\" | head -n 1"];
    let watched = Job::new("sh").args(one_line).arg(px_binary()).args([&launcher.pid().to_string(), &job]);
    let _ = watched.env("TMPDIR", launcher.tmpdir()).deadline(60).run().expect_lines(["tick"]);
    launcher.signal(Signal::TERM);
    let _ = launcher.wait();
}

/// Debian's mpirun 4.1 serves no tools.
#[test]
fn mpirun_4_refuses_every_command_and_they_say_why() {
    for command in [&["ps"][..], &["query", "QUERY_NAMESPACES"], &["run", "true"]] {
        // It does not survive the refusal.
        let (mpirun, uri) = mpirun_4();
        let (name, rest) = command.split_first().expect("a command");
        let outcome = Job::new(px_binary()).args([name, "--uri", &uri]).args(rest).deadline(60).run();
        let outcome = outcome.expect_failure();
        let _ = outcome.expect_stderr(&["PMIX_ERR_NOT_SUPPORTED", "it serves no tools"]);
        mpirun.signal(Signal::KILL);
        let _ = mpirun.wait();
    }
}
