//! Servers, jobs and ranks as tables and as JSON.

use std::time::Duration;

use phalanx_dvm::{Phases, names};
use phalanx_spec::ProcState;
use pmix::{DataArray, Value, keys};
use serde_json::{Value as Json, json};

use super::table::{Column, Table};
use super::{ending, value, words};

#[derive(Debug, Default)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    pub(crate) uri: Option<String>,
    pub(crate) version: Option<String>,
    /// Why its jobs are not known.
    pub(crate) problem: Option<String>,
    pub(crate) jobs: Vec<Job>,
}

#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) nspace: String,
    pub(crate) state: String,
    pub(crate) verdict: Option<String>,
    pub(crate) exit: Option<i64>,
    pub(crate) size: Option<u32>,
    pub(crate) nodes: Option<u32>,
    pub(crate) age: Option<Duration>,
    pub(crate) command: Option<String>,
    pub(crate) phases: Phases,
    pub(crate) ranks: Vec<Rank>,
}

#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) rank: u32,
    pub(crate) host: String,
    pub(crate) pid: Option<u32>,
    pub(crate) state: ProcState,
    /// How it stands, if it does.
    pub(crate) stopped: Option<String>,
    pub(crate) exit: Option<i64>,
    pub(crate) signal: Option<i64>,
}

impl Job {
    /// A job that is only known to run.
    pub(crate) fn named(nspace: &str) -> Job {
        Job { nspace: nspace.to_owned(), state: "running".to_owned(), ..Job::default() }
    }

    pub(crate) fn from_record(about: &DataArray) -> Job {
        let text = |key| value::find(about, key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| value::find(about, key).and_then(Value::as_u32);
        Job {
            nspace: text(keys::NSPACE).unwrap_or_default(),
            state: text(names::STATE).unwrap_or_default(),
            verdict: text(names::VERDICT),
            exit: value::find(about, keys::EXIT_CODE).and_then(Value::as_i64),
            size: number(keys::JOB_SIZE),
            nodes: number(keys::NUM_NODES),
            age: value::find(about, names::AGE).and_then(Value::as_u64).map(Duration::from_millis),
            command: text(keys::CMD_LINE),
            phases: value::find(about, names::PHASES).map(phases).unwrap_or_default(),
            ranks: Vec::new(),
        }
    }

    pub(crate) fn json(&self) -> Json {
        json!({
            "job": self.nspace,
            "state": self.state,
            "verdict": self.verdict,
            "exit_code": self.exit,
            "ranks": self.size,
            "nodes": self.nodes,
            "seconds": self.age.map(|age| age.as_secs_f64()),
            "command": self.command,
            "phases": ending::phases(&self.phases),
            "procs": self.ranks.iter().map(Rank::json).collect::<Vec<_>>(),
        })
    }
}

impl Rank {
    pub(crate) fn from_record(about: &DataArray) -> Rank {
        let find = |key| value::find(about, key);
        Rank {
            rank: find(keys::RANK).and_then(Value::as_rank).map_or(0, |rank| rank.0),
            host: find(keys::HOSTNAME).and_then(Value::as_str).unwrap_or_default().to_owned(),
            pid: find(keys::PROC_PID).and_then(Value::as_u32),
            state: match find(keys::PROC_STATE_STATUS) {
                Some(Value::ProcState(state)) => *state,
                _ => ProcState::UNDEF,
            },
            stopped: find(names::STOPPED).and_then(Value::as_str).map(str::to_owned),
            exit: find(keys::EXIT_CODE).and_then(Value::as_i64),
            signal: find(names::SIGNAL).and_then(Value::as_i64),
        }
    }

    /// A line of the standard's process table.
    pub(crate) fn from_table(line: &Value) -> Option<Rank> {
        let Value::ProcInfo(line) = line else { return None };
        Some(Rank {
            rank: line.proc.rank.0,
            host: line.hostname.as_ref().map(pmix::Text::to_string_lossy).unwrap_or_default(),
            pid: Some(line.pid).filter(|pid| *pid != 0),
            state: line.state,
            stopped: None,
            exit: None,
            signal: None,
        })
    }

    fn json(&self) -> Json {
        json!({
            "rank": self.rank,
            "host": self.host,
            "pid": self.pid,
            "state": self.state(),
            "exit_code": self.exit,
            "signal": self.signal,
        })
    }

    pub(crate) fn state(&self) -> &str {
        if let Some(how) = &self.stopped {
            return how;
        }
        match self.state {
            ProcState::PREPPED | ProcState::LAUNCH_UNDERWAY => "starting",
            ProcState::RUNNING | ProcState::CONNECTED => "running",
            ProcState::TERMINATED | ProcState::TERM_NON_ZERO => "ended",
            ProcState::KILLED_BY_CMD => "killed",
            ProcState::CALLED_ABORT => "aborted",
            ProcState::ABORTED_BY_SIG => "died",
            ProcState::TERM_WO_SYNC => "left",
            ProcState::FAILED_TO_START | ProcState::FAILED_TO_LAUNCH => "not started",
            ProcState::UNDEF => "unknown",
            state if state >= ProcState::TERMINATED => "ended",
            _ => "running",
        }
    }

    fn ending(&self) -> String {
        match (self.signal, self.exit) {
            (Some(signal), _) => words::signal(signal as i32),
            (None, Some(code)) => code.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// The times of a job's phases, as reported by its server.
pub(crate) fn phases(told: &Value) -> Phases {
    let micros = |phase: &str| value::find(told.as_array()?, phase)?.as_u64();
    Phases::named(|phase| micros(phase).map(Duration::from_micros))
}

/// Details to show of each job below the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details {
    pub(crate) ranks: bool,
    pub(crate) phases: bool,
}

/// Servers with their jobs; details of each job below.
pub(crate) fn table(servers: &[Server], details: Details) -> String {
    if servers.is_empty() {
        return "no PMIx server to ask on this machine\n".to_owned();
    }
    let shown = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    let mut table = Table::new(&[
        Column::Left("SERVER"),
        Column::Right("PID"),
        Column::Left("JOB"),
        Column::Left("STATE"),
        Column::Right("RANKS"),
        Column::Right("NODES"),
        Column::Right("TIME"),
        Column::Left("COMMAND"),
    ]);
    for server in servers {
        let head = || [server.name.clone(), shown(server.pid)];
        let [name, pid] = head();
        if server.jobs.is_empty() {
            let state = server.problem.as_ref().map_or("no job", |_| "unknown");
            table.row([
                name,
                pid,
                "-".into(),
                state.into(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        for job in &server.jobs {
            let [name, pid] = head();
            let state = match (&job.verdict, job.exit) {
                (Some(verdict), Some(code)) => format!("{verdict} ({code})"),
                (Some(verdict), None) => format!("{}, {verdict}", job.state),
                (None, _) => job.state.clone(),
            };
            table.row([
                name,
                pid,
                job.nspace.clone(),
                state,
                shown(job.size),
                shown(job.nodes),
                job.age.map(words::duration).unwrap_or_default(),
                job.command.clone().unwrap_or_default(),
            ]);
        }
    }
    let mut text = table.text();
    for job in servers.iter().flat_map(|server| &server.jobs).filter(|_| details.ranks || details.phases) {
        text.push_str(&format!("\njob {}\n", job.nspace));
        if details.phases {
            text.push_str(&reached(&job.phases));
        }
        if details.ranks {
            text.push_str(&ranks(&job.ranks));
        }
    }
    text
}

/// Each phase with the time since the submission.
fn reached(phases: &Phases) -> String {
    let mut table = Table::new(&[Column::Left("PHASE"), Column::Right("AFTER")]);
    for (phase, after) in phases.iter() {
        table.row([phase.to_owned(), words::fine(after)]);
    }
    table.text()
}

fn ranks(ranks: &[Rank]) -> String {
    let mut table = Table::new(&[
        Column::Right("RANK"),
        Column::Left("HOST"),
        Column::Right("PID"),
        Column::Left("STATE"),
        Column::Left("EXIT"),
    ]);
    for rank in ranks {
        table.row([
            rank.rank.to_string(),
            rank.host.clone(),
            rank.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            rank.state().to_owned(),
            rank.ending(),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_job_and_rank() {
        let rank = |rank, state, stopped: Option<&str>, exit, signal| Rank {
            rank,
            host: "a".into(),
            pid: Some(70 + rank),
            state,
            stopped: stopped.map(str::to_owned),
            exit,
            signal,
        };
        let job = Job {
            size: Some(4),
            nodes: Some(1),
            age: Some(Duration::from_secs(61)),
            command: Some("prog -x".into()),
            phases: Phases {
                placed: Some(Duration::ZERO),
                started: Some(Duration::from_millis(12)),
                ..Phases::default()
            },
            ranks: vec![
                rank(0, ProcState::CONNECTED, None, None, None),
                rank(1, ProcState::RUNNING, Some("paused, suspended"), None, None),
                rank(2, ProcState::TERM_NON_ZERO, None, Some(3), None),
                rank(3, ProcState::ABORTED_BY_SIG, None, Some(139), Some(11)),
            ],
            ..Job::named("px-a-7@7")
        };
        let server = Server { name: "px-a-7".into(), pid: Some(7), jobs: vec![job], ..Server::default() };
        let idle = Server { name: "other".into(), problem: Some("no".into()), ..Server::default() };
        let servers = [server, idle];
        let text = table(&servers, Details { ranks: true, phases: false });
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[1], "px-a-7 7 px-a-7@7 running 4 1 1 min 1 s prog -x");
        assert_eq!(lines[2], "other - unknown");
        assert_eq!(lines[4..7], ["job px-a-7@7", "RANK HOST PID STATE EXIT", "0 a 70 running"]);
        assert_eq!(lines[7..9], ["1 a 71 paused, suspended", "2 a 72 ended 3"]);
        assert!(lines[9].starts_with("3 a 73 died"), "{text}");
        let text = table(&servers, Details { ranks: false, phases: true });
        let shown = "\njob px-a-7@7\nPHASE      AFTER\nplaced    0.0 ms\nstarted  12.0 ms\n";
        assert!(text.ends_with(shown), "{text}");
    }
}
