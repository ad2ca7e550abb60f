//! Tools compiled against libpmix 4.2 pull the output of a running job of `px run`.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use phalanx_interop::{
    Job, Running, eventually, host, libpmix, new_directory, pmix_tool, px, px_binary, rests, rss_kib,
};
use rustix::process::{Pid, Signal, kill_process};

/// `px run` of a shell script, with ranks that wait until the directory contains a file called `go`, once tools can find it.
struct Scene {
    launcher: Running,
    place: tempfile::TempDir,
}

impl Scene {
    fn new(ranks: &str, script: &str) -> Scene {
        Scene::with(&[], ranks, script)
    }

    fn with(options: &[&str], ranks: &str, script: &str) -> Scene {
        let place = new_directory();
        let go = place.path().join("go");
        let script = format!("while ! [ -e '{}' ]; do sleep 0.02; done; {script}", go.display());
        let launcher = px([options, &["-n", ranks, "sh", "-c", &script]].concat()).start();
        eventually("the launcher can be found", || launcher.rendezvous_file().is_some());
        Scene { launcher, place }
    }

    fn pull(&self, rank: &str, words: &[&str]) -> Running {
        self.pull_channels("2", rank, words)
    }

    fn pull_channels(&self, channels: &str, rank: &str, words: &[&str]) -> Running {
        self.pull_with(None, channels, rank, words)
    }

    /// `library`: the directory of the tool's library; by default Debian's.
    fn pull_with(&self, library: Option<&Path>, channels: &str, rank: &str, words: &[&str]) -> Running {
        let (pid, nspace) = (self.launcher.pid().to_string(), self.job());
        let errors = self.errors(rank, words);
        let script = format!("exec \"$@\" 2> '{}'", errors.display());
        let job = Job::new("sh").args(["-c", &script, "sh"]).arg(pmix_tool("pull"));
        let job = job.args(["pid", &pid, &nspace, rank, channels]).args(words);
        let job = match library {
            Some(library) => job.env("LD_LIBRARY_PATH", library),
            None => job,
        };
        let tool = job.env("TMPDIR", self.launcher.tmpdir()).start();
        eventually("the tool pulls", || {
            fs::read_to_string(&errors).is_ok_and(|text| text.contains("pulling"))
        });
        tool
    }

    /// The file with a tool's standard error.
    fn errors(&self, rank: &str, words: &[&str]) -> PathBuf {
        self.place.path().join(format!("tool-{rank}-{}", words.join("-").replace('/', "_")))
    }

    /// The name of the job: the launcher's and its number.
    fn job(&self) -> String {
        let pid = self.launcher.pid();
        format!("px-{}-{pid}@{}", host(), pid & 0xffff)
    }

    fn go(&self) {
        fs::write(self.place.path().join("go"), "").expect("letting the ranks go");
    }
}

/// The numbers in a tool's final message: bytes, pieces, lost bytes.
fn counted(errors: &Path) -> [u64; 3] {
    let said = fs::read_to_string(errors).expect("what the tool said");
    let last = said.lines().last().unwrap_or_default();
    let numbers: Vec<u64> =
        last.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("a tool said {said}"))
}

/// 2,000 lines that contain the rank of their writer.
const LINES: &str = "for i in $(seq 2000); do echo \"rank $PMIX_RANK line $i\"; done";

fn lines(rank: u32) -> String {
    (1..=2000).map(|line| format!("rank {rank} line {line}\n")).collect()
}

#[test]
fn tool_takes_one_ranks_output_user_gets_the_others() {
    let scene = Scene::new("3", LINES);
    let tool = scene.pull("2", &[]);
    scene.go();
    let seen = scene.launcher.wait().expect_code(0).stdout;
    let got = tool.wait().expect_code(0).stdout;
    assert!(got == lines(2), "the tool got {} bytes", got.len());
    for rank in [0, 1] {
        let own: String =
            seen.split_inclusive('\n').filter(|l| l.starts_with(&format!("rank {rank} "))).collect();
        assert!(own == lines(rank), "the user misses lines of rank {rank}");
    }
    assert!(!seen.contains("rank 2 "), "what is redirected is not shown");
}

#[test]
fn several_copies_and_the_user_all_get_everything() {
    let scene = Scene::new("2", LINES);
    let tools = [scene.pull("all", &["copy"]), scene.pull("1", &["copy"])];
    scene.go();
    let seen = scene.launcher.wait().expect_code(0).stdout;
    let got: Vec<String> = tools.map(|tool| tool.wait().expect_code(0).stdout).into();
    let of = |text: &str, rank| -> String {
        text.split_inclusive('\n').filter(|line| line.starts_with(&format!("rank {rank} "))).collect()
    };
    for (text, rank) in [(&seen, 0), (&seen, 1), (&got[0], 0), (&got[0], 1), (&got[1], 1)] {
        assert!(of(text, rank) == lines(rank), "lines of rank {rank} are missing");
    }
    assert!(got[1] == lines(1), "the second tool wanted rank 1 alone");
}

#[test]
fn stopped_tool_stops_the_rank_then_gets_everything() {
    let scene = Scene::new("1", "head -c 50000000 /dev/zero | tr '\\0' x");
    let tool = scene.pull("0", &["copy"]);
    let stopped = Pid::from_raw(tool.pid().cast_signed()).expect("a pid");
    kill_process(stopped, Signal::STOP).expect("stopping the tool");
    scene.go();
    let launcher = scene.launcher.pid();
    // The rank writes until its output is no longer taken; then its launcher is idle.
    eventually("the rank waits", || rests(launcher));
    assert!(rss_kib(launcher).expect("it runs").1 < 64 << 10, "the launcher grows");
    kill_process(stopped, Signal::CONT).expect("continuing the tool");
    let seen = scene.launcher.wait().expect_code(0).stdout;
    assert_eq!((seen.len(), tool.wait().expect_code(0).stdout.len()), (50_000_000, 50_000_000));
}

#[test]
fn a_tool_with_a_copy_that_is_stopped_keeps_no_job_from_ending() {
    let scene = Scene::new("1", LINES);
    let tool = scene.pull_with(Some(libpmix()), "2", "0", &["copy"]);
    tool.signal(Signal::STOP);
    scene.go();
    assert!(scene.launcher.wait().expect_code(0).stdout == lines(0));
    tool.signal(Signal::CONT);
    assert!(tool.wait().expect_code(0).stdout == lines(0), "it gets everything all the same");
}

#[test]
fn output_a_reader_missed_of_a_killed_job_goes_to_the_user() {
    for library in [None, Some(libpmix())] {
        let scene = Scene::new("1", "exec yes");
        let pid = scene.launcher.pid();
        let told = Arc::new(Mutex::new(String::new()));
        let hears = told.clone();
        let events = Job::new(px_binary()).args(["events", "--pid", &pid.to_string()]);
        let events = events.env("TMPDIR", scene.launcher.tmpdir()).reading(move |bytes| {
            hears.lock().expect("it works").push_str(&String::from_utf8_lossy(bytes));
        });
        let events = events.start();
        let heard = |what: &str| told.lock().expect("it works").contains(what);
        let on = scene.place.path().join("on");
        let words = ["redirect", "slow", on.to_str().expect("UTF-8")];
        let tool = scene.pull_with(library, "2", "0", &words);
        scene.go();
        eventually("the rank waits, and so does who listens", || rests(pid) && rests(events.pid()));
        scene.launcher.signal(Signal::INT);
        // The job waits for the tool to take its output, until a second signal. It does not wait for standard error.
        eventually("the rank is gone", || heard("PMIX_ERR_IOF_COMPLETE"));
        scene.launcher.signal(Signal::INT);
        let job = scene.job();
        let seen = scene.launcher.wait().expect_code(130).stdout;
        assert!(seen.starts_with("y\ny\n") || seen.starts_with("\ny\n"), "{}", seen.len());
        let _ = events.wait();
        let failed = format!(
            "PMIX_ERR_IOF_FAILURE (-172) from {job}:* PMIX_EVENT_AFFECTED_PROC={job}:0 phalanx.iof.channel=2"
        );
        assert!(heard(&failed), "{}", told.lock().expect("it works"));
        fs::write(&on, "").expect("letting the tool go on");
        let _ = tool.wait();
    }
}

#[test]
fn a_tool_gets_lines_with_the_tags_that_it_asked_for() {
    let scene = Scene::new("2", "echo out $PMIX_RANK $$; printf 'no end' >&2");
    let detailed = scene.pull_channels("6", "all", &["copy", "detailed", "merge"]);
    let ranks = scene.pull("1", &["copy", "rank", "timestamp"]);
    let (job, host) = (scene.job(), host());
    scene.go();
    let seen = scene.launcher.wait().expect_code(0).stdout;
    let pid = |rank: u32| {
        let own = seen.lines().find_map(|line| line.strip_prefix(&format!("out {rank} ")));
        own.expect("the rank's pid").to_owned()
    };
    let got = detailed.wait().expect_code(0).stdout;
    for rank in [0, 1] {
        let pid = pid(rank);
        for line in [
            format!("[{job},{rank}][{host}:{pid}]<stdout>: out {rank} {pid}\n"),
            format!("[{job},{rank}][{host}:{pid}]<stderr>: no end"),
        ] {
            assert!(got.contains(&line), "{line} is missing in {got}");
        }
    }
    let got = ranks.wait().expect_code(0).stdout;
    let (time, line) = got.split_once(' ').expect("a time");
    assert!(time.ends_with('Z') && time.contains('T'), "{got}");
    assert_eq!(line, format!("1: out 1 {}\n", pid(1)));
}

#[test]
fn xml_output_for_tools_can_be_parsed() {
    let nasty = "printf 'a <b> & \"c\"\\n'; printf '\\001\\377binary\\n'; printf 'no end' >&2";
    let scene = Scene::new("3", nasty);
    let tool = scene.pull_channels("6", "all", &["xml"]);
    scene.go();
    scene.launcher.wait().expect_code(0);
    let elements = tool.wait().expect_code(0).stdout;
    let script = "import sys, base64, xml.etree.ElementTree as tree\n\
        for e in tree.fromstring('<all>' + sys.argv[1] + '</all>'):\n\
        \x20   text = (e.text or '').encode()\n\
        \x20   if e.get('encoding') == 'base64': text = base64.b64decode(text)\n\
        \x20   print(e.tag, e.get('rank'), e.get('host') is not None, e.get('newline'), text)";
    let parsed = Job::new("python3").args(["-c", script, &elements]).run().expect_code(0).stdout;
    let mut lines: Vec<&str> = parsed.lines().collect();
    lines.sort_unstable();
    let line = |rank: u32| {
        [
            format!("stderr {rank} True no b'no end'"),
            format!("stdout {rank} True None b'\\x01\\xffbinary'"),
            format!("stdout {rank} True None b'a <b> & \"c\"'"),
        ]
    };
    let mut expected: Vec<String> = [0, 1, 2].into_iter().flat_map(line).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn a_tool_that_wants_large_pieces_gets_them() {
    let scene = Scene::new("1", "for i in $(seq 2000); do echo $i; done; sleep 1; printf rest");
    let words = ["copy", "size", "5000"];
    let (tool, errors) = (scene.pull("0", &words), scene.errors("0", &words));
    scene.go();
    let Scene { launcher, place } = scene;
    let seen = launcher.wait().expect_code(0).stdout;
    assert!(tool.wait().expect_code(0).stdout == seen, "bytes are missing");
    let [bytes, pieces, lost] = counted(&errors);
    drop(place);
    assert_eq!((bytes, lost), (seen.len() as u64, 0));
    assert!(pieces <= 2, "{pieces} pieces of {bytes} bytes");
}

#[test]
fn tool_that_drops_oldest_learns_how_many() {
    let writes = "head -c 60000000 /dev/zero | tr '\\0' x; echo; echo the last line";
    let place = new_directory();
    let end = place.path().join("end");
    let written = place.path().join("written");
    let waits =
        format!("touch '{}'; while ! [ -e '{}' ]; do sleep 0.02; done", written.display(), end.display());
    let scene = Scene::new("1", &format!("{writes}; {waits}"));
    let all = 60_000_015;
    // While it does not read, more is written than fits in between.
    let written = written.to_str().expect("UTF-8");
    let words = ["copy", "oldest", "cache", "65536", "slow", written, "until", &all.to_string()];
    let (tool, errors) = (scene.pull("0", &words), scene.errors("0", &words));
    scene.go();
    let got = tool.wait().expect_code(0).stdout;
    let [bytes, _, lost] = counted(&errors);
    assert_eq!(bytes + lost, all, "every byte is there or counted");
    assert!(lost > 0, "nothing was dropped");
    assert!(got.ends_with("the last line\n"), "the newest bytes stay");
    fs::write(end, "").expect("letting the rank end");
    assert_eq!(scene.launcher.wait().expect_code(0).stdout.len() as u64, all);
}

#[test]
fn our_library_shows_what_a_tool_pulls_without_a_callback() {
    let scene = Scene::new("2", "echo out $PMIX_RANK; echo err $PMIX_RANK >&2");
    let ours = libpmix();
    let file = scene.place.path().join("%r");
    let file = file.to_str().expect("text");
    let shown = scene.pull_with(Some(ours), "6", "all", &["copy", "show", "xml", "merge"]);
    let filed = scene.pull_with(Some(ours), "6", "all", &["copy", "show", "file", file, "pattern", "only"]);
    scene.go();
    let Scene { launcher, place } = scene;
    launcher.wait().expect_code(0);
    let document = shown.wait().expect_code(0).stdout;
    let script = "import sys, xml.etree.ElementTree as tree\n\
        print(sorted((e.tag, e.get('rank'), e.text) for e in tree.fromstring(sys.argv[1].encode())))";
    let parsed = Job::new("python3").args(["-c", script, &document]).run().expect_code(0).stdout;
    let expected = "[('stderr', '0', 'err 0'), ('stderr', '1', 'err 1'), \
                    ('stdout', '0', 'out 0'), ('stdout', '1', 'out 1')]";
    assert_eq!(parsed.trim_end(), expected);
    assert_eq!(filed.wait().expect_code(0).stdout, "");
    for rank in [0, 1] {
        for (channel, word) in [("stdout", "out"), ("stderr", "err")] {
            let text = fs::read_to_string(place.path().join(format!("{rank}.{channel}"))).expect("a file");
            assert_eq!(text, format!("{word} {rank}\n"));
        }
    }
}

#[test]
fn library_writes_files_beside_or_instead_of_a_callback() {
    let scene = Scene::new("2", "echo out $PMIX_RANK; echo err $PMIX_RANK >&2; printf 'no end'");
    let ours = libpmix();
    let (beside, alone) = (scene.place.path().join("beside-%r"), scene.place.path().join("alone-%r"));
    let (beside, alone) = (beside.to_str().expect("text"), alone.to_str().expect("text"));
    let both = scene.pull_with(Some(ours), "6", "all", &["copy", "rank", "file", beside, "pattern"]);
    let filed = scene.pull_with(Some(ours), "6", "all", &["copy", "file", alone, "pattern", "only"]);
    scene.go();
    let Scene { launcher, place } = scene;
    launcher.wait().expect_code(0);
    let called = both.wait().expect_code(0).stdout;
    for rank in [0, 1] {
        for line in
            [format!("{rank}: out {rank}\n"), format!("{rank}: err {rank}\n"), format!("{rank}: no end")]
        {
            assert!(called.contains(&line), "{line} is missing in {called}");
        }
    }
    assert_eq!(filed.wait().expect_code(0).stdout, "", "files are all it wants");
    for (name, rank) in [("beside", 0), ("beside", 1), ("alone", 0), ("alone", 1)] {
        let file = |channel: &str| {
            fs::read_to_string(place.path().join(format!("{name}-{rank}.{channel}"))).expect("a file")
        };
        assert_eq!(file("stdout"), format!("out {rank}\nno end"), "as it was written");
        assert_eq!(file("stderr"), format!("err {rank}\n"));
    }
}

#[test]
fn library_connects_a_spawned_job_to_the_tools_streams() {
    let scene = Scene::new("1", "true");
    let input: Vec<u8> = (0..500_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let pid = scene.launcher.pid().to_string();
    let job = Job::new(pmix_tool("run")).args([&pid, "sed s/^/$PMIX_RANK:/", "2"]);
    let job = job.env("LD_LIBRARY_PATH", libpmix()).env("TMPDIR", scene.launcher.tmpdir());
    let shown = job.input(&input).run().expect_code(0).stdout;
    for rank in [0, 1] {
        let got: String = shown
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{rank}:")))
            .fold(String::new(), |text, line| text + line + "\n");
        assert!(got.as_bytes() == input, "rank {rank} has read {} of {} bytes", got.len(), input.len());
    }

    // A rank that needs no more input ignores the rest; the library adds the tags.
    let job = Job::new(pmix_tool("run")).args([&pid, "head -n 1", "1", "tag"]);
    let job = job.env("LD_LIBRARY_PATH", libpmix()).env("TMPDIR", scene.launcher.tmpdir());
    let shown = job.input(&input).run().expect_code(0).stdout;
    assert!(shown.starts_with('[') && shown.ends_with(",0]<stdout>: 0\n"), "{shown}");
    scene.go();
    scene.launcher.wait().expect_code(0);
}

#[test]
fn a_tool_pulls_the_diagnostics_of_ranks_alone() {
    let script = "echo out; echo diagnostics of $PMIX_RANK > /dev/fd/$PHALANX_STDDIAG_FD";
    let scene = Scene::with(&["--output", "diag"], "2", script);
    let tool = scene.pull_channels("8", "all", &["tag"]);
    scene.go();
    let seen = scene.launcher.wait().expect_code(0);
    assert_eq!((&*seen.stdout, &*seen.stderr), ("out\nout\n", ""));
    let got = tool.wait().expect_code(0).stdout;
    for rank in [0, 1] {
        let line = format!(",{rank}]<stddiag>: diagnostics of {rank}\n");
        assert!(got.contains(&line), "{line} is missing in {got}");
    }
}
