//! Tools compiled against libpmix 4.2 pull the output of a running job of `px run`.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::path::PathBuf;

use phalanx_interop::{Job, Running, eventually, host, new_directory, pmix_tool, px, rss_kib};
use rustix::process::{Pid, Signal, kill_process};

/// `px run` of a shell script, whose ranks wait until the directory holds a file called `go`, once tools can find it.
struct Scene {
    launcher: Running,
    place: tempfile::TempDir,
}

impl Scene {
    fn new(ranks: &str, script: &str) -> Scene {
        let place = new_directory();
        let go = place.path().join("go");
        let script = format!("while ! [ -e {} ]; do sleep 0.02; done; {script}", go.display());
        let launcher = px(["-n", ranks, "sh", "-c", &script]).start();
        eventually("the launcher can be found", || rendezvous_file(&launcher).is_some());
        Scene { launcher, place }
    }

    fn pull(&self, rank: &str, words: &[&str]) -> Running {
        let (pid, nspace) = (self.launcher.pid().to_string(), self.job());
        let errors = self.place.path().join(format!("tool-{rank}-{}", words.join("-")));
        let script = format!("exec \"$@\" 2> {}", errors.display());
        let job = Job::new("sh").args(["-c", &script, "sh"]).arg(pmix_tool("pull"));
        let job = job.args(["pid", &pid, &nspace, rank, "2"]).args(words);
        let tool = job.env("TMPDIR", self.launcher.tmpdir()).deadline(100).start();
        eventually("the tool pulls", || {
            fs::read_to_string(&errors).is_ok_and(|text| text.contains("pulling"))
        });
        tool
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

fn rendezvous_file(running: &Running) -> Option<PathBuf> {
    let sessions = fs::read_dir(running.tmpdir()).ok()?.flatten().map(|entry| entry.path());
    let name = format!("pmix.{}.tool.{}", host(), running.pid());
    sessions.map(|session| session.join(&name)).find(|file| file.exists())
}

/// 2,000 lines that say who wrote them.
const LINES: &str = "for i in $(seq 2000); do echo \"rank $PMIX_RANK line $i\"; done";

fn lines(rank: u32) -> String {
    (1..=2000).map(|line| format!("rank {rank} line {line}\n")).collect()
}

#[test]
fn a_tool_gets_the_output_of_one_rank_and_the_user_that_of_the_others() {
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
fn a_tool_that_is_stopped_stops_the_rank_and_memory_stays_small_then_everything_arrives() {
    let scene = Scene::new("1", "head -c 50000000 /dev/zero | tr '\\0' x");
    let tool = scene.pull("0", &["copy"]);
    let stopped = Pid::from_raw(tool.pid().cast_signed()).expect("a pid");
    kill_process(stopped, Signal::STOP).expect("stopping the tool");
    scene.go();
    let launcher = scene.launcher.pid();
    let mut before = 0;
    // The rank writes until nobody takes any more; then its launcher rests.
    eventually("the rank waits", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now = cpu_ticks(launcher);
        std::mem::replace(&mut before, now) == now
    });
    assert!(rss_kib(launcher).expect("it runs").1 < 64 << 10, "the launcher grows");
    kill_process(stopped, Signal::CONT).expect("continuing the tool");
    let seen = scene.launcher.wait().expect_code(0).stdout;
    assert_eq!((seen.len(), tool.wait().expect_code(0).stdout.len()), (50_000_000, 50_000_000));
}

/// Time that a process has run, in ticks.
fn cpu_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    after.split_ascii_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
