//! How a job in another process's DVM has ended: from the event of its end, and from what the server still knows of it.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_dvm::{Ender, ExitStatus, JobEnd, JobVerdict, ProcEnd, ToolProcess, Waited, names};
use phalanx_spec::{ProcState, Rank};
use phalanx_wire::{Nspace, ProcId};
use pmix::{DataArray, Info, InfoList, Query, Status, Tool, Value, keys};

use super::{Shared, map};
use crate::render::{ps, value};
use crate::tool::job;

/// The end of a job that has run.
pub(super) fn of(
    tool: &Tool,
    nspace: &Nspace,
    told: &[Info],
    limit: Option<(Duration, bool)>,
    asked_to_end: Option<i32>,
) -> JobEnd {
    let about = jobs(tool).into_iter().find(|about| name(about).as_deref() == Some(nspace.as_str()));
    let mut records = records(tool, nspace);
    if records.is_empty() {
        records = value::records(told, names::RANKS);
    }
    let procs = procs(&records, nspace);
    let restarts = restarts(&records);
    let known = |key| about.as_ref().and_then(|about| value::find(about, key));
    let find = |key| known(key).or_else(|| told.find(key));
    let status = told.find(keys::JOB_TERM_STATUS).and_then(as_status).unwrap_or(Status::SUCCESS);
    let exit_code = find(keys::EXIT_CODE).and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    // PRRTE sends the exit code of the first rank that failed where the standard has a status.
    let exit_code =
        exit_code.unwrap_or(if status.0 > 0 { status.0 } else { i32::from(status != Status::SUCCESS) });
    let culprit = find(keys::PROCID).and_then(Value::as_proc);
    let wanted_by = find(names::WANTED_BY).and_then(Value::as_proc);
    let wanted_by_tool = find(names::TOOL_PROCESS).and_then(Value::as_array).and_then(tool_process);
    let first = culprit.and_then(|culprit| procs.iter().find(|end| end.proc == *culprit));
    let reason = || find(names::REASON).and_then(Value::as_str).unwrap_or_default().to_owned();
    let in_words = told.find(keys::EVENT_TEXT_MESSAGE).and_then(Value::as_str);
    // A rank that a signal of the user has killed, unless the signal was to end the job: then that rank failed.
    let passed_on = procs.iter().filter(|end| end.is_failure() && asked_to_end.is_none());
    let passed_on = passed_on.min_by_key(|end| end.after);
    let word = find(names::VERDICT).and_then(Value::as_str);
    let named = if word == Some("killed") { wanted_by } else { culprit };
    let verdict = match (word, first, named) {
        (Some("failed"), Some(first), _) => JobVerdict::Failed { first: first.clone() },
        (Some("aborted"), _, Some(by)) => {
            JobVerdict::Aborted { by: by.clone(), status: Status(exit_code), message: reason() }
        }
        (Some("not started"), ..) => JobVerdict::NotStarted { error: reason() },
        (Some("timed out"), ..) => JobVerdict::TimedOut {
            limit: find(names::LIMIT)
                .and_then(Value::as_u64)
                .map_or_else(|| limit.unwrap_or_default().0, Duration::from_millis),
        },
        (Some("cancelled"), ..) => JobVerdict::Cancelled { signal: exit_code - 128 },
        (Some("killed"), _, Some(by)) => match passed_on.filter(|_| by == tool.proc()) {
            Some(first) => JobVerdict::Failed { first: first.clone() },
            None => JobVerdict::Killed { by: by.clone(), signal: exit_code - 128 },
        },
        (Some("DVM stopped"), ..) => JobVerdict::DvmStopped { by: wanted_by.cloned() },
        (Some("parent ended"), ..) => match Nspace::new(&reason()) {
            Ok(parent) => JobVerdict::ParentEnded { parent },
            Err(_) => JobVerdict::Cancelled { signal: exit_code - 128 },
        },
        (Some("without PMIx"), _, Some(by)) => JobVerdict::WithoutPmix { by: by.clone(), library: reason() },
        (Some("allocation ended"), ..) => JobVerdict::AllocationEnded { why: reason() },
        (Some("node lost"), ..) => JobVerdict::NodeLost {
            node: find(keys::HOSTNAME).and_then(Value::as_str).unwrap_or_default().to_owned(),
            why: reason(),
        },
        // PRRTE ends a job at its limit without a reason, and without marking it as failed.
        (None, ..) if limit.is_some_and(|(_, is_over)| is_over) => {
            JobVerdict::TimedOut { limit: limit.unwrap_or_default().0 }
        }
        _ if exit_code == 0 && status == Status::SUCCESS => JobVerdict::Success,
        // The server is gone and cannot be asked for more.
        _ if in_words.is_some() => JobVerdict::NotStarted { error: in_words.unwrap_or_default().to_owned() },
        _ if status.0 > 0 => JobVerdict::NotStarted { error: format!("a rank exited with code {exit_code}") },
        _ => JobVerdict::NotStarted { error: format!("the job ended with {status}") },
    };
    let exit_code = if matches!(verdict, JobVerdict::TimedOut { .. }) { EXIT_TIMEOUT } else { exit_code };
    let duration = find(names::AGE).and_then(Value::as_u64).map(Duration::from_millis).unwrap_or_default();
    // Other servers have no such key.
    let connected = find(names::CONNECTED).is_none_or(Value::is_true);
    let mpi = find(names::MPI).and_then(Value::as_str).map(str::to_owned);
    let phases = find(names::PHASES).map(ps::phases).unwrap_or_default();
    let waited = all_waited(told);
    let enders = enders(told);
    let killed = procs.is_empty() || procs.iter().any(|end| end.killed_by_us);
    let by_us = match &verdict {
        // Other servers may not report that they ended the job.
        JobVerdict::Success => killed,
        JobVerdict::Killed { by, .. } => by == tool.proc(),
        _ => false,
    };
    match asked_to_end.filter(|_| by_us) {
        // The user requested the end, by job control.
        Some(signal) => JobEnd {
            nspace: nspace.clone(),
            verdict: JobVerdict::Cancelled { signal },
            tool: None,
            enders: Vec::new(),
            exit_code: 128 + signal,
            procs,
            duration,
            connected,
            mpi,
            waited,
            restarts,
            phases,
        },
        None => {
            let (nspace, tool) = (nspace.clone(), wanted_by_tool);
            JobEnd {
                nspace,
                verdict,
                tool,
                enders,
                exit_code,
                procs,
                duration,
                connected,
                mpi,
                waited,
                restarts,
                phases,
            }
        }
    }
}

fn tool_process(about: &DataArray) -> Option<ToolProcess> {
    let find = |key| value::find(about, key);
    Some(ToolProcess {
        uid: find(keys::USERID)?.as_u32()?,
        pid: find(keys::PROC_PID).and_then(Value::as_u32),
        command: find(keys::CMD_LINE).and_then(Value::as_str).map(str::to_owned),
    })
}

/// If several have ended its ranks.
fn enders(told: &[Info]) -> Vec<Ender> {
    let each = told.iter().filter(|info| info.key == *names::ENDER);
    let all = each.filter_map(|info| {
        let about = info.value.as_array()?;
        let find = |key| value::find(about, key);
        Some(Ender {
            ranks: job::ranges(find(names::WHICH)?.as_str()?).ok()?,
            by: find(names::WANTED_BY)?.as_proc()?.clone(),
            signal: find(names::SIGNAL)?.as_i64()?.try_into().ok()?,
            tool: find(names::TOOL_PROCESS).and_then(Value::as_array).and_then(tool_process),
        })
    });
    all.collect()
}

fn all_waited(told: &[Info]) -> Vec<Waited> {
    let each = told.iter().filter(|info| info.key == *names::WAITED);
    let all = each.filter_map(|info| {
        let about = info.value.as_array()?;
        let text = |key| value::find(about, key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let longest = value::find(about, names::AGE).and_then(Value::as_u64).unwrap_or_default();
        Some(Waited {
            ranks: text(names::WHICH),
            operation: text(names::OPERATION),
            subject: text(names::SUBJECT),
            longest: Duration::from_millis(longest),
        })
    });
    all.collect()
}

/// Reports why the spawn has failed: a server of ours can be asked what became of the job.
pub(super) fn not_started(tool: &Tool, shared: &Shared, error: &pmix::Error) {
    let me = tool.proc();
    let is_ours = |about: &DataArray| {
        value::find(about, keys::PARENT_ID).and_then(Value::as_proc) == Some(me)
            && value::find(about, names::VERDICT).and_then(Value::as_str) == Some("not started")
    };
    let found = jobs(tool).into_iter().find(is_ours);
    let nspace = found.as_ref().and_then(name).and_then(|name| Nspace::new(&name).ok());
    let said = std::mem::take(&mut shared.state().said);
    if let Some(nspace) = nspace {
        shared.accepted(&nspace, map::of_job(tool, &nspace).unwrap_or_default());
        // The job may not be over yet, and have no exit code.
        let exit_code = match error.status() {
            Status::ERR_JOB_EXE_NOT_FOUND => 127,
            _ => 126,
        };
        let end = JobEnd { exit_code, ..of(tool, &nspace, &[], None, None) };
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
    let procs = procs(&records(tool, nspace), nspace);
    !procs.is_empty() && procs.iter().all(|end| end.status.is_some())
}

pub(super) fn name(about: &DataArray) -> Option<String> {
    value::find(about, keys::NSPACE).and_then(Value::as_str).map(str::to_owned)
}

/// The pids of ranks that run or have run.
pub(super) fn pids(tool: &Tool, nspace: &Nspace) -> BTreeMap<ProcId, u32> {
    procs(&records(tool, nspace), nspace).into_iter().filter_map(|end| Some((end.proc, end.pid?))).collect()
}

/// The server's record of each rank.
fn records(tool: &Tool, nspace: &Nspace) -> Vec<DataArray> {
    let qualifiers = vec![Info::new(keys::NSPACE, nspace.as_str())];
    let query = Query { keys: vec![names::RANKS.into()], qualifiers };
    tool.query(&[query]).map(|found| value::records(&found, names::RANKS)).unwrap_or_default()
}

fn procs(records: &[DataArray], nspace: &Nspace) -> Vec<ProcEnd> {
    records.iter().zip(0..).map(|(about, rank)| proc_end(about, ProcId::new(nspace, Rank(rank)))).collect()
}

fn restarts(records: &[DataArray]) -> Vec<(u32, u32)> {
    let times = |about: &DataArray| value::find(about, names::RESTARTS).and_then(Value::as_u32);
    let each = records.iter().zip(0..);
    each.filter_map(|(about, rank)| Some((rank, times(about)?))).collect()
}

fn proc_end(about: &DataArray, proc: ProcId) -> ProcEnd {
    let number = |key| value::find(about, key).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    let state = value::find(about, keys::PROC_STATE_STATUS);
    let state = match state {
        Some(Value::ProcState(state)) => *state,
        _ => ProcState::UNDEF,
    };
    ProcEnd {
        proc,
        node: value::find(about, keys::HOSTNAME).and_then(Value::as_str).unwrap_or_default().to_owned(),
        pid: value::find(about, keys::PROC_PID).and_then(Value::as_u32),
        status: match number(names::SIGNAL) {
            Some(number) => Some(ExitStatus::Signal { number, core_dumped: false }),
            None => number(keys::EXIT_CODE).map(ExitStatus::Code),
        },
        after: value::find(about, names::AGE)
            .and_then(Value::as_u64)
            .map(Duration::from_millis)
            .unwrap_or_default(),
        killed_by_us: state == ProcState::KILLED_BY_CMD,
        lost_connection: state == ProcState::TERM_WO_SYNC
            || value::find(about, names::UNFINALIZED).is_some_and(Value::is_true),
    }
}

/// The usual exit code for a job that was ended at its limit.
const EXIT_TIMEOUT: i32 = 124;

fn as_status(value: &Value) -> Option<Status> {
    match value {
        Value::Status(status) => Some(*status),
        other => other.as_i64().and_then(|code| i32::try_from(code).ok()).map(Status),
    }
}
