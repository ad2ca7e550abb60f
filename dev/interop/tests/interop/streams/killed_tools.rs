//! Tools that read a job's output instead of its user and are killed while doing so: the user gets the output that they have not passed on.
//!
//! They are stopped first, so that as much as possible is on its way to them, and held by them, when they die.

// A test that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

use std::fs;
use std::sync::{Arc, Mutex};

use phalanx_interop::load::{Blocks, Lines, Unhurried};
use phalanx_interop::{
    Job, Library, Running, bench, eventually, libpmix, new_directory, pmix_tool, px, px_binary, rests,
};
use rustix::process::Signal;

/// Most bytes that may come twice: output that a tool had taken but not yet acknowledged, and output that it still held.
const MOST_TWICE: i64 = (512 << 10) + COLLECTED;
const COLLECTED: i64 = 300_000;
/// Long enough for a line to come in several pieces.
const LENGTH: usize = 30_000;
const LINES: u64 = 400;

#[test]
fn raw_output_of_a_killed_tool_reaches_the_user() {
    let attached = raw_bytes_twice(|running, job| {
        let pid = running.pid().to_string();
        Job::new(px_binary()).args(["attach", "--pid", &pid, "--redirect", job])
    });
    let in_c = raw_bytes_twice(|running, job| pull(running, job, &[]).env("LD_LIBRARY_PATH", libpmix()));
    println!("px attach: {attached} bytes came twice; a tool on our library: {in_c}");
    for twice in [attached, in_c] {
        assert!((0..=MOST_TWICE).contains(&twice), "{twice}");
    }
}

/// OpenPMIx's library does not acknowledge output: bytes that the kernel holds for a killed process are lost with it.
#[test]
fn on_another_library_what_its_connection_held_goes_with_it() {
    let twice = raw_bytes_twice(|running, job| pull(running, job, &[]));
    println!("{} bytes went with the tool", -twice);
    let most = |path: &str| -> i64 {
        let text = fs::read_to_string(path).expect("the kernel says it");
        text.split_whitespace().last().and_then(|word| word.parse().ok()).expect("a number")
    };
    let buffers = most("/proc/sys/net/ipv4/tcp_rmem") + most("/proc/sys/net/ipv4/tcp_wmem");
    assert!((-buffers - (1 << 20)..=MOST_TWICE).contains(&twice), "{twice}");
}

#[test]
fn lines_that_its_server_gave_their_form() {
    nothing_is_missing(&["tag"], untagged);
    nothing_is_missing(&["xml"], text_of_elements);
}

#[test]
fn lines_that_its_library_gave_their_form() {
    nothing_is_missing(&["show"], |bytes| bytes.to_vec());
    nothing_is_missing(&["show", "tag"], untagged);
    nothing_is_missing(&["show", "xml"], text_of_elements);
}

#[test]
fn collected_output_of_a_killed_tool_reaches_the_user() {
    nothing_is_missing(&["size", &COLLECTED.to_string()], |bytes| bytes.to_vec());
    nothing_is_missing(&["show", "size", &COLLECTED.to_string()], |bytes| bytes.to_vec());
    nothing_is_missing(&["show", "size", &COLLECTED.to_string(), "time", "1000", "tag"], untagged);
}

#[test]
fn lines_of_several_ranks_in_one_file() {
    let place = new_directory();
    let name = place.path().join("all").to_str().expect("UTF-8").to_owned();
    let file = place.path().join("all.stdout");
    let tool = |running: &Running, job: &str| {
        let words = ["show", "file", &name, "pattern", "only"];
        pull(running, job, &words).env("LD_LIBRARY_PATH", libpmix())
    };
    let written = || fs::metadata(&file).map_or(0, |file| file.len() as usize);
    let user = killed(&["-n", "2"], &lines(), tool, |_| written()).user;
    let file = fs::read(&file).expect("the tool's file");
    for rank in 0..2 {
        let of_rank = |line: &&[u8]| line.trim_ascii_end().ends_with(&[b'a' + rank as u8]);
        let own = |bytes: &[u8]| -> Vec<u8> {
            bytes.split_inclusive(|byte| *byte == b'\n').filter(of_rank).flatten().copied().collect()
        };
        let twice = twice(&all_lines(rank), &own(&user), &own(&file), LENGTH);
        println!("rank {rank}: {twice} bytes came twice");
        assert!((0..=MOST_TWICE).contains(&twice), "rank {rank}: {twice}");
    }
}

fn pull(running: &Running, job: &str, words: &[&str]) -> Job {
    let pid = running.pid().to_string();
    Job::new(pmix_tool("pull")).args(["pid", &pid, job, "all", "2", "redirect"]).args(words)
}

fn lines() -> Vec<String> {
    ["lines".to_owned(), LINES.to_string(), LENGTH.to_string(), "65536".to_owned()].into()
}

fn all_lines(rank: u32) -> Vec<u8> {
    let mut all = Vec::new();
    Lines::new(rank + 1, LENGTH, false).write(rank, LINES, &mut all);
    all
}

#[track_caller]
fn nothing_is_missing(words: &[&str], plain: fn(&[u8]) -> Vec<u8>) {
    let tool = |running: &Running, job: &str| pull(running, job, words).env("LD_LIBRARY_PATH", libpmix());
    let Killed { user, tool } = killed(&["-n", "1"], &lines(), tool, <[u8]>::len);
    let twice = twice(&all_lines(0), &user, &plain(&tool), LENGTH);
    println!("{words:?}: {twice} bytes came twice");
    assert!((0..=MOST_TWICE).contains(&twice), "{words:?}: {twice}");
}

#[track_caller]
fn raw_bytes_twice(tool: impl Fn(&Running, &str) -> Job) -> i64 {
    const BLOCK: usize = 4096;
    let total = 64 << 20;
    let program = ["blocks".to_owned(), total.to_string()];
    let Killed { user, tool } = killed(&["-n", "1"], &program, tool, <[u8]>::len);
    let mut written = Vec::new();
    Blocks::default().write(0, total, &mut written);
    twice(&written, &user, &tool, BLOCK)
}

struct Killed {
    user: Vec<u8>,
    tool: Vec<u8>,
}

/// Kills a tool when it has passed on enough, as counted by `passed_on`.
#[track_caller]
fn killed(
    options: &[&str],
    program: &[String],
    tool: impl Fn(&Running, &str) -> Job,
    passed_on: impl Fn(&[u8]) -> usize,
) -> Killed {
    let (user, got) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<Mutex<Vec<u8>>>::default());
    let joined = Arc::new(Mutex::new(false));
    let (reader, taken, watched) = (user.clone(), got.clone(), joined.clone());
    let mut unhurried = Unhurried::default();
    let running = px(options)
        .arg(bench(Library::Nothing, "stream"))
        .args(program)
        .reading(move |piece| {
            reader.lock().expect("it works").extend_from_slice(piece);
            // The tool must join before the ranks have ended.
            if !*watched.lock().expect("it works") {
                unhurried.pause();
            }
        })
        .start();
    let job = running.job_name();
    let tool = tool(&running, &job).env("TMPDIR", running.tmpdir());
    let tool = tool.reading(move |piece| taken.lock().expect("it works").extend_from_slice(piece)).start();
    eventually("the tool gets output", || passed_on(&got.lock().expect("it works")) > 1 << 20);
    *joined.lock().expect("it works") = true;
    tool.signal(Signal::STOP);
    eventually("the ranks wait", || rests(running.pid()));
    tool.signal(Signal::KILL);
    let _ = tool.wait();
    let _ = running.wait().expect_code(0).expect_nothing_left();
    let take = |bytes: Arc<Mutex<Vec<u8>>>| std::mem::take(&mut *bytes.lock().expect("it works"));
    Killed { user: take(user), tool: take(got) }
}

/// How many bytes both have; if negative, how many neither has. The user has two pieces; the tool's piece begins at most `reach`
/// before the end of the user's first one.
#[track_caller]
fn twice(written: &[u8], user: &[u8], tool: &[u8], reach: usize) -> i64 {
    let first = written.iter().zip(user).take_while(|(written, seen)| written == seen).count();
    let start = (first.saturating_sub(reach)..=first).rev().find(|at| written[*at..].starts_with(tool));
    let start = start.expect("the tool's piece begins where the user's first piece ends");
    let rest = &user[start..];
    assert!(written.ends_with(rest) && !rest.is_empty(), "the user's output is torn");
    (user.len() + tool.len()) as i64 - written.len() as i64
}

/// Removes tags before lines; the last tag may be torn.
fn untagged(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("text");
    let whole = match text.rsplit_once('[') {
        Some((before, tag)) if !tag.contains(">: ") => before,
        _ => text,
    };
    whole
        .split('[')
        .map(|piece| piece.split_once(">: ").map_or(piece, |(_, text)| text))
        .collect::<String>()
        .into()
}

/// The text in `<stdout ...>TEXT</stdout>`; the last element may be torn.
fn text_of_elements(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).expect("text");
    let mut plain = String::new();
    for element in text.split("<stdout ").skip(1) {
        let Some((attributes, rest)) = element.split_once('>') else { continue };
        let (content, end) = rest.split_once("</").map_or((rest, ""), |(content, end)| (content, end));
        plain.push_str(content);
        if end.starts_with("stdout>") && !attributes.contains("newline=\"no\"") {
            plain.push('\n');
        }
    }
    plain.into()
}
