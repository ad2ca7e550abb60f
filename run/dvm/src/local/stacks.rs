//! The stacks of a rank's processes, from the output of the program that reads them: eu-stack, gdb, or py-spy for Python.
//!
//! Other programs do this better than we could, and know each language's frames. `stacks.sh` chooses one, `commands.rs` runs it,
//! and this parses what it has printed.

use std::time::Duration;

use crate::msg::{Stack, Stacks};
use crate::ranges::Ranges;

/// The script that reads the stacks of one rank.
pub(super) const READER: &str = include_str!("stacks.sh");
/// How long it may take.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// Adds the stacks of a rank, or the reason why there are none.
pub(super) fn add(stacks: &mut Stacks, rank: u32, printed: &[u8], failure: Option<String>) {
    let ranks = Ranges::single(rank);
    let found = parse(&String::from_utf8_lossy(printed));
    if found.is_empty() {
        let why = failure.unwrap_or_else(|| "the reader of stacks has printed none".to_owned());
        return stacks.miss(shortened(&why, MOST_REASON), &ranks);
    }
    for (program, frames) in found {
        stacks.add(Stack { program, frames, ranks: ranks.clone(), threads: 1 });
    }
}

/// The program and the frames of each thread, the outermost frame first.
fn parse(printed: &str) -> Vec<(String, Vec<String>)> {
    let (mut all, mut program, mut frames) = (Vec::new(), String::new(), Vec::new());
    let end = |all: &mut Vec<_>, program: &str, frames: &mut Vec<String>| {
        if !frames.is_empty() {
            all.push((program.to_owned(), in_order(std::mem::take(frames))));
        }
    };
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix("=process ") {
            end(&mut all, &program, &mut frames);
            program = shortened(name, MOST_NAME);
        } else if line.starts_with("TID ") || line.starts_with("Thread ") {
            end(&mut all, &program, &mut frames);
        } else if let Some(frame) = line.strip_prefix('#') {
            frames.push(shortened(&native(frame), MOST_NAME));
        } else if let Some(frame) = line.strip_prefix("    ").filter(|frame| !frame.starts_with(' ')) {
            // Of py-spy.
            frames.push(shortened(frame, MOST_NAME));
        }
    }
    end(&mut all, &program, &mut frames);
    all
}

/// Readers print the innermost frame first. Of a deep recursion both ends are kept; functions without names that follow each other in one file are
/// one.
fn in_order(mut frames: Vec<String>) -> Vec<String> {
    frames.reverse();
    frames.dedup_by(|one, other| one == other && one.starts_with(NAMELESS));
    if frames.len() > MOST_FRAMES {
        let surplus = frames.len() - MOST_FRAMES;
        frames.splice(OUTER..=OUTER + surplus, [format!("... {} frames", surplus + 1)]);
    }
    frames
}

/// The function of a line without its `#`:
/// `1  0x7f97abbd5bd3 wait4@GLIBC_2.2.5 - /usr/lib/libc.so.6` or `1  0x7f97abbd5bd3 - /usr/bin/dash` of eu-stack,
/// `1  0x7f97abbd5bd3 in main (argc=1) at a.c:3` or `1  0x7f97abbd5bd3 in ?? () from /usr/lib/libc.so.6` of gdb.
fn native(frame: &str) -> String {
    let rest = frame.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let rest = match rest.strip_prefix("0x") {
        Some(address) => address.split_once(' ').map_or("", |(_, rest)| rest),
        None => rest,
    };
    let rest = rest.strip_prefix("in ").unwrap_or(rest);
    let (function, module) = match rest.split_once("- /") {
        Some((function, module)) => (function, Some(module)),
        None => (rest, rest.split_once(" from /").map(|(_, module)| module)),
    };
    let function = function.split_once(" (").map_or(function, |(function, _)| function);
    let function = function.split_once('@').map_or(function, |(function, _)| function).trim();
    match (function, module) {
        ("" | NAMELESS, Some(module)) => {
            format!("{NAMELESS} in {}", module.rsplit('/').next().unwrap_or(module))
        }
        ("", None) => NAMELESS.to_owned(),
        (function, _) => function.to_owned(),
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

const NAMELESS: &str = "??";
/// In characters.
const MOST_NAME: usize = 160;
const MOST_REASON: usize = 400;
const MOST_FRAMES: usize = 64;
/// How many outer frames of a deep recursion are kept.
const OUTER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const EU_STACK: &str = "=process sh\nPID 23366 - process\nTID 23366:\n\
        #0  0x00007f97abbd5bd3 wait4 - /usr/lib/x86_64-linux-gnu/libc.so.6\n\
        #1  0x0000562de77eccc0 - /usr/bin/dash\n#2  0x0000562de77eccc1 - /usr/bin/dash\n\
        #3  0x00007f97abb29305 __libc_start_main@@GLIBC_2.34 - /usr/lib/x86_64-linux-gnu/libc.so.6\n\
        =process a.out\nPID 23368 - process\nTID 23368:\n#0  0x00007f656d1f2503 poll@GLIBC_2.2.5 - /usr/lib/libc.so.6\n\
        TID 23369:\n#0  0x00007f656d1f2503 read - /usr/lib/libc.so.6\n";

    const GDB: &str = "=process sleep\n\
        71\t../sysdeps/unix/sysv/linux/clock_nanosleep.c: No such file or directory.\n\n\
        Thread 2 (Thread 0x7fe9a0d4e741 (LWP 17220) \"helper\"):\n\
        #0  0x00007fe9a0e24e53 in ?? () from /usr/lib/libgcc_s.so.1\n\
        #1  <signal handler called>\n\n\
        Thread 1 (Thread 0x7fe9a0d4e740 (LWP 17219) \"sleep\"):\n\
        #0  __GI___clock_nanosleep (clock_id=0, req=0x7ffe489e8cc0) at ../sysdeps/clock_nanosleep.c:71\n\
        #1  0x000055da329474af in ?? ()\n\
        #2  0x00007fe9a0d7824a in main (argc=argc@entry=2, argv=0x7ffe489e8eb8) at sleep.c:9\n\
        [Inferior 1 (process 17219) detached]\n";

    const PY_SPY: &str = "=process python3\nProcess 23639: python3 app.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n\
        Thread 23639 (idle): \"MainThread\"\n    deep (app.py:2)\n    <module> (app.py:3)\n";

    #[test]
    fn the_output_of_each_reader_is_understood() {
        let of = |printed| {
            let all = parse(printed).into_iter();
            all.map(|(program, frames)| format!("{program}: {}", frames.join(" > "))).collect::<Vec<_>>()
        };
        assert_eq!(
            of(EU_STACK),
            ["sh: __libc_start_main > ?? in dash > wait4", "a.out: poll", "a.out: read"]
        );
        assert_eq!(
            of(GDB),
            [
                "sleep: <signal handler called> > ?? in libgcc_s.so.1",
                "sleep: main > ?? > __GI___clock_nanosleep"
            ]
        );
        assert_eq!(of(PY_SPY), ["python3: <module> (app.py:3) > deep (app.py:2)"]);
    }

    #[test]
    fn a_rank_without_stacks_has_a_reason() {
        let mut stacks = Stacks::default();
        add(&mut stacks, 3, b"=process a.out\n", Some("not permitted".to_owned()));
        add(&mut stacks, 4, b"\xff#\n", None);
        let unread: Vec<_> =
            stacks.unread.iter().map(|one| (one.why.as_str(), one.ranks.to_string())).collect();
        assert_eq!(
            unread,
            [("not permitted", "3".to_owned()), ("the reader of stacks has printed none", "4".to_owned())]
        );
    }

    #[test]
    fn of_a_deep_recursion_both_ends_are_kept() {
        let printed: String = (0..1000).map(|n| format!("#{n}  0x1 in f{n} ()\n")).collect();
        let [(_, frames)] = &parse(&printed)[..] else { panic!("{printed}") };
        assert_eq!(frames.len(), MOST_FRAMES);
        assert_eq!((frames[0].as_str(), frames[OUTER].as_str()), ("f999", "... 937 frames"));
        assert_eq!(frames.last().map(String::as_str), Some("f0"));
    }
}
