//! How much standard input a job takes: what no rank has read stays for the next reader.
#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

const PX: &str = env!("CARGO_BIN_EXE_px");

/// A directory with the file `lines`, and a DVM.
struct Place {
    dir: tempfile::TempDir,
    dvm: String,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("lines"), "a\nb\n").expect("a file");
        let mut start = Command::new(PX);
        start.args(["dvm", "start", "--daemonize", "--json"]).stdin(Stdio::null());
        let started = start.current_dir(dir.path()).env("TMPDIR", dir.path()).output().expect("px runs");
        let told: serde_json::Value = serde_json::from_slice(&started.stdout).expect("JSON");
        Place { dir, dvm: told["pid"].to_string() }
    }

    /// `px run` with its own daemon, and in the DVM.
    fn ways(&self) -> [String; 2] {
        let px = format!("\"{PX}\" run -q");
        [format!("{px} -n 1"), format!("{px} --pid {} -n 1", self.dvm)]
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(self.dir.path()).env("TMPDIR", self.dir.path());
        shell.stdin(Stdio::null()).stderr(Stdio::inherit());
        shell
    }

    #[track_caller]
    fn prints(&self, script: &str, expected: &str) {
        let output = self.shell(script).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let stop = ["dvm", "stop", "--pid", &self.dvm];
        let _ = Command::new(PX).args(stop).env("TMPDIR", self.dir.path()).status();
    }
}

#[test]
fn unread_input_stays_for_the_next_reader() {
    let place = Place::new();
    for run in place.ways() {
        for program in ["true", "sh -c 'exec <&-; sleep 0.1'", "sh -c 'exec 3<&0 </dev/null; cat'"] {
            place.prints(&format!("printf 'a\\nb\\n' | ({run} {program}; cat)"), "a\nb\n");
            place.prints(&format!("({run} {program}; cat) < lines"), "a\nb\n");
        }
        place.prints(
            &format!("seq 100000 | ({run} true; cat) | md5sum > seen; seq 100000 | md5sum | cmp - seen"),
            "",
        );
    }
}

#[test]
fn unread_input_stays_in_a_socket() {
    let place = Place::new();
    for run in place.ways() {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        ours.write_all(b"a\nb\n").expect("room");
        ours.shutdown(std::net::Shutdown::Write).expect("a socket");
        let mut rest = theirs.try_clone().expect("a socket");
        let mut shell = place.shell(&format!("{run} sh -c 'read line; echo \"<$line>\"'"));
        let output = shell.stdin(OwnedFd::from(theirs)).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "<a>\n");
        let mut seen = String::new();
        rest.read_to_string(&mut seen).expect("a socket");
        assert_eq!(seen, "b\n");
    }
}

#[test]
fn a_loop_keeps_its_lines() {
    let place = Place::new();
    for run in place.ways() {
        let each = format!("while read line; do {run} echo \"<$line>\"; done");
        place.prints(&format!("printf 'a\\nb\\n' | {each}"), "<a>\n<b>\n");
        place.prints(&format!("{each} < lines"), "<a>\n<b>\n");
    }
}

#[test]
fn what_a_rank_has_read_is_gone_and_nothing_else() {
    let place = Place::new();
    let ways = place.ways().map(|run| [format!("{run} --stdin all"), run]);
    for run in ways.iter().flatten() {
        for (program, seen) in [
            ("sh -c 'read line; echo \"<$line>\"'", "<a>\nb\n"),
            ("sh -c 'head -c 1; true'", "a\nb\n"),
            ("sh -c 'sed s/^/rank:/ | cat; true'", "rank:a\nrank:b\n"),
        ] {
            place.prints(&format!("printf 'a\\nb\\n' | ({run} {program}; cat)"), seen);
            place.prints(&format!("({run} {program}; cat) < lines"), seen);
        }
    }
}

#[test]
fn input_that_comes_slowly_is_handed_on_as_it_comes() {
    let place = Place::new();
    place.prints("mkfifo slow", "");
    for run in place.ways() {
        let rank = "sh -c 'read x; echo \"1 $x\"; read y; echo \"2 $y\"; cat'";
        let writer = "exec 3> slow; printf a >&3; sleep 0.1; echo b >&3; echo c >&3; echo d >&3";
        place.prints(&format!("{run} {rank} < slow & {writer}; exec 3>&-; wait"), "1 ab\n2 c\nd\n");
    }
}

#[test]
fn much_input_follows_what_was_shown_first() {
    let place = Place::new();
    for run in place.ways() {
        let seen = "cmp - numbers && wc -c < numbers";
        place.prints(&format!("seq 300000 > numbers; {run} cat < numbers | {seen}"), "1988895\n");
        place.prints(&format!("cat numbers | {run} cat | {seen}"), "1988895\n");
    }
}
