//! The streams of a tool's spawned job: on OpenPMIx's library and on ours, read too late, named in events, written to files.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use phalanx_interop::{
    Job, Outcome, Running, eventually, launcher, libpmix, new_directory, pmix_tool, rust_tool,
};

/// None: OpenPMIx's.
const LIBRARIES: [fn() -> Option<&'static Path>; 2] = [|| None, || Some(libpmix())];

fn tool(launcher: &Running, library: Option<&Path>, words: &[&str]) -> Job {
    let job = Job::new(pmix_tool("streams")).arg(launcher.pid().to_string()).args(words);
    let job = job.env("TMPDIR", launcher.tmpdir());
    match library {
        Some(library) => job.env("LD_LIBRARY_PATH", library),
        None => job,
    }
}

/// The output that the callback received.
fn pulled(outcome: &Outcome) -> String {
    let at = outcome.stderr.find("pulled ").expect("it says so");
    outcome.stderr[at..].split_once(":\n").expect("a line").1.to_owned()
}

#[test]
fn a_job_that_was_over_before_the_pull_is_read_by_its_spawner() {
    let launcher = launcher(1);
    for library in LIBRARIES {
        let words = ["spawn", "echo early; echo worse >&2", "1", "over", "pull", "ended", "2"];
        let outcome = tool(&launcher, library(), &words).run().expect_code(0);
        let got = pulled(&outcome);
        let mut lines: Vec<&str> = got.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["early", "worse"], "{outcome}");
    }
    // Our library shows it as well.
    let words = ["rank", "spawn", "echo early", "1", "over", "show"];
    let shown = tool(&launcher, Some(libpmix()), &words).run().expect_code(0).stdout;
    assert_eq!(shown, "0: early\n", "in the form that the spawn has said");
    launcher.end();
}

#[test]
fn the_end_of_each_stream_is_an_event_that_names_it() {
    let launcher = launcher(1);
    for library in LIBRARIES {
        let words = ["events", "spawn", "cat >/dev/null; echo x", "2", "eof", "over", "complete", "5"];
        let outcome = tool(&launcher, library(), &words).run().expect_code(0);
        let mut events: Vec<&str> =
            outcome.stderr.lines().filter(|line| line.starts_with("event ")).collect();
        events.sort_unstable();
        let stream = |rank: u32, channel: u32| format!("event complete {rank} {channel}");
        let expected = [stream(0, 1), stream(0, 2), stream(0, 4), stream(1, 2), stream(1, 4)];
        assert_eq!(events, expected, "{outcome}");
    }
    launcher.end();
}

/// The server accepts as much as it has room for, and continues when the reader does.
#[test]
fn pushes_that_nobody_waits_for_wait_for_room_and_all_arrive() {
    let launcher = launcher(1);
    for library in LIBRARIES {
        let place = new_directory();
        let (gate, read) = (place.path().join("gate"), place.path().join("read"));
        let script = format!(
            "while ! [ -e '{}' ]; do sleep 0.02; done; exec cat > '{}'",
            gate.display(),
            read.display()
        );
        let gate = gate.to_str().expect("text");
        let words = ["spawn", &script, "1", "push", "64", "touch", gate, "eof", "over"];
        let before = most_memory(launcher.pid());
        let outcome = tool(&launcher, library(), &words).run().expect_code(0);
        assert!(outcome.stderr.contains("pushed 64, refused 0, followed 0, others 0"), "{outcome}");
        expect_pieces(&read, 64);
        let grown = most_memory(launcher.pid()) - before;
        assert!(grown < 32 << 10, "the server has held {grown} KiB of 65,536");
    }
    launcher.end();
}

/// In KiB.
fn most_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Only on our library: the blocking call of OpenPMIx 4.2.2 deadlocks the second time.
#[test]
fn awaited_pushes_slow_the_tool_and_all_arrive() {
    let launcher = launcher(1);
    let place = new_directory();
    let [rank, gate, read] = ["rank", "gate", "read"].map(|name| place.path().join(name));
    let script = format!(
        "echo $$ > '{0}.new'; mv '{0}.new' '{0}'; until [ -e '{1}' ]; do sleep 0.02; done; exec cat > '{2}'",
        rank.display(),
        gate.display(),
        read.display()
    );
    let words = ["spawn", &script, "1", "wait", "40", "eof", "over"];
    let pushing = tool(&launcher, Some(libpmix()), &words).start();
    eventually("the rank runs", || rank.exists());
    let rank = fs::read_to_string(&rank).expect("readable");
    let input = fs::File::open(format!("/proc/{}/fd/0", rank.trim())).expect("its standard input");
    eventually("input waits for the rank", || rustix::io::ioctl_fionread(&input).expect("a pipe") > 0);
    drop(input);
    fs::write(&gate, "").expect("writing");
    let outcome = pushing.wait().expect_code(0);
    assert!(outcome.stderr.contains("pushed 40, refused 0, followed 0, others 0"), "{outcome}");
    expect_pieces(&read, 40);
    launcher.end();
}

/// The file contains `count` pieces of 1 MiB, as the tool pushes them.
#[track_caller]
fn expect_pieces(file: &Path, count: u32) {
    let lines = |piece| (0..1 << 20).step_by(16).map(move |at| format!("{piece:06} {at:08}\n"));
    let expected: String = (0..count).flat_map(lines).collect();
    let read = fs::read_to_string(file).expect("what the rank has read");
    assert!(read == expected, "{} bytes that are not what was taken", read.len());
}

/// The displayed output, and the events of streams, printed on standard error.
#[test]
fn native_library_shows_spawned_output_and_its_end() {
    let launcher = launcher(1);
    let place = new_directory();
    let files = place.path().join("%n-%r");
    let job = Job::new(rust_tool("streams")).arg(launcher.pid().to_string()).arg(&files);
    let outcome = job.env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
    let mut shown: Vec<&str> = outcome.stdout.lines().collect();
    shown.sort_unstable();
    assert_eq!(shown, ["0: out 0", "1: out 1"], "{outcome}");
    let mut said: Vec<&str> = outcome.stderr.lines().collect();
    said.sort_unstable();
    let nspace = said.last().and_then(|line| line.strip_prefix("spawned ")).expect("the job's name");
    let stream = |rank: u32, channel: u32| format!("PMIX_ERR_IOF_COMPLETE (-173) {nspace} {rank} {channel}");
    assert_eq!(
        said[..said.len() - 1],
        ["0: err 0".into(), "1: err 1".into(), stream(0, 2), stream(0, 4), stream(1, 2), stream(1, 4)]
    );
    for rank in [0, 1] {
        for (channel, word) in [("stdout", "out"), ("stderr", "err")] {
            let file = place.path().join(format!("{nspace}-{rank}.{channel}"));
            assert_eq!(fs::read_to_string(file).expect("a file"), format!("{word} {rank}\n"));
        }
    }
    launcher.end();
}

#[test]
fn files_that_a_spawn_names_hold_what_the_ranks_wrote() {
    let launcher = launcher(1);
    for library in LIBRARIES {
        let place = new_directory();
        let name = |name: &str| place.path().join(name).to_str().expect("text").to_owned();
        let script = "echo out $PMIX_RANK; printf 'err %d' $PMIX_RANK >&2";
        let spawn = ["spawn", script, "2", "over"];
        let cases: [(&[&str], &str); 3] = [
            (&["tag", "file", &name("plain")], "plain.NSPACE.RANK.STREAM"),
            (&["directory", &name("tree")], "tree/NSPACE/rank.RANK/STREAM"),
            (&["file", &name("by-%r"), "pattern", "only"], "by-RANK.STREAM"),
        ];
        for (words, path) in cases {
            let outcome = tool(&launcher, library(), &[words, &spawn].concat()).run().expect_code(0);
            // What a rank has written without a newline may precede it.
            let said = outcome.stderr.lines().find_map(|line| line.split_once("spawned "));
            let (_, nspace) = said.unwrap_or_else(|| panic!("no job's name in {outcome}"));
            for rank in ["0", "1"] {
                for (stream, text) in [("stdout", format!("out {rank}\n")), ("stderr", format!("err {rank}"))]
                {
                    let path = path.replace("NSPACE", nspace).replace("RANK", rank).replace("STREAM", stream);
                    let held = fs::read_to_string(place.path().join(&path));
                    assert_eq!(held.expect(&path), text, "{path}\n{outcome}");
                }
            }
        }
    }
    launcher.end();
}
