//! The result of a command, and the checks that tests make on it.
//!
//! A failed check ends the test with all details: the command, how it ended and everything it
//! printed. Nothing here starts or stops anything.

use std::fmt;
use std::time::Duration;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// It was still running at the deadline, and was killed.
    TooLate,
}

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub command: String,
    pub ended: Ended,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    /// The largest resident size observed of the command itself, in KiB.
    pub peak_rss_kib: u64,
    /// Leftovers: files in the job's `TMPDIR`, living processes.
    pub left_behind: Vec<String>,
}

impl Outcome {
    /// Fails the test unless the command exited with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(self.ended == Ended::Code(code), "expected exit code {code}\n{self}");
        self
    }

    /// Fails the test unless the command exited with a non-zero code.
    #[track_caller]
    pub fn expect_failure(self) -> Self {
        assert!(matches!(self.ended, Ended::Code(1..)), "expected a failure\n{self}");
        self
    }

    /// Fails the test if files or processes of the job are still there.
    #[track_caller]
    pub fn expect_nothing_left(self) -> Self {
        assert!(self.left_behind.is_empty(), "left behind: {:#?}\n{self}", self.left_behind);
        self
    }

    /// Fails the test unless the command exited by itself, with any code.
    #[track_caller]
    pub fn expect_ended(self) -> Self {
        assert!(matches!(self.ended, Ended::Code(_)), "expected it to end by itself\n{self}");
        self
    }

    /// Fails the test unless standard output has this line.
    #[track_caller]
    pub fn assert_line(&self, expected: &str) {
        assert!(self.stdout.lines().any(|line| line == expected), "expected the line {expected:?}\n{self}");
    }

    /// Fails the test unless standard output consists of these lines, in any order.
    #[track_caller]
    pub fn expect_lines<S: AsRef<str>>(self, expected: impl IntoIterator<Item = S>) -> Self {
        let mut expected: Vec<String> = expected.into_iter().map(|line| line.as_ref().to_owned()).collect();
        let mut found: Vec<&str> = self.stdout.lines().collect();
        expected.sort();
        found.sort_unstable();
        assert!(found == expected, "expected these lines, in any order:\n{}\n{self}", expected.join("\n"));
        self
    }

    /// Fails the test unless standard error has all of `parts`, somewhere.
    #[track_caller]
    pub fn expect_stderr(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "expected {part:?} on standard error\n{self}");
        }
        self
    }

    /// Fails the test unless standard output has all of `parts`, somewhere.
    #[track_caller]
    pub fn expect_stdout(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "expected {part:?} on standard output\n{self}");
        }
        self
    }

    /// Whether standard output or standard error has each of `parts`. If not, prints all details, in case the test fails.
    pub fn shows(&self, parts: &[&str]) -> bool {
        let missing =
            parts.iter().find(|part| !self.stdout.contains(**part) && !self.stderr.contains(**part));
        missing.inspect(|part| println!("no {part:?}\n{self}")).is_none()
    }

    /// Fails the test if standard output or standard error has `part`.
    #[track_caller]
    pub fn expect_nowhere(self, part: &str) -> Self {
        assert!(!self.stdout.contains(part) && !self.stderr.contains(part), "expected no {part:?}\n{self}");
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "command: {}", self.command)?;
        writeln!(f, "ended:   {:?} after {:.1?}", self.ended, self.took)?;
        writeln!(f, "--- standard output\n{}", shortened(&self.stdout))?;
        write!(f, "--- standard error\n{}", shortened(&self.stderr))
    }
}

/// The beginning and the end of a long text.
fn shortened(text: &str) -> String {
    const HALF: usize = 100;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * HALF {
        return text.to_owned();
    }
    let left_out = lines.len() - 2 * HALF;
    let head = lines[..HALF].join("\n");
    format!("{head}\n... {left_out} lines left out ...\n{}", lines[lines.len() - HALF..].join("\n"))
}
