//! px at a terminal: prompts, the status line, Ctrl-C, job control, and a terminal that goes away.
//!
//! The terminal is a pseudoterminal: the test has one end, the programs have the other. Nothing depends on timing.
#![allow(clippy::expect_used, reason = "a test that cannot go on says why and stops")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const PX: &str = env!("CARGO_BIN_EXE_px");
const PATIENCE: Duration = Duration::from_secs(180);

/// The user's end, and the session at the other end.
struct Terminal {
    person: File,
    session: Child,
    seen: String,
}

impl Terminal {
    /// Starts a program as leader of a session with the terminal.
    fn new<'a>(dir: &Path, program: impl IntoIterator<Item = &'a str>) -> Terminal {
        let person: OwnedFd =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&person).expect("a terminal");
        unlockpt(&person).expect("a terminal");
        let name = ptsname(&person, Vec::new()).expect("its name");
        let name = name.to_str().expect("a path").to_owned();
        let end = || File::options().read(true).write(true).open(Path::new(&name)).expect("its other end");
        let session = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .args(program)
            .current_dir(dir)
            .env("TMPDIR", dir)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("a session");
        Terminal { person: person.into(), session, seen: String::new() }
    }

    /// `px run OPTIONS sh -c SCRIPT`
    fn px_run(dir: &Path, options: &str, script: &str) -> Terminal {
        let words = [PX, "run"].into_iter().chain(options.split_whitespace());
        Terminal::new(dir, words.chain(["sh", "-c", script]))
    }

    fn enter(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Reads from the terminal until `wanted` has appeared.
    fn see(&mut self, wanted: &str) {
        let mut some = [0; 4096];
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        while !self.seen.contains(wanted) {
            let mut polled = [PollFd::new(&self.person, PollFlags::IN)];
            let ready = poll(&mut polled, Some(&patience)).expect("a terminal");
            assert!(ready > 0, "waited in vain for {wanted:?} in {:?}", self.seen);
            let read = self.person.read(&mut some);
            let count = read.unwrap_or_else(|e| panic!("no {wanted:?} but {e} in {:?}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&some[..count]));
        }
    }

    fn end(mut self) -> ExitStatus {
        self.session.wait().expect("the session ends")
    }
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn px(dir: &Path, words: &[&str]) -> Output {
    Command::new(PX).args(words).current_dir(dir).env("TMPDIR", dir).output().expect("px runs")
}

#[test]
fn a_prompt_appears_and_is_answered() {
    let place = place();
    let script = "if [ $PHALANX_RANK = 0 ]; then printf 'Name? '; read name; echo \"hello $name\"; fi";
    let mut terminal = Terminal::px_run(place.path(), "-q -n 2", script);
    terminal.see("Name? ");
    terminal.enter("you\n");
    terminal.see("hello you");
    assert!(terminal.end().success());
}

#[test]
fn what_is_typed_ahead_stays_at_the_terminal() {
    let place = place();
    let dvm = px(place.path(), &["dvm", "start", "--daemonize", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&dvm.stdout).expect("JSON");
    let dvm = told["pid"].to_string();
    for server in [String::new(), format!("--pid {dvm}")] {
        let go = place.path().join("go");
        let wait = "while ! [ -e go ]; do sleep 0.01; done";
        let script = format!("read one; echo \"rank: $one\"; {wait}; rm go");
        let run = format!("'{PX}' run -q {server} -n 1 sh -c '{script}'; read two; echo \"shell: $two\"");
        let mut terminal = Terminal::new(place.path(), ["sh", "-c", &run]);
        terminal.enter("first\nsecond\n");
        terminal.see("rank: first");
        fs::write(go, "").expect("a file");
        terminal.see("shell: second");
        assert!(terminal.end().success());
    }
    assert!(px(place.path(), &["dvm", "stop", "--pid", &dvm]).status.success());
}

#[test]
fn a_status_line_says_what_is_waited_for_and_goes_away() {
    let place = place();
    let script =
        format!("test $PHALANX_RANK = 0 || while ! [ -e go ]; do sleep 0.01; done; exec \"{PX}\" hello");
    let mut terminal = Terminal::px_run(place.path(), "-n 2", &script);
    terminal.see("px: connecting 1 of 2 ranks");
    fs::write(place.path().join("go"), "").expect("a file");
    terminal.see("\r\x1b[Khello from rank");
    assert!(terminal.end().success());
}

#[test]
fn control_c_at_a_terminal() {
    let place = place();
    let mut terminal = Terminal::px_run(place.path(), "-q -n 2", "echo up; exec sleep 1000");
    terminal.see("up\r\nup\r\n");
    terminal.enter("\x03");
    assert_eq!(terminal.end().code(), Some(130));
}

#[test]
fn a_terminal_that_hangs_up_ends_the_job() {
    let place = place();
    // Another process waits for px, outside of the terminal's session, so px learns of the hang-up from its writes alone.
    for px in [format!("\"{PX}\""), format!("env --ignore-signal=HUP \"{PX}\"")] {
        let script = format!(
            "setsid {px} run -q -n 2 sh -c 'echo up; exec yes' ; echo $? > code.new; mv code.new code"
        );
        let mut terminal = Terminal::new(place.path(), ["sh", "-c", &format!("trap '' HUP; {script}")]);
        terminal.see("up\r\n");
        let Terminal { person, mut session, .. } = terminal;
        drop(person);
        session.wait().expect("the session ends");
        let code = place.path().join("code");
        assert_eq!(fs::read_to_string(&code).expect("a code"), "129\n");
        fs::remove_file(code).expect("a file");
    }
}

#[test]
fn a_dvm_whose_terminal_hangs_up_exits_with_129() {
    let place = place();
    // It leads the terminal's session: the kernel sends the hang-up to no other process until the leader ends.
    let mut terminal = Terminal::new(place.path(), [PX, "dvm", "start"]);
    terminal.see("is ready");
    let Terminal { person, mut session, .. } = terminal;
    drop(person);
    assert_eq!(session.wait().expect("the DVM ends").code(), Some(129));
    assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 0);
}

#[test]
fn a_slow_terminal_slows_the_rank_and_gets_everything() {
    let place = place();
    // 4 MiB: a terminal is slow even without a user. Its conversion of line ends comes on top.
    let (line, count) = ("0123456789abcdef".repeat(64), 4096);
    let script = format!("yes {line} | head -n {count}");
    let mut terminal = Terminal::px_run(place.path(), "-q -n 1", &script);
    let status = format!("/proc/{}/status", terminal.session.id());
    let peak = || -> Option<u64> {
        let status = fs::read_to_string(&status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let expected = format!("{line}\r\n").into_bytes();
    let (mut some, mut at, mut most) = (vec![0; 4096], 0, 0);
    let total = expected.len() * count;
    while at < total {
        let read = terminal.person.read(&mut some).expect("a terminal");
        let whole =
            some[..read].iter().enumerate().all(|(n, byte)| *byte == expected[(at + n) % expected.len()]);
        assert!(whole, "something else at {at}");
        at += read;
        // Reads slowly in the beginning, like a terminal that scrolls.
        if at < 256 << 10 {
            most = peak().expect("px runs").max(most);
            std::thread::sleep(Duration::from_millis(1));
        }
        if at % 1024 == 0 {
            most = peak().unwrap_or(most).max(most);
        }
    }
    assert!((1..64 << 10).contains(&most), "px had {most} KiB");
    assert_eq!(terminal.end().code(), Some(0));
}

/// A rank that writes until it is stopped by a file, and then prints what it reads.
const TALKS_AND_READS: &str =
    "echo up; until [ -e go ]; do echo tick; sleep 0.05; done; while read line; do echo \"got $line\"; done";

/// In the background, px goes on although something was typed at the terminal; in the foreground it reads that.
fn goes_on_in_the_background(dir: &Path, px: &str) {
    // Echoes would mix with the expected lines.
    let script =
        format!("stty -echo; set -m; {px} & until [ -e front ]; do sleep 0.02; done; fg; echo ended with $?");
    let mut terminal = Terminal::new(dir, ["sh", "-c", &script]);
    terminal.see("up");
    terminal.enter("first\nsecond\n");
    // Far longer than the interval between two checks of the terminal.
    terminal.see(&"tick\r\n".repeat(40));
    fs::write(dir.join("go"), "").expect("a file");
    fs::write(dir.join("front"), "").expect("a file");
    terminal.see("got first\r\ngot second\r\n");
    terminal.enter("third\n\x04");
    terminal.see("got third\r\n");
    terminal.see("ended with 0");
    assert!(!terminal.seen.contains("topped"), "{}", terminal.seen);
    let _ = terminal.end();
}

#[test]
fn run_goes_on_in_the_background() {
    let place = place();
    goes_on_in_the_background(place.path(), &format!("\"{PX}\" run -q -n 1 sh -c '{TALKS_AND_READS}'"));
}

#[test]
fn attach_goes_on_in_the_background() {
    let place = place();
    let started =
        px(place.path(), &["run", "--detach", "-n", "1", "--stdin", "0", "sh", "-c", TALKS_AND_READS]);
    let job = String::from_utf8(started.stdout).expect("a name").trim().to_owned();
    goes_on_in_the_background(place.path(), &format!("\"{PX}\" attach {job} --stdin --since-start"));
}

#[test]
fn a_detached_job_outlives_its_terminal() {
    let place = place();
    let rank = "echo before; until [ -e go ]; do sleep 0.02; done; echo after; exit 3";
    let script = format!("\"{PX}\" run --detach -n 1 sh -c '{rank}' > job; touch started; exec sleep 1000");
    let mut terminal = Terminal::new(place.path(), ["sh", "-c", &script]);
    let path = |name: &str| -> PathBuf { place.path().join(name) };
    wait_for("the job to be let go", || path("started").exists());
    drop(terminal.person);
    // The session's leader dies of the hang-up.
    assert!(!terminal.session.wait().expect("the session ends").success());
    let job = fs::read_to_string(path("job")).expect("a name");
    fs::write(path("go"), "").expect("a file");
    let shown = px(place.path(), &["attach", job.trim(), "--since-start"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!((shown.status.code(), &*text), (Some(3), "before\nafter\n"), "{shown:?}");
}
