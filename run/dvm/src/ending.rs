//! How a job has ended, in one or two lines for a person: which process failed first, and how.

use std::time::Duration;

use phalanx_wire::ProcId;

use crate::job::{JobEnd, JobVerdict, ToolProcess, Waited};
use crate::msg::{ExitStatus, ProcEnd};
use crate::ranges::Ranges;
use crate::words;

impl JobEnd {
    /// The lines for a person; none after a success.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.reasons();
        let is_told = !lines.is_empty() && !matches!(self.verdict, JobVerdict::WithoutPmix { .. });
        let long = self.waited.iter().filter(|waited| is_told && waited.longest >= LONG);
        lines.extend(long.take(MOST_WAITED).map(|waited| self.waiting(waited)));
        lines
    }

    /// `ranks 0-1, 3 had been waiting in fence for 12 s; rank 2 had not come`
    fn waiting(&self, waited: &Waited) -> String {
        let time = words::duration(waited.longest);
        let (who, operation) = (waited.ranks.replace(',', ", "), &waited.operation);
        let who = if who.contains([',', '-']) { format!("ranks {who}") } else { format!("rank {who}") };
        if !COLLECTIVES.contains(&operation.as_str()) {
            return format!("{who} had been waiting in {operation} ({}) for {time}", waited.subject);
        }
        let is_in = |rank: u32| {
            let spans = waited.ranks.split(',').map(|span| span.split_once('-').unwrap_or((span, span)));
            let bounds = spans.filter_map(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
            bounds.into_iter().any(|(first, last): (u32, u32)| (first..=last).contains(&rank))
        };
        let absent: Vec<u32> =
            self.procs.iter().map(|end| end.proc.rank.0).filter(|rank| !is_in(*rank)).collect();
        let absent = match absent.is_empty() {
            true => String::new(),
            false => format!("; {} had not come", words::ranks(&absent)),
        };
        format!("{who} had been waiting in {operation} for {time}{absent}")
    }

    /// Why it has ended, and the consequences.
    fn reasons(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let first = match &self.verdict {
            JobVerdict::Success => return lines,
            JobVerdict::Failed { first } => {
                lines.push(format!("rank {} {} ({})", first.proc.rank.0, how(first), place(first)));
                Some(first.proc.rank)
            }
            JobVerdict::Aborted { by, status, message } => {
                let place = self.procs.iter().find(|p| p.proc == *by).map(|p| format!(" ({})", place(p)));
                let message =
                    if message.is_empty() { String::new() } else { format!(": {}", message.trim_end()) };
                lines.push(format!(
                    "rank {} called abort with status {}{}{message}",
                    by.rank.0,
                    status.0,
                    place.unwrap_or_default()
                ));
                Some(by.rank)
            }
            JobVerdict::NotStarted { error } => return vec![error.clone()],
            JobVerdict::TimedOut { limit } => {
                // Others were ended before, by job control.
                let at_limit = |p: &&ProcEnd| p.killed_by_us && p.after + SLACK >= *limit;
                let running: Vec<u32> = self.procs.iter().filter(at_limit).map(|p| p.proc.rank.0).collect();
                let who = match running.len() {
                    0 => String::new(),
                    1 => format!("; {} was still running", words::ranks(&running)),
                    _ => format!("; {} were still running", words::ranks(&running)),
                };
                // For a job spawned in another DVM, the limit is not known here.
                return vec![match limit.is_zero() {
                    true => format!("the job was ended at its time limit{who}"),
                    false => {
                        format!("the job was ended after {}, its time limit{who}", words::duration(*limit))
                    }
                }];
            }
            JobVerdict::Cancelled { signal } => {
                return vec![format!("the job was ended by {}", words::signal(*signal))];
            }
            JobVerdict::Killed { by, signal, first } => return self.killed(by, *signal, first.is_some()),
            JobVerdict::DvmStopped { by } => {
                return vec![match by {
                    Some(by) => {
                        let by = named(by, self.tool.as_ref());
                        format!("the DVM was stopped by {by}, and the job ended with it")
                    }
                    None => "the DVM has ended, and the job with it".to_owned(),
                }];
            }
            JobVerdict::ParentEnded { parent } => {
                return vec![format!("the job was ended with its parent, job {parent}")];
            }
            JobVerdict::AllocationEnded { why } => return vec![format!("{why}, and the job with it")],
            JobVerdict::WithoutPmix { by, library } => {
                let rank = by.rank.0;
                return vec![
                    without_pmix(&format!("rank {rank} has loaded"), library),
                    WITHOUT_PMIX_HINT.into(),
                ];
            }
            JobVerdict::NodeLost { node, why } => {
                let there = self.procs.iter().filter(|p| p.node == *node && p.status.is_none());
                let there: Vec<u32> = there.map(|p| p.proc.rank.0).collect();
                let with_it = match there.as_slice() {
                    [] => String::new(),
                    there => format!(", and with it {}", words::ranks(there)),
                };
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                lines.push(format!("node {node} was lost{with_it}{why}"));
                lines.extend(self.lost_besides(node));
                None
            }
        };
        let mut consequences = Vec::new();
        let others = |p: &&ProcEnd| Some(p.proc.rank) != first;
        let failed: Vec<u32> = self
            .procs
            .iter()
            .filter(others)
            .filter(|p| !p.killed_by_us && p.status.is_some_and(|status| !status.is_success()))
            .map(|p| p.proc.rank.0)
            .collect();
        let by_others = |p: &&ProcEnd| self.enders.iter().any(|e| e.ranks.contains(p.proc.rank.0));
        let killed = self.procs.iter().filter(others).filter(|p| p.killed_by_us && !by_others(p));
        let killed: Vec<u32> = killed.map(|p| p.proc.rank.0).collect();
        if !failed.is_empty() {
            consequences.push(format!("{} failed as well", words::ranks(&failed)));
        }
        if !killed.is_empty() {
            let verb = if killed.len() == 1 { "was" } else { "were" };
            consequences.push(format!("{} {verb} ended by px as a consequence", words::ranks(&killed)));
        }
        if !consequences.is_empty() {
            lines.push(consequences.join("; "));
        }
        lines.extend(self.ended_by_others());
        lines
    }

    /// The ranks that job control has ended, by requester.
    fn ended_by_others(&self) -> impl Iterator<Item = String> {
        self.enders.iter().map(|ender| {
            let ranks = ender.ranks.iter().collect::<Vec<_>>();
            let verb = if ranks.len() == 1 { "was" } else { "were" };
            let (ranks, by) = (words::ranks(&ranks), named(&ender.by, ender.tool.as_ref()));
            format!("{ranks} {verb} ended by {by}, by job control ({})", words::signal(ender.signal))
        })
    }

    /// The other nodes that were lost before the job was over, with their ranks.
    fn lost_besides(&self, node: &str) -> Option<String> {
        let mut others: Vec<(&str, Vec<u32>)> = Vec::new();
        for lost in self.procs.iter().filter(|p| p.node != node && p.status.is_none() && p.pid.is_some()) {
            match others.iter_mut().find(|(other, _)| *other == lost.node) {
                Some((_, ranks)) => ranks.push(lost.proc.rank.0),
                None => others.push((&lost.node, vec![lost.proc.rank.0])),
            }
        }
        let list: Vec<String> = others
            .iter()
            .map(|(other, ranks)| format!("node {other} with {}", words::ranks(ranks)))
            .collect();
        (!list.is_empty()).then(|| format!("lost as well: {}", list.join(", ")))
    }
}

impl ProcEnd {
    /// `exited with code 3`
    pub(crate) fn how(&self) -> String {
        how(self)
    }
}

impl JobEnd {
    /// The note when job control ends some of a job's ranks.
    pub(crate) fn of_some(ranks: &Ranges, by: &ProcId, tool: Option<&ToolProcess>, signal: i32) -> String {
        let ranks = words::ranks(&ranks.iter().collect::<Vec<_>>());
        let (by, signal) = (named(by, tool), words::signal(signal));
        format!("{ranks}: ended by {by}, by job control ({signal}); the others go on")
    }

    /// Processes were ended by job control: by an order, or by a signal that they did not survive.
    fn killed(&self, by: &ProcId, signal: i32, is_signal: bool) -> Vec<String> {
        if !self.enders.is_empty() {
            return self.ended_by_others().chain(self.failed_besides(signal, is_signal)).collect();
        }
        let ended = |p: &&ProcEnd| p.killed_by_us;
        let signalled = |p: &&ProcEnd| {
            !p.killed_by_us && matches!(p.status, Some(ExitStatus::Signal { number, .. }) if number == signal)
        };
        let ranks = |procs: Vec<&ProcEnd>| procs.iter().map(|p| p.proc.rank.0).collect::<Vec<u32>>();
        let ended = ranks(self.procs.iter().filter(ended).collect());
        // An order ends nothing that had ended before, by whatever signal.
        let (killed, consequences) = match is_signal {
            true => (ranks(self.procs.iter().filter(signalled).collect()), ended),
            false => (ended, Vec::new()),
        };
        let were = |ranks: &[u32]| {
            let verb = if ranks.len() == 1 { "was" } else { "were" };
            format!("{} {verb}", words::ranks(ranks))
        };
        let is_whole = killed.is_empty() || killed.len() == self.procs.len();
        let who = if is_whole { "the job was".to_owned() } else { were(&killed) };
        let (name, by) = (words::signal(signal), named(by, self.tool.as_ref()));
        let mut lines = vec![format!("{who} ended by {by}, by job control ({name})")];
        if !consequences.is_empty() {
            lines.push(format!("{} ended by px as a consequence", were(&consequences)));
        }
        lines.extend(self.failed_besides(signal, is_signal));
        lines
    }

    /// The ranks that have failed by themselves. `is_signal`: those that the signal has ended have not.
    fn failed_besides(&self, signal: i32, is_signal: bool) -> Option<String> {
        let by_itself = |p: &&ProcEnd| match p.status {
            _ if p.killed_by_us => false,
            Some(ExitStatus::Signal { number, .. }) if is_signal => number != signal,
            status => status.is_some_and(|status| !status.is_success()),
        };
        let failed: Vec<&ProcEnd> = self.procs.iter().filter(by_itself).collect();
        match failed[..] {
            [] => None,
            [one] => Some(format!("rank {} failed as well: it {}", one.proc.rank, one.how())),
            _ => {
                let ranks: Vec<u32> = failed.iter().map(|p| p.proc.rank.0).collect();
                Some(format!("{} failed as well", words::ranks(&ranks)))
            }
        }
    }
}

/// `px-host-77-tool2:0 (uid 1000, pid 4711, 'px ctl kill')`
fn named(by: &ProcId, tool: Option<&ToolProcess>) -> String {
    tool.map_or_else(|| by.to_string(), |process| format!("{by} ({process})"))
}

/// Shorter waits are normal.
const LONG: Duration = Duration::from_secs(1);
/// The exit report has the rest.
const MOST_WAITED: usize = 5;
const COLLECTIVES: [&str; 5] = ["fence", "connect", "disconnect", "group construct", "group destruct"];
/// A process may have begun this much later than its job's time limit.
const SLACK: Duration = Duration::from_millis(500);

/// What an MPI library without a PMIx client means for a job of several ranks. `linked`: the program or rank concerned, and
/// how.
pub fn without_pmix(linked: &str, library: &str) -> String {
    format!(
        "{linked} MPICH ({library}), which was built without PMIx: each rank would run alone, as rank 0 of 1"
    )
}

/// What to do about it.
pub const WITHOUT_PMIX_HINT: &str =
    "start it with MPICH's own mpiexec, or use an MPI library that has a PMIx client";

/// `exited with code 3`, `was killed by SIGSEGV (core dumped)`
fn how(end: &ProcEnd) -> String {
    match end.status {
        Some(ExitStatus::Signal { number, core_dumped }) => {
            format!(
                "was killed by {}{}",
                words::signal(number),
                if core_dumped { " (core dumped)" } else { "" }
            )
        }
        Some(ExitStatus::Code(code)) if end.lost_connection => {
            format!("exited with code {code} without finalizing PMIx")
        }
        Some(ExitStatus::Code(code)) => format!("exited with code {code}"),
        None if end.pid.is_some() => "was lost with its node".into(),
        None => "did not start".into(),
    }
}

/// `on n1, pid 4711, after 1.2 s`
fn place(end: &ProcEnd) -> String {
    let pid = end.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    format!("on {}{pid}, after {}", end.node, words::duration(end.after))
}
