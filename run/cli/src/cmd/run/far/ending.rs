//! How a job in another process's DVM has ended: the report of a server of ours, or what the event of another server's job says.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_dvm::{JobEnd, JobVerdict, Phases, names};
use phalanx_spec::Rank;
use phalanx_wire::{Nspace, ProcId};
use pmix::{DataArray, Info, InfoList, Query, Status, Tool, Value, keys};

use super::{Shared, map};
use crate::render::value;
use crate::tool;

/// The end of a job that has run. `asked_to_end`: the signal with which the user has asked for it.
pub(super) fn of(
    tool: &Tool,
    nspace: &Nspace,
    event: &[Info],
    limit: Option<(Duration, bool)>,
    asked_to_end: Option<i32>,
) -> JobEnd {
    let sent = event.find(names::END).and_then(read);
    let end = sent.or_else(|| asked(tool, nspace)).unwrap_or_else(|| of_foreign(nspace, event, limit));
    as_user_sees(end, tool.proc(), asked_to_end)
}

/// The report of a server of ours.
fn asked(tool: &Tool, nspace: &Nspace) -> Option<JobEnd> {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    let query = Query { keys: vec![names::END.into()], qualifiers };
    tool.query(&[query]).ok()?.find(names::END).and_then(read)
}

fn read(sent: &Value) -> Option<JobEnd> {
    let Value::ByteObject(bytes) = sent else { return None };
    let end = JobEnd::from_bytes(bytes.as_bytes());
    end.inspect_err(|error| tracing::warn!(%error, "the report of the job cannot be read")).ok()
}

/// For the server, this command is a tool that controls the job. For the user it is the launcher.
fn as_user_sees(end: JobEnd, me: &ProcId, asked_to_end: Option<i32>) -> JobEnd {
    let killed = end.procs.is_empty() || end.procs.iter().any(|end| end.killed_by_us);
    let by_us = match &end.verdict {
        // Other servers may not report that they ended the job.
        JobVerdict::Success => killed,
        JobVerdict::Killed { by, .. } => by == me,
        _ => false,
    };
    match asked_to_end {
        Some(signal) if by_us => JobEnd {
            verdict: JobVerdict::Cancelled { signal },
            tool: None,
            enders: Vec::new(),
            exit_code: 128 + signal,
            ..end
        },
        None if matches!(end.verdict, JobVerdict::Killed { .. }) && by_us => {
            // A rank that a signal has killed that was not to end the job: then that rank has failed.
            let failed = end.procs.iter().filter(|end| end.is_failure());
            match failed.min_by_key(|end| end.after).cloned() {
                Some(first) => JobEnd { verdict: JobVerdict::Failed { first }, ..end },
                None => end,
            }
        }
        _ => end,
    }
}

/// The end of a job of another kind of server, as far as its event says it.
fn of_foreign(nspace: &Nspace, event: &[Info], limit: Option<(Duration, bool)>) -> JobEnd {
    let status = event.find(keys::JOB_TERM_STATUS).and_then(as_status).unwrap_or(Status::SUCCESS);
    let exit_code = event.find(keys::EXIT_CODE).and_then(Value::as_i64);
    let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
    // PRRTE sends the exit code of the first rank that failed where the standard has a status.
    let exit_code =
        exit_code.unwrap_or(if status.0 > 0 { status.0 } else { i32::from(status != Status::SUCCESS) });
    let in_words = event.find(keys::EVENT_TEXT_MESSAGE).and_then(Value::as_str);
    let verdict = match limit {
        // PRRTE ends a job at its limit without a reason, and without marking it as failed.
        Some((limit, true)) => JobVerdict::TimedOut { limit },
        _ if exit_code == 0 && status == Status::SUCCESS => JobVerdict::Success,
        _ => JobVerdict::NotStarted {
            error: match in_words {
                Some(in_words) => in_words.to_owned(),
                None if status.0 > 0 => format!("a rank exited with code {exit_code}"),
                None => format!("the job ended with {status}"),
            },
        },
    };
    let exit_code = if matches!(verdict, JobVerdict::TimedOut { .. }) { EXIT_TIMEOUT } else { exit_code };
    bare(nspace, verdict, exit_code)
}

/// A report without details.
fn bare(nspace: &Nspace, verdict: JobVerdict, exit_code: i32) -> JobEnd {
    JobEnd {
        nspace: nspace.clone(),
        verdict,
        tool: None,
        enders: Vec::new(),
        exit_code,
        first: None,
        procs: Vec::new(),
        duration: Duration::ZERO,
        // Others do not report it.
        connected: true,
        mpi: None,
        waited: Vec::new(),
        restarts: Vec::new(),
        phases: Phases::default(),
    }
}

/// Reports why the spawn has failed: a server of ours can be asked what became of the job.
pub(super) fn not_started(tool: &Tool, shared: &Shared, error: &pmix::Error) {
    if tool::is_lost(error) {
        return shared.told_all();
    }
    let me = tool.proc();
    let is_ours = |about: &DataArray| {
        value::find(about, keys::PARENT_ID).and_then(Value::as_proc) == Some(me)
            && value::find(about, names::VERDICT).and_then(Value::as_str) == Some("not started")
    };
    let found = jobs(tool).into_iter().find(is_ours);
    let reason = found.as_ref().and_then(|about| value::find(about, names::REASON)).and_then(Value::as_str);
    let nspace = found.as_ref().and_then(name).and_then(|name| Nspace::new(&name).ok());
    let said = std::mem::take(&mut shared.state().said);
    if let Some(nspace) = nspace {
        shared.accepted(&nspace, map::of_job(tool, &nspace).unwrap_or_default());
        let exit_code = match error.status() {
            Status::ERR_JOB_EXE_NOT_FOUND => 127,
            _ => 126,
        };
        // The job may not be over yet, and have no report.
        let verdict = JobVerdict::NotStarted { error: reason.unwrap_or_default().to_owned() };
        let end = asked(tool, &nspace).unwrap_or_else(|| bare(&nspace, verdict, exit_code));
        let end = JobEnd { exit_code, ..end };
        return shared.push(phalanx_dvm::Report::Ended(Box::new(end)));
    }
    let error = match said.trim() {
        "" => format!("the server does not start the job\n{error}"),
        said => said.to_owned(),
    };
    shared.push(phalanx_dvm::Report::Refused { request: 0, error });
}

/// The jobs that a server of ours lists; none from other servers.
pub(super) fn jobs(tool: &Tool) -> Vec<DataArray> {
    let query = Query { keys: vec![names::JOBS.into()], qualifiers: Vec::new() };
    tool.query(&[query]).map(|found| value::records(&found, names::JOBS)).unwrap_or_default()
}

/// Whether the server knows that every rank has ended.
pub(super) fn has_ended(tool: &Tool, nspace: &Nspace) -> bool {
    let records = records(tool, nspace);
    let has_ended =
        |about| [names::SIGNAL, keys::EXIT_CODE].iter().any(|key| value::find(about, key).is_some());
    !records.is_empty() && records.iter().all(has_ended)
}

pub(super) fn name(about: &DataArray) -> Option<String> {
    value::find(about, keys::NSPACE).and_then(Value::as_str).map(str::to_owned)
}

/// The pids of ranks that run or have run.
pub(super) fn pids(tool: &Tool, nspace: &Nspace) -> BTreeMap<ProcId, u32> {
    let pid = |about| value::find(about, keys::PROC_PID).and_then(Value::as_u32);
    let records = records(tool, nspace);
    let ranks = records.iter().zip(0..).filter_map(|(about, rank)| Some((rank, pid(about)?)));
    ranks.map(|(rank, pid)| (ProcId::new(nspace, Rank(rank)), pid)).collect()
}

/// The server's record of each rank.
fn records(tool: &Tool, nspace: &Nspace) -> Vec<DataArray> {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    let query = Query { keys: vec![names::RANKS.into()], qualifiers };
    tool.query(&[query]).map(|found| value::records(&found, names::RANKS)).unwrap_or_default()
}

/// The usual exit code for a job that was ended at its limit.
const EXIT_TIMEOUT: i32 = 124;

fn as_status(value: &Value) -> Option<Status> {
    match value {
        Value::Status(status) => Some(*status),
        other => other.as_i64().and_then(|code| i32::try_from(code).ok()).map(Status),
    }
}
