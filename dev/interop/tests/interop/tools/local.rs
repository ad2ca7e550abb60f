//! Tools compiled against libpmix 4.2 attach to `px run` in every way available to local tools, and use its services.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{Job, Running, eventually, host, launcher, new_directory, pmix_tool, px};
use rustix::process::Signal;

fn uri(running: &Running) -> String {
    let file = running.rendezvous_file().expect("a rendezvous file");
    let text = fs::read_to_string(file).expect("readable");
    text.lines().next().expect("an address").to_owned()
}

/// A tool that searches in `running`'s directory.
fn tool(running: &Running, arguments: &[&str]) -> Job {
    Job::new(pmix_tool("attach")).args(arguments).env("TMPDIR", running.tmpdir())
}

#[test]
fn every_local_way_leads_to_the_launcher() {
    let launcher = launcher(2);
    let (pid, nspace) = (launcher.pid().to_string(), format!("px-{}-{}", host(), launcher.pid()));
    let (uri, file) = (uri(&launcher), launcher.rendezvous_file().expect("a rendezvous file"));
    let file = file.to_str().expect("UTF-8");
    let ways: [&[&str]; 8] = [
        &["pid", &pid],
        &["nspace", &nspace],
        &["uri", &uri],
        &["tcp", &uri],
        &["file", file],
        &["system-first"],
        &["launcher"],
        &[],
    ];
    for way in ways {
        let outcome =
            tool(&launcher, &[way, &["--", "me", "servers", "query"]].concat()).run().expect_code(0);
        outcome.assert_line("init SUCCESS");
        outcome.assert_line(&format!("servers SUCCESS {nspace}"));
        let outcome = outcome.expect_stdout(&[&format!("me {nspace}-tool"), "query SUCCESS px-"]);
        outcome.assert_line("finalize SUCCESS");
    }
    launcher.end();
}

#[test]
fn a_tool_spawns_publishes_and_ends_what_it_has_started() {
    let launcher = launcher(2);
    let pid = launcher.pid().to_string();
    let first = tool(&launcher, &["pid", &pid, "--", "publish", "tool.key", "x", "lookup", "tool.key"]);
    let first = first.args(["nohup", "echo from the child; sleep 1000"]).run().expect_code(0);
    first.assert_line("publish SUCCESS");
    let first = first.expect_stdout(&["lookup SUCCESS px-", " x\n", "spawn SUCCESS "]);
    let child = first.stdout.lines().find_map(|line| line.strip_prefix("spawn SUCCESS ")).expect("a name");
    let second = tool(&launcher, &["pid", &pid, "--", "table", child, "kill", child]).run().expect_code(0);
    second.assert_line("kill SUCCESS");
    let second = second.expect_stdout(&["table SUCCESS 0:"]);
    let gone = || {
        let ask = tool(&launcher, &["pid", &pid, "--", "query"]).run().expect_code(0);
        !ask.stdout.contains(child)
    };
    eventually("the child's job has ended", gone);
    drop(second);
    // Data that a tool has published for its own lifetime is removed with it.
    launcher.end();
}

#[test]
fn a_tool_that_dies_takes_its_name_and_its_data_with_it() {
    let launcher = launcher(2);
    let pid = launcher.pid().to_string();
    let named = ["pid", &pid, "self", "our-tool", "rank", "0", "--"];
    let first = tool(&launcher, &[&named[..], &["publish", "dead.key", "x", "lost"]].concat()).start();
    let look = || tool(&launcher, &["pid", &pid, "--", "lookup", "dead.key"]).run().expect_code(0);
    eventually("its data are there", || look().stdout.contains("lookup SUCCESS our-tool x"));
    first.signal(Signal::KILL);
    let _ = first.wait();
    eventually("its data are gone", || look().stdout.contains("lookup NOT-FOUND"));
    let next = tool(&launcher, &[&named[..], &["me"]].concat()).run().expect_code(0);
    next.assert_line("me our-tool 0");
    launcher.end();
}

#[test]
fn launcher_tells_its_address_to_its_starter() {
    for variable in ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"] {
        let place = new_directory();
        let file = place.path().join("here");
        let script = "env | grep -c PMIX_LAUNCHER_; exec sleep 1000";
        let running = px(["-n", "1", "sh", "-c", script]).env(variable, &file).start();
        eventually("the file is there", || file.exists());
        let outcome = tool(&running, &["file", file.to_str().expect("UTF-8"), "--", "query"]).run();
        outcome.expect_code(0).assert_line("init SUCCESS");
        running.until_said("\n");
        running.signal(Signal::TERM);
        // The variable is not passed to ranks.
        let outcome = running.wait().expect_code(143).expect_nothing_left();
        outcome.assert_line("0");
        assert_eq!(names_in(place.path()), [""; 0]);
    }
}

#[test]
fn a_killed_launcher_leaves_no_rendezvous_files() {
    let place = new_directory();
    let file = place.path().join("here");
    let running = px(["-n", "1", "sleep", "1000"]).env("PMIX_LAUNCHER_RNDZ_FILE", &file).start();
    eventually("the launcher can be found", || running.rendezvous_file().is_some() && file.exists());
    running.signal(Signal::KILL);
    let tmpdir = running.tmpdir().to_owned();
    eventually("everything is gone", || names_in(&tmpdir).is_empty() && names_in(place.path()).is_empty());
    let _ = running.wait();
}

#[test]
fn a_launcher_says_why_it_cannot_leave_its_address() {
    let place = new_directory();
    let file = place.path().join("taken");
    fs::write(&file, "something").expect("writing");
    px(["-n", "1", "true"])
        .env("PMIX_LAUNCHER_RNDZ_FILE", &file)
        .run()
        .expect_failure()
        .expect_nothing_left()
        .expect_stderr(&["rendezvous file", "taken", "something else is there"]);
    assert_eq!(fs::read_to_string(&file).expect("readable"), "something");
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Imitates PRRTE's `prun`, with a standard input redirected by its shell.
fn prun(running: &Running, redirection: &str, arguments: &[&str]) -> Job {
    let words = format!("exec \"$0\" \"$@\" {redirection}");
    let job = Job::new("sh").args(["-c", &words]).arg(pmix_tool("prun")).arg(running.pid().to_string());
    job.args(arguments).env("TMPDIR", running.tmpdir()).deadline(60)
}

#[test]
fn a_tool_may_push_any_input_to_ranks_that_read_none() {
    let launcher = launcher(1);
    let place = new_directory();
    let file = place.path().join("input");
    fs::write(&file, "from a file\n").expect("written");
    let from_file = format!("< '{}'", file.display());
    for redirection in ["", "< /dev/null", &from_file, "<&-", "< /dev/zero"] {
        let job = prun(&launcher, redirection, &["cat; echo done"]);
        job.input(b"from a pipe\n").run().expect_code(0).expect_lines(["done"]);
    }
    // At a terminal.
    let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let job = Job::new("python3").args(["-c", spawn]).arg(pmix_tool("prun")).arg(launcher.pid().to_string());
    let job = job.args(["echo done"]).env("TMPDIR", launcher.tmpdir()).deadline(60);
    let _ = job.run().expect_code(0).expect_stdout(&["done"]);
    // The job ends before the tool registers for its end, and the push may come even later.
    for _ in 0..5 {
        let _ = prun(&launcher, "< /dev/null", &["true"]).run().expect_code(0);
    }
    launcher.end();
}

#[test]
fn a_target_for_standard_input_implies_that_it_is_forwarded() {
    let launcher = launcher(1);
    for target in ["0", "all"] {
        let job = prun(&launcher, "", &["cat; echo done", target]);
        job.input(b"from a pipe\n").run().expect_code(0).expect_lines(["from a pipe", "done"]);
    }
    launcher.end();
}

#[test]
fn the_first_rank_reads_what_a_launcher_pushes() {
    let launcher = launcher(1);
    let job = prun(&launcher, "", &["cat; echo done", "-"]);
    job.input(b"from a pipe\n").run().expect_code(0).expect_lines(["from a pipe", "done"]);
    prun(&launcher, "< /dev/null", &["cat; echo done", "-"]).run().expect_code(0).expect_lines(["done"]);
    // OpenPMIx's library never reports the end of a closed input.
    prun(&launcher, "<&-", &["echo done", "-"]).run().expect_code(0).expect_lines(["done"]);
    launcher.end();
}

/// The library sends as fast as it can read, however slow the reader is.
#[test]
fn a_launcher_may_push_more_than_the_server_holds() {
    let launcher = launcher(1);
    let place = new_directory();
    let file = place.path().join("input");
    let line = b"0123456789abcdef".repeat(256);
    fs::write(&file, line.repeat(20 << 8)).expect("written");
    let job = prun(&launcher, &format!("< '{}'", file.display()), &["sleep 1; wc -c", "-"]);
    let _ = job.run().expect_code(0).expect_lines(["20971520"]);
    launcher.end();
}

#[test]
fn the_end_of_a_failed_job_names_rank_and_exit_code() {
    let launcher = launcher(1);
    let outcome = prun(&launcher, "< /dev/null", &["exit 3"]).run().expect_code(1);
    let said = outcome.stderr.lines().any(|line| line.starts_with("rank 0 exited with code 3 (on "));
    assert!(said, "{outcome}");
    launcher.end();
}
