//! How the job ended, as JSON. [`JobEnd::lines`] is the text for users.

use phalanx_dvm::{Ender, ExitStatus, JobEnd, JobVerdict, Phases, ProcEnd, ToolProcess, Waited};
use serde_json::{Map, Value, json};

use crate::render::words;

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
        JobVerdict::Killed { by, signal, .. } => (
            "killed",
            json!({ "by": by.to_string(), "signal": signal, "signal_name": words::signal(*signal) }),
        ),
        JobVerdict::DvmStopped { by } => {
            ("dvm_stopped", json!({ "by": by.as_ref().map(ToString::to_string) }))
        }
        JobVerdict::ParentEnded { parent } => ("parent_ended", json!({ "parent": parent.as_str() })),
        JobVerdict::WithoutPmix { by, library } => {
            ("without_pmix", json!({ "rank": by.rank.0, "library": library }))
        }
        JobVerdict::AllocationEnded { why } => ("allocation_ended", json!({ "reason": why })),
        JobVerdict::NodeLost { node, why } => ("node_lost", json!({ "node": node, "reason": why })),
    };
    report.insert("outcome".into(), outcome.into());
    if let Value::Object(details) = details {
        report.extend(details);
    }
    report.extend(end.tool.as_ref().map(|tool| ("by_process".into(), process(tool))));
    if !end.enders.is_empty() {
        report.insert("enders".into(), end.enders.iter().map(ender).collect());
    }
    report.insert("phases".into(), phases(&end.phases));
    report.insert("waited".into(), end.waited.iter().map(waited).collect());
    let again = end.restarts.iter().map(|(rank, times)| json!({ "rank": rank, "times": times }));
    report.insert("restarts".into(), again.collect());
    report.insert("procs".into(), end.procs.iter().map(proc).collect());
    Value::Object(report)
}

fn process(ToolProcess { uid, pid, command }: &ToolProcess) -> Value {
    json!({ "uid": uid, "pid": pid, "command": command })
}

/// One of several that have ended ranks by job control.
fn ender(Ender { ranks, by, signal, tool }: &Ender) -> Value {
    let signal_name = words::signal(*signal);
    let by_process = tool.as_ref().map(process);
    json!({
        "ranks": ranks.to_string(),
        "by": by.to_string(),
        "by_process": by_process,
        "signal": signal,
        "signal_name": signal_name,
    })
}

/// Seconds since the job was submitted.
pub(crate) fn phases(phases: &Phases) -> Value {
    phases.iter().map(|(phase, at)| (phase.to_owned(), at.as_secs_f64().into())).collect::<Map<_, _>>().into()
}

/// An operation that ranks were waiting for when the job was ended.
fn waited(waited: &Waited) -> Value {
    json!({
        "ranks": waited.ranks,
        "operation": waited.operation,
        "subject": waited.subject,
        "seconds": waited.longest.as_secs_f64(),
    })
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
    proc.insert("started".into(), (end.status.is_some() || end.pid.is_some()).into());
    proc.insert("after".into(), end.after.as_secs_f64().into());
    proc.insert("ended_by_px".into(), end.killed_by_us.into());
    proc.insert("finalized".into(), (!end.lost_connection && end.status.is_some()).into());
    Value::Object(proc)
}

#[cfg(test)]
mod tests;
