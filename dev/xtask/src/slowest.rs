//! The slowest tests, from the output of the tests: the stable harness does not measure them.
//!
//! A line is printed when a test ends. Its start follows from the harness's order: by name, as many
//! at once as it was asked to, the next whenever one has ended. Tests marked `[in turn]` run one at a time.

use std::time::Duration;

const SHOWN: usize = 10;

/// Tests that have ended, with how long they took.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    /// When the running binary began.
    began: Duration,
    ends: Vec<End>,
    /// Tests of earlier binaries, and tests that ran in turn.
    took: Vec<(Duration, String)>,
}

#[derive(Debug)]
struct End {
    name: String,
    at: Duration,
}

impl Slowest {
    /// Takes the output of a test binary, line by line.
    pub(crate) fn take(&mut self, line: &str, now: Duration, at_once: usize) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["running", _, "test" | "tests"] => {
                self.close(at_once);
                self.began = now;
            }
            ["test", "[in", "turn]", name, ..] => {
                self.took.push((now - self.began, name.to_owned()));
                self.began = now;
            }
            ["test", name, .., "ok" | "FAILED" | "ignored"] => {
                self.ends.push(End { name: name.to_owned(), at: now });
            }
            ["test", name, "...", "ignored,", ..] => self.ends.push(End { name: name.to_owned(), at: now }),
            _ => {}
        }
    }

    /// The slowest first.
    pub(crate) fn lines(mut self) -> Vec<String> {
        self.took.sort_by(|a, b| b.cmp(a));
        self.took.truncate(SHOWN);
        self.took.into_iter().map(|(took, name)| format!("{:7.1} s  {name}", took.as_secs_f64())).collect()
    }

    /// A binary has completed all its tests.
    pub(crate) fn close(&mut self, at_once: usize) {
        let mut begins: Vec<&End> = self.ends.iter().collect();
        begins.sort_by(|a, b| a.name.cmp(&b.name));
        let took = begins.into_iter().enumerate().map(|(turn, end)| {
            let began = turn.checked_sub(at_once).map_or(self.began, |before| self.ends[before].at);
            (end.at.saturating_sub(began), end.name.clone())
        });
        self.took.extend(took.collect::<Vec<_>>());
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(lines: &[(&str, u64)]) -> Vec<String> {
        let mut slowest = Slowest::default();
        for (line, seconds) in lines {
            slowest.take(line, Duration::from_secs(*seconds), 2);
        }
        slowest.close(2);
        slowest.lines()
    }

    #[test]
    fn a_test_begins_when_the_one_before_ends() {
        let lines = [
            ("running 4 tests\n", 10),
            ("test b::quick ... ok\n", 11),
            ("test c ... FAILED\n", 14),
            ("test d - should panic ... ok\n", 16),
            ("test a ... ok\n", 40),
        ];
        assert_eq!(took(&lines), ["   30.0 s  a", "    3.0 s  c", "    2.0 s  d", "    1.0 s  b::quick"]);
    }

    #[test]
    fn tests_in_turn_begin_when_the_last_ended() {
        let lines = [
            ("running 1 test\n", 1),
            ("test only ... ok\n", 2),
            ("running 2 tests\n", 5),
            ("test [in turn] z ... ok\n", 8),
            ("test [in turn] y ... FAILED\n", 9),
        ];
        assert_eq!(took(&lines), ["    3.0 s  z", "    1.0 s  y", "    1.0 s  only"]);
    }
}
