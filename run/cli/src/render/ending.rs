//! How the job ended: one or two lines for a person, or the exit report as JSON.

use phalanx_dvm::{ExitStatus, JobEnd, JobVerdict, ProcEnd};
use serde_json::{Map, Value, json};

use crate::render::words;

/// What a person is told; nothing after a success.
pub(crate) fn lines(end: &JobEnd) -> Vec<String> {
    let mut lines = Vec::new();
    let first = match &end.verdict {
        JobVerdict::Success => return lines,
        JobVerdict::Failed { first } => {
            lines.push(format!("rank {} {} ({})", first.proc.rank.0, how(first), place(first)));
            Some(first.proc.rank)
        }
        JobVerdict::Aborted { by, status, message } => {
            let place = end.procs.iter().find(|p| p.proc == *by).map(|p| format!(" ({})", place(p)));
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
            let running: Vec<u32> =
                end.procs.iter().filter(|p| p.killed_by_us).map(|p| p.proc.rank.0).collect();
            let who = match running.len() {
                0 => String::new(),
                1 => format!("; {} was still running", words::ranks(&running)),
                _ => format!("; {} were still running", words::ranks(&running)),
            };
            return vec![format!("the job was ended after {}, its time limit{who}", words::duration(*limit))];
        }
        JobVerdict::Cancelled { signal } => {
            return vec![format!("the job was ended by {}", words::signal(*signal))];
        }
        JobVerdict::NodeLost { node } => {
            lines.push(format!("node {node} was lost"));
            None
        }
    };
    let others = |p: &&ProcEnd| Some(p.proc.rank) != first;
    let failed: Vec<u32> = end
        .procs
        .iter()
        .filter(others)
        .filter(|p| !p.killed_by_us && p.status.is_some_and(|status| !status.is_success()))
        .map(|p| p.proc.rank.0)
        .collect();
    let killed: Vec<u32> =
        end.procs.iter().filter(others).filter(|p| p.killed_by_us).map(|p| p.proc.rank.0).collect();
    let mut consequences = Vec::new();
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
    lines
}

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
        None => "did not start".into(),
    }
}

/// `on n1, pid 4711, after 1.2 s`
fn place(end: &ProcEnd) -> String {
    let pid = end.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
    format!("on {}{pid}, after {}", end.node, words::duration(end.after))
}

/// The exit report.
pub(crate) fn json(end: &JobEnd) -> Value {
    let mut report = Map::new();
    report.insert("type".into(), "end".into());
    report.insert("nspace".into(), end.nspace.as_str().into());
    report.insert("exit_code".into(), end.exit_code.into());
    report.insert("duration".into(), end.duration.as_secs_f64().into());
    let (outcome, details) = match &end.verdict {
        JobVerdict::Success => ("success", json!({})),
        JobVerdict::Failed { first } => ("failed", json!({ "rank": first.proc.rank.0 })),
        JobVerdict::Aborted { by, status, message } => {
            ("aborted", json!({ "rank": by.rank.0, "status": status.0, "message": message }))
        }
        JobVerdict::NotStarted { error } => ("not_started", json!({ "error": error })),
        JobVerdict::TimedOut { limit } => ("timed_out", json!({ "limit": limit.as_secs_f64() })),
        JobVerdict::Cancelled { signal } => {
            ("cancelled", json!({ "signal": signal, "signal_name": words::signal(*signal) }))
        }
        JobVerdict::NodeLost { node } => ("node_lost", json!({ "node": node })),
    };
    report.insert("outcome".into(), outcome.into());
    if let Value::Object(details) = details {
        report.extend(details);
    }
    report.insert("procs".into(), end.procs.iter().map(proc).collect());
    Value::Object(report)
}

fn proc(end: &ProcEnd) -> Value {
    let mut proc = Map::new();
    proc.insert("rank".into(), end.proc.rank.0.into());
    proc.insert("node".into(), end.node.as_str().into());
    proc.insert("pid".into(), end.pid.into());
    match end.status {
        Some(ExitStatus::Code(code)) => {
            proc.insert("exit_code".into(), code.into());
        }
        Some(ExitStatus::Signal { number, core_dumped }) => {
            proc.insert("signal".into(), number.into());
            proc.insert("signal_name".into(), words::signal(number).into());
            proc.insert("core_dumped".into(), core_dumped.into());
        }
        None => {}
    }
    proc.insert("started".into(), end.status.is_some().into());
    proc.insert("after".into(), end.after.as_secs_f64().into());
    proc.insert("ended_by_px".into(), end.killed_by_us.into());
    proc.insert("finalized".into(), (!end.lost_connection).into());
    Value::Object(proc)
}

#[cfg(test)]
mod tests;
