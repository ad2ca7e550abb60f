//! The results of a chore with many steps: every step runs, and all failures are listed at the end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Most tests that may pass only when repeated. More of them are a failure.
const MOST_UNSTEADY: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct Report {
    times: Vec<(String, Duration)>,
    faults: Vec<Fault>,
    unsteady: Vec<Unsteady>,
    left_out: Vec<(String, String)>,
    pub(crate) passed: usize,
    pub(crate) ignored: usize,
    /// Tests that failed, among the faults.
    failed: usize,
}

/// A test that failed and then passed.
#[derive(Debug)]
pub(crate) struct Unsteady {
    pub(crate) test: String,
    pub(crate) passed_at: usize,
    pub(crate) command: String,
    /// Its output when it failed.
    pub(crate) said: String,
}

#[derive(Debug)]
struct Fault {
    what: String,
    stage: String,
    command: String,
}

impl Report {
    /// Runs one step and prints how long it took. A failure is recorded, with the command that repeats the step.
    pub(crate) fn step<T>(
        &mut self,
        name: &str,
        command: &str,
        work: impl FnOnce(&mut Report) -> Result<T>,
    ) -> Option<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let outcome = work(self);
        let took = start.elapsed();
        self.times.push((name.to_owned(), took));
        match outcome {
            Ok(made) => {
                eprintln!("== {name}: {:.1} s", took.as_secs_f64());
                Some(made)
            }
            Err(error) => {
                eprintln!("== {name}: failed after {:.1} s: {error:#}", took.as_secs_f64());
                let said = format!("{error:#}");
                self.broken(said.lines().next().unwrap_or_default(), name, command);
                None
            }
        }
    }

    /// Records a test that failed in every run.
    pub(crate) fn failed(&mut self, test: &str, stage: &str, command: &str) {
        self.failed += 1;
        self.broken(&format!("test {test}"), stage, command);
    }

    /// Records a failure of something other than a test.
    pub(crate) fn broken(&mut self, what: &str, stage: &str, command: &str) {
        let [what, stage, command] = [what, stage, command].map(str::to_owned);
        self.faults.push(Fault { what, stage, command });
    }

    pub(crate) fn unsteady(&mut self, found: Unsteady) {
        self.unsteady.push(found);
    }

    /// Records a test that cannot run here, and why.
    pub(crate) fn left_out(&mut self, test: &str, why: &str) {
        self.left_out.push((test.to_owned(), why.to_owned()));
    }

    /// Lists everything. Returns an error if anything has failed.
    pub(crate) fn close(self) -> Result<()> {
        eprintln!("== how long it took");
        for (name, took) in &self.times {
            eprintln!("{:7.1} s  {name}", took.as_secs_f64());
        }
        if !self.left_out.is_empty() {
            eprintln!("== left out ({})", self.left_out.len());
            self.left_out.iter().for_each(|(test, why)| eprintln!("{test}: {why}"));
        }
        for unsteady in &self.unsteady {
            eprintln!("== what {} said when it failed\n{}", unsteady.test, unsteady.said.trim_end());
        }
        if !self.faults.is_empty() {
            eprintln!("== failures ({})", self.faults.len());
        }
        for fault in &self.faults {
            eprintln!("failed: {} ({})\n        repeat it: {}", fault.what, fault.stage, fault.command);
        }
        for Unsteady { test, passed_at, command, .. } in &self.unsteady {
            eprintln!("unsteady: {test} (passed at try {passed_at})\n        repeat it: {command}");
        }
        if self.passed + self.failed > 0 {
            println!("tests: {} passed, {} failed, {} skipped", self.passed, self.failed, self.ignored());
        }
        match (self.faults.len(), self.unsteady.len()) {
            (0, 0..=MOST_UNSTEADY) => Ok(()),
            (0, unsteady) => bail!("{unsteady} tests are unsteady, at most {MOST_UNSTEADY} may be"),
            (faults, _) => bail!("failures are listed above: {faults}"),
        }
    }

    fn ignored(&self) -> usize {
        self.ignored + self.left_out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsteady(count: usize) -> Report {
        let mut report = Report::default();
        for number in 0..count {
            let (test, command, said) = (format!("t{number}"), String::new(), String::new());
            report.unsteady(Unsteady { test, passed_at: 2, command, said });
        }
        report
    }

    #[test]
    fn steps_go_on_after_a_failure() {
        let mut report = Report::default();
        assert_eq!(report.step::<()>("first", "a", |_| bail!("broken")), None);
        assert_eq!(report.step("second", "b", |_| Ok(7)), Some(7));
        let why = report.close().unwrap_err().to_string();
        assert_eq!(why, "failures are listed above: 1");
    }

    #[test]
    fn some_unsteady_tests_do_not_fail_a_run_and_many_do() {
        assert!(unsteady(MOST_UNSTEADY).close().is_ok());
        assert!(unsteady(MOST_UNSTEADY + 1).close().is_err());
    }

    #[test]
    fn failed_tests_fail_a_run() {
        let mut report = Report { passed: 1, ..Report::default() };
        report.failed("t", "own", "again");
        assert!(report.close().is_err());
    }
}
