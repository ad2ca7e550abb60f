//! What the ranks of a job use and wait for, as a table.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::ps::Rank;
use super::table::{Column, Table};
use super::words;

/// A job at one moment.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) job: String,
    pub(crate) age: Option<Duration>,
    pub(crate) lines: Vec<Line>,
}

/// One rank.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) rank: Rank,
    /// Relative to one processor.
    pub(crate) percent: Option<f64>,
    pub(crate) time: Option<Duration>,
    /// In bytes.
    pub(crate) memory: Option<u64>,
    pub(crate) threads: Option<u64>,
    /// What it waits for, and for how long it has waited.
    pub(crate) waits: Option<(String, Duration)>,
}

impl Line {
    pub(crate) fn of(rank: Rank) -> Line {
        Line { rank, percent: None, time: None, memory: None, threads: None, waits: None }
    }

    fn json(&self) -> Json {
        json!({
            "rank": self.rank.rank,
            "host": self.rank.host,
            "pid": self.rank.pid,
            "state": self.rank.state(),
            "cpu_percent": self.percent,
            "cpu_seconds": self.time.map(|time| time.as_secs_f64()),
            "memory_bytes": self.memory,
            "threads": self.threads,
            "waits_for": self.waits.as_ref().map(|(what, _)| what),
            "waits_seconds": self.waits.as_ref().map(|(_, age)| age.as_secs_f64()),
        })
    }
}

impl Sample {
    pub(crate) fn json(&self) -> Json {
        json!({
            "type": "top",
            "job": self.job,
            "seconds": self.age.map(|age| age.as_secs_f64()),
            "ranks": self.lines.iter().map(Line::json).collect::<Vec<_>>(),
        })
    }

    /// On at most so many lines: the ranks for which there is no room are counted.
    pub(crate) fn text(&self, most: Option<usize>) -> String {
        let mut table = Table::new(&[
            Column::Right("RANK"),
            Column::Left("HOST"),
            Column::Right("PID"),
            Column::Left("STATE"),
            Column::Right("CPU %"),
            Column::Right("CPU TIME"),
            Column::Right("MEMORY"),
            Column::Right("THREADS"),
            Column::Left("WAITS FOR"),
        ]);
        // The summary, the heading, and the count of the others.
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(3).max(1));
        let fits = self.lines.len() <= room.saturating_add(1);
        let shown = if fits { self.lines.len() } else { room };
        for line in self.lines.iter().take(shown) {
            let Line { rank, percent, time, memory, threads, waits } = line;
            table.row([
                rank.rank.to_string(),
                rank.host.clone(),
                rank.pid.map(|pid| pid.to_string()).unwrap_or_default(),
                rank.state().to_owned(),
                percent.map(|percent| format!("{percent:.0}")).unwrap_or_default(),
                time.map(words::duration).unwrap_or_default(),
                memory.map(words::bytes).unwrap_or_default(),
                threads.map(|threads| threads.to_string()).unwrap_or_default(),
                waits
                    .as_ref()
                    .map(|(what, age)| format!("{what}, {}", words::duration(*age)))
                    .unwrap_or_default(),
            ]);
        }
        let mut text = self.summary() + &table.text();
        if !fits {
            text.push_str(&format!("and {}\n", words::count(self.lines.len() - shown, "more rank")));
        }
        text
    }

    fn summary(&self) -> String {
        let percent: f64 = self.lines.iter().filter_map(|line| line.percent).sum();
        let memory: u64 = self.lines.iter().filter_map(|line| line.memory).sum();
        let waiting = self.lines.iter().filter(|line| line.waits.is_some()).count();
        let age = self.age.map(|age| format!(", {}", words::duration(age))).unwrap_or_default();
        let ranks = words::count(self.lines.len(), "rank");
        let job = &self.job;
        format!(
            "job {job}: {ranks}{age}, {percent:.0} % of a CPU, {} of memory, {waiting} waiting\n",
            words::bytes(memory)
        )
    }
}

#[cfg(test)]
mod tests {
    use phalanx_spec::ProcState;

    use super::*;

    fn sample() -> Sample {
        let rank = |rank| Rank {
            rank,
            host: "n1".to_owned(),
            pid: Some(100 + rank),
            state: ProcState::CONNECTED,
            stopped: None,
            exit: None,
            signal: None,
        };
        let line = |number: u32| Line {
            percent: Some(f64::from(number) * 50.0),
            time: Some(Duration::from_secs(u64::from(number) * 100)),
            memory: Some(10 << 20),
            threads: Some(2),
            waits: (number == 1).then(|| ("fence for rank 3".to_owned(), Duration::from_secs(12))),
            ..Line::of(rank(number))
        };
        Sample {
            job: "px-n1-7@7".to_owned(),
            age: Some(Duration::from_secs(75)),
            lines: (0..5).map(line).collect(),
        }
    }

    #[test]
    fn ranks_that_do_not_fit_are_counted() {
        insta::assert_snapshot!(sample().text(Some(6)), @"
        job px-n1-7@7: 5 ranks, 1 min 15 s, 500 % of a CPU, 50 MiB of memory, 1 waiting
        RANK  HOST  PID  STATE    CPU %    CPU TIME  MEMORY  THREADS  WAITS FOR
           0  n1    100  running      0        0 ms  10 MiB        2
           1  n1    101  running     50  1 min 40 s  10 MiB        2  fence for rank 3, 12 s
           2  n1    102  running    100  3 min 20 s  10 MiB        2
        and 2 more ranks
        ");
        assert_eq!(sample().text(Some(7)).lines().count(), 7);
        assert_eq!(sample().text(None).lines().count(), 7);
    }
}
