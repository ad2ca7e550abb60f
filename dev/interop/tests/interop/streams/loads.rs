//! Much data through `px run`: nothing lost, nothing torn, per-rank order kept, and memory small, whatever readers do.
//!
//! `PHALANX_LOADS=full` runs the loads in full: 1 GiB from one rank, 16 x 64 MiB, 8 x 10^6 lines, a reader that stops for
//! 20 seconds, 1 GiB of input to one rank and 256 MiB to eight. Otherwise a sixteenth of each.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use phalanx_interop::load::{Blocks, Lines, Unhurried};
use phalanx_interop::{
    Job, Library, Outcome, Running, bench, children_of, eventually, pmix_tool, px, px_binary, rests, rss_kib,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

const LENGTH: usize = 80;
const MOST_KIB: u64 = 64 << 10;
const GIB: u64 = 1 << 30;

fn in_full() -> bool {
    std::env::var("PHALANX_LOADS").is_ok_and(|value| value == "full")
}

fn scaled(amount: u64) -> u64 {
    if in_full() { amount } else { amount / 16 }
}

fn stream() -> PathBuf {
    bench(Library::Nothing, "stream")
}

/// `px run` with this many ranks of the program, preceded by options of px.
fn run(ranks: u32, options: &[&str], arguments: &[String]) -> Job {
    let ranks = ranks.to_string();
    px(["-n", &ranks]).args(options).arg(stream()).args(arguments).deadline(if in_full() { 580 } else { 300 })
}

fn blocks(bytes: u64) -> Vec<String> {
    vec!["blocks".into(), bytes.to_string()]
}

fn lines(count: u64, piece: usize) -> Vec<String> {
    vec!["lines".into(), count.to_string(), LENGTH.to_string(), piece.to_string()]
}

/// A reader that can be stopped.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl Gate {
    fn stop(&self, stopped: bool) {
        self.0.store(stopped, Ordering::Relaxed);
    }

    fn pass(&self) {
        while self.0.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Checks lines on another thread.
#[derive(Clone)]
struct Checked(Arc<Mutex<Lines>>);

impl Checked {
    fn new(ranks: u32) -> Checked {
        Checked(Arc::new(Mutex::new(Lines::new(ranks, LENGTH, false))))
    }

    fn feed(&self, bytes: &[u8]) {
        self.0.lock().expect("nobody fails with it").feed(bytes);
    }

    fn bytes(&self) -> u64 {
        self.0.lock().expect("nobody fails with it").bytes
    }

    #[track_caller]
    fn expect(&self, count: u64) {
        assert_eq!(self.0.lock().expect("nobody fails with it").faults(count), None);
    }
}

#[track_caller]
fn expect_small(outcome: Outcome) -> Outcome {
    let outcome = outcome.expect_code(0).expect_nothing_left();
    println!("peak {} KiB, {:?}", outcome.peak_rss_kib, outcome.took);
    assert!(outcome.peak_rss_kib < MOST_KIB, "the launcher had {} KiB", outcome.peak_rss_kib);
    outcome
}

#[test]
fn every_byte_of_one_rank_arrives() {
    let bytes = scaled(GIB);
    let checked = Arc::new(Mutex::new(Blocks::default()));
    let reader = checked.clone();
    let job = run(1, &[], &blocks(bytes));
    expect_small(job.reading(move |piece| reader.lock().expect("it works").feed(piece)).run());
    let checked = checked.lock().expect("it works");
    assert_eq!((checked.bytes, checked.wrong), (bytes, 0));
}

#[test]
fn lines_of_many_ranks_arrive_whole_and_in_order() {
    for (ranks, count, piece) in [(16, scaled(64 << 20) / LENGTH as u64, 65_536), (8, scaled(1_000_000), 0)] {
        let checked = Checked::new(ranks);
        let reader = checked.clone();
        let job = run(ranks, &[], &lines(count, piece));
        expect_small(job.reading(move |piece| reader.feed(piece)).run());
        checked.expect(count);
    }
}

#[test]
fn a_reader_that_stops_stops_the_ranks_and_nothing_is_lost() {
    let (ranks, count) = (16, scaled(64 << 20) / LENGTH as u64);
    let (checked, gate) = (Checked::new(ranks), Gate::default());
    let (reader, closed) = (checked.clone(), gate.clone());
    let job = run(ranks, &[], &lines(count, 65_536)).reading(move |piece| {
        closed.pass();
        reader.feed(piece);
    });
    let running = job.start();
    eventually("output has begun", || checked.bytes() > 1 << 20);
    gate.stop(true);
    eventually("the launcher waits", || rests(running.pid()));
    assert!(checked.bytes() < count * u64::from(ranks) * LENGTH as u64, "the ranks have not finished");
    if in_full() {
        std::thread::sleep(Duration::from_secs(20));
    }
    gate.stop(false);
    expect_small(running.wait());
    checked.expect(count);
}

/// Writes blocks as fast as they are taken, and counts the bytes.
fn feed(bytes: u64, gone: Arc<AtomicU64>) -> impl FnOnce(ChildStdin) + Send {
    move |mut pipe| {
        let (blocks, mut piece) = (Blocks::default(), Vec::new());
        for at in (0..bytes).step_by(64 << 10) {
            piece.clear();
            blocks.write(at, (64 << 10).min((bytes - at) as usize), &mut piece);
            if pipe.write_all(&piece).is_err() {
                return;
            }
            gone.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Checks the final lines of ranks that have read everything.
#[track_caller]
fn expect_read(outcome: &Outcome, ranks: &[u32], bytes: u64) {
    for rank in ranks {
        let start = format!("sink {rank} {bytes} 0 ");
        assert!(outcome.stdout.lines().any(|line| line.starts_with(&start)), "rank {rank}\n{outcome}");
    }
}

#[test]
fn input_reaches_one_rank_and_eight() {
    for (ranks, bytes, options) in
        [(1, scaled(GIB), &[][..]), (8, scaled(256 << 20), &["--stdin", "all"][..])]
    {
        let job = run(ranks, options, &["sink".into()]).feeding(feed(bytes, Arc::default()));
        let outcome = expect_small(job.run());
        expect_read(&outcome, &(0..ranks).collect::<Vec<_>>(), bytes);
    }
}

#[test]
fn closed_input_of_a_rank_does_not_block_others() {
    // Rank 1 ends at once, rank 2 closes its input and stays until rank 0 has read everything.
    let place = phalanx_interop::new_directory();
    let done = place.path().join("done");
    let script = format!(
        "case $PMIX_RANK in 0) '{}' sink; touch '{done}';; 1) ;; 2) exec <&-; until [ -e '{done}' ]; do sleep 0.05; done;; esac",
        stream().display(),
        done = done.display(),
    );
    let bytes = scaled(256 << 20);
    let job = px(["-n", "3", "--stdin", "all", "sh", "-c", &script]).feeding(feed(bytes, Arc::default()));
    let outcome = expect_small(job.run());
    expect_read(&outcome, &[0], bytes);
}

#[test]
fn slow_rank_slows_its_input_down() {
    let bytes = scaled(256 << 20);
    let gone = Arc::new(AtomicU64::new(0));
    let place = phalanx_interop::new_directory();
    let go = place.path().join("go");
    mknodat(CWD, &go, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let script =
        format!("[ $PMIX_RANK = 1 ] && read word < '{}'; exec '{}' sink", go.display(), stream().display());
    let job = px(["-n", "2", "--stdin", "all", "sh", "-c", &script]).feeding(feed(bytes, gone.clone()));
    let running: Running = job.start();
    eventually("input has begun to flow", || gone.load(Ordering::Relaxed) > 0);
    eventually("the launcher waits", || rests(running.pid()));
    let taken = gone.load(Ordering::Relaxed);
    assert!(taken < 4 << 20, "{taken} bytes were taken although one rank reads none");
    fs::write(&go, "go\n").expect("letting rank 1 read");
    expect_read(&expect_small(running.wait()), &[0, 1], bytes);
}

/// Fails unless this is one contiguous piece of `rank`'s output: nothing missing inside it, nothing twice, nothing else.
#[track_caller]
fn expect_contiguous(piece: &[u8], rank: u32) {
    let text = std::str::from_utf8(piece).expect("text");
    let (_, whole) = text.split_once('\n').expect("the end of a line");
    let mut next = None;
    for line in whole.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let numbers = (words[0].parse::<u32>().ok(), words[1].parse::<u64>().ok());
        let (Some(of), Some(number)) = numbers else { panic!("no line: {line:?}") };
        assert_eq!((of, line.len()), (rank, LENGTH), "{line:?}");
        assert!(next.is_none_or(|next| next == number), "line {number} instead of {next:?}");
        next = Some(number + 1);
    }
    assert!(next.is_some(), "{} bytes and no line", piece.len());
}

#[test]
fn tools_that_join_and_leave_disturb_nobody() {
    let place = phalanx_interop::new_directory();
    let enough = place.path().join("enough");
    let mut arguments = lines(9_999_999_999, 65_536);
    arguments.push(enough.to_str().expect("UTF-8").to_owned());
    let checked = Checked::new(2);
    let reader = checked.clone();
    let running = run(2, &[], &arguments)
        .reading(move |piece| {
            reader.feed(piece);
            // Leaves the processors to the joining tools.
            std::thread::sleep(Duration::from_millis(1));
        })
        .start();
    let job = running.job_name();
    for number in 0..if in_full() { 100 } else { 10 } {
        let rank = number % 2;
        let got = Arc::new(Mutex::new(Vec::new()));
        let taken = got.clone();
        let tool = Job::new(px_binary()).args(["attach", "--pid", &running.pid().to_string()]);
        let tool = tool.arg(format!("{job}:{rank}")).env("TMPDIR", running.tmpdir());
        let tool =
            tool.reading(move |piece| taken.lock().expect("it works").extend_from_slice(piece)).start();
        eventually("the tool gets output", || got.lock().expect("it works").len() > 256 << 10);
        tool.signal(Signal::INT);
        let _ = tool.wait();
        expect_contiguous(&got.lock().expect("it works"), rank);
    }
    fs::write(&enough, "").expect("letting the ranks end");
    let outcome = expect_small(running.wait());
    let lines = checked.0.lock().expect("nobody fails with it");
    assert_eq!((lines.torn, lines.misplaced), (0, 0));
    for (rank, seen) in lines.seen().into_iter().enumerate() {
        assert!(outcome.stderr.contains(&format!("rank {rank} wrote {seen} lines")), "{seen}\n{outcome}");
    }
}

#[test]
fn slow_reader_gets_everything_in_small_memory() {
    let bytes = 64 << 20;
    let checked = Arc::new(Mutex::new(Blocks::default()));
    let gate = Gate::default();
    gate.stop(true);
    let (reader, closed) = (checked.clone(), gate.clone());
    let running = run(1, &[], &blocks(bytes))
        .reading(move |piece| {
            closed.pass();
            let mut checked = reader.lock().expect("it works");
            checked.feed(piece);
            // Like a scrolling terminal.
            if checked.bytes < 4 << 20 {
                std::thread::sleep(Duration::from_millis(2));
            }
        })
        .start();
    let pid = running.pid();
    eventually("the rank waits for the reader", || !children_of(pid).is_empty() && rests(pid));
    let (_, most) = rss_kib(pid).expect("it runs");
    assert!(most < MOST_KIB, "the launcher had {most} KiB with all of it outstanding");
    gate.stop(false);
    expect_small(running.wait());
    let checked = checked.lock().expect("it works");
    assert_eq!((checked.bytes, checked.wrong), (bytes, 0));
}

#[test]
fn killed_copying_tool_costs_the_user_nothing() {
    let bytes = 64 << 20;
    let user = Arc::new(Mutex::new(Blocks::default()));
    let got = Arc::new(AtomicU64::new(0));
    let (reader, taken, watched) = (user.clone(), got.clone(), got.clone());
    let mut unhurried = Unhurried::default();
    let running = run(1, &[], &blocks(bytes))
        .reading(move |piece| {
            reader.lock().expect("it works").feed(piece);
            // The tool must join before the rank has ended.
            if watched.load(Ordering::Relaxed) == 0 {
                unhurried.pause();
            }
        })
        .start();
    let job = running.job_name();
    let tool = Job::new(pmix_tool("pull")).args(["pid", &running.pid().to_string(), &job, "0", "2", "copy"]);
    let tool = tool.env("TMPDIR", running.tmpdir());
    let count = move |piece: &[u8]| {
        taken.fetch_add(piece.len() as u64, Ordering::Relaxed);
    };
    let tool = tool.reading(count).start();
    eventually("the tool gets output", || got.load(Ordering::Relaxed) > 0);
    tool.signal(Signal::KILL);
    let _ = tool.wait();
    expect_small(running.wait());
    let user = user.lock().expect("it works");
    assert_eq!((user.bytes, user.wrong), (bytes, 0));
    assert!(got.load(Ordering::Relaxed) > 0);
}
