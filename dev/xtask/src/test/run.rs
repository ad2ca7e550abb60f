//! Runs a binary and parses its output to learn which of its tests have passed.
//!
//! If a binary ends early or falls silent, the tests that were running count as failed, and the others are run without
//! them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::slowest::Slowest;
use crate::test::Binary;

/// How long a binary may print nothing. The deadlines of its tests are shorter.
const SILENCE: Duration = Duration::from_secs(420);

/// The results of a binary's tests.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    pub(crate) passed: usize,
    pub(crate) ignored: usize,
    pub(crate) failed: Vec<Failed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) test: String,
    /// Its output.
    pub(crate) said: String,
}

/// Runs the tests that `words` select.
pub(crate) fn run(binary: &Binary, words: &[&str], slowest: &mut Slowest) -> Result<Ran> {
    let mut ran = Ran::default();
    let first = once(binary, words, slowest, &mut ran)?;
    let Some(why) = first.cut_short else { return Ok(ran) };
    let mut left = listed(binary, words)?;
    left.retain(|test| !first.ended.contains(test));
    let cut_short =
        |test, why: &str| Failed { test, said: format!("it was running when {} {why}", binary.name) };
    // The harness starts tests by name.
    for test in left.drain(..binary.at_once().min(left.len())) {
        ran.failed.push(cut_short(test, &why));
    }
    // One by one: not every harness takes several names.
    for test in left {
        if let Some(why) = once(binary, &["--exact", &test], slowest, &mut ran)?.cut_short {
            ran.failed.push(cut_short(test, &why));
        }
    }
    Ok(ran)
}

/// One run of a binary.
#[derive(Debug, Default)]
struct Run {
    ended: BTreeSet<String>,
    /// Why some of its tests have not ended.
    cut_short: Option<String>,
}

fn once(binary: &Binary, words: &[&str], slowest: &mut Slowest, ran: &mut Ran) -> Result<Run> {
    eprintln!("-- {}", binary.name);
    let running = || format!("running {}", binary.name);
    let mut child = binary.command(words)?.stdout(Stdio::piped()).spawn().with_context(running)?;
    let stdout = child.stdout.take().context("no pipe from the tests")?;
    let (lines, coming) = channel();
    let reader = std::thread::spawn(move || {
        let (mut stdout, mut line) = (BufReader::new(stdout), Vec::new());
        while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    let (start, at_once) = (Instant::now(), binary.at_once());
    let (mut text, mut silent) = (Reading::default(), false);
    loop {
        match coming.recv_timeout(SILENCE) {
            Ok(line) => {
                print!("{line}");
                slowest.take(&line, start.elapsed(), at_once);
                text.take(line.trim_end());
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                silent = true;
                child.kill().with_context(running)?;
                break;
            }
        }
    }
    let status = child.wait().with_context(running)?;
    // A process that it has started may still hold the pipe: then the thread ends with that process.
    drop(coming);
    if !silent {
        let _ = reader.join();
    }
    slowest.close(at_once);
    ran.passed += text.passed;
    ran.ignored += text.ignored;
    ran.failed.append(&mut text.failures());
    let cut_short = match (silent, text.is_whole()) {
        (true, _) => Some(format!("said nothing for {} s", SILENCE.as_secs())),
        (false, false) => Some(format!("ended early ({status})")),
        (false, true) => {
            let agrees = status.success() == text.failed.is_empty();
            ensure!(agrees, "{} ended with {status} after {} failures", binary.name, text.failed.len());
            None
        }
    };
    Ok(Run { ended: text.ended, cut_short })
}

/// All tests of a binary that `words` select.
fn listed(binary: &Binary, words: &[&str]) -> Result<Vec<String>> {
    let output = binary.command(&[words, &["--list"]].concat())?.output();
    let output = output.with_context(|| format!("asking {} for its tests", binary.name))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(plain).collect())
}

/// A test's name without its kind, which precedes it in brackets.
fn plain(name: &str) -> String {
    match name.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, name)) => name.to_owned(),
        None => name.to_owned(),
    }
}

/// The output of the harness, line by line. It may contain several runs, as for the documentation of several crates.
#[derive(Debug, Default)]
struct Reading {
    begun: usize,
    closed: usize,
    passed: usize,
    ignored: usize,
    ended: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// The output of each failed test.
    said: Vec<Failed>,
    /// Whether the lines are the output of a failed test.
    is_quoting: bool,
}

impl Reading {
    fn take(&mut self, line: &str) {
        let header = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----"));
        if let Some(name) = header {
            let test = name.strip_suffix(" stdout").unwrap_or(name).to_owned();
            self.said.push(Failed { test, said: String::new() });
            self.is_quoting = true;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.close(counts);
        } else if line == "failures:" {
            self.is_quoting = false;
        } else if self.is_quoting {
            if let Some(last) = self.said.last_mut() {
                last.said.push_str(line);
                last.said.push('\n');
            }
        } else if line.starts_with("running ") && line.split(' ').count() == 3 {
            self.begun += 1;
        } else {
            self.result(line);
        }
    }

    fn result(&mut self, line: &str) {
        let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return;
        };
        let name = plain(name.strip_suffix(" - should panic").unwrap_or(name));
        match result.split([',', ' ']).next() {
            Some("FAILED") => drop(self.failed.insert(name.clone())),
            Some("ok" | "ignored") => {}
            _ => return,
        }
        self.ended.insert(name);
    }

    /// The line that ends a run: `ok. 97 passed; 0 failed; 1 ignored; ..`.
    fn close(&mut self, counts: &str) {
        let number = |what: &str| {
            let before = counts.split([';', '.']).find_map(|part| part.trim().strip_suffix(what));
            before.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        self.passed += number("passed");
        self.ignored += number("ignored");
        self.closed += 1;
        self.is_quoting = false;
    }

    fn is_whole(&self) -> bool {
        self.begun > 0 && self.begun == self.closed
    }

    fn failures(&self) -> Vec<Failed> {
        let said = |test: &String| {
            let of = self.said.iter().filter(|failed| failed.test == *test);
            of.map(|failed| failed.said.as_str()).collect::<String>()
        };
        self.failed.iter().map(|test| Failed { test: test.clone(), said: said(test) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        let mut reading = Reading::default();
        text.lines().for_each(|line| reading.take(line));
        reading
    }

    #[test]
    fn failures_come_with_what_they_have_printed() {
        let reading = read(
            "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... ignored, slow\n\nfailures:\n\n---- b::c stdout ----\n\
             it said\ntest x ... ok\n\n\nfailures:\n    b::c\n\n\
             test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
        );
        assert!(reading.is_whole());
        assert_eq!((reading.passed, reading.ignored), (1, 1));
        let said = "it said\ntest x ... ok\n\n\n".to_owned();
        assert_eq!(reading.failures(), [Failed { test: "b::c".to_owned(), said }]);
        assert_eq!(reading.ended, ["a", "b::c", "d"].map(str::to_owned).into());
    }

    #[test]
    fn the_kind_of_a_test_is_not_its_name() {
        let reading = read(
            "running 1 test\ntest [in turn] a ... FAILED\n\nfailures:\n\n---- a ----\nwhy\n\nfailures:\n    a\n\n\
             test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
        );
        assert_eq!(reading.failures(), [Failed { test: "a".to_owned(), said: "why\n\n".to_owned() }]);
    }

    #[test]
    fn binaries_that_end_early_are_not_whole() {
        assert!(!read("running 2 tests\ntest a ... ok\n").is_whole());
        assert!(!read("").is_whole());
        assert!(read("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored;\n").is_whole());
    }
}
