//! `px wait`: waits until jobs have ended, and returns how they did.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pmix::{Event, Info, InfoList, Nspace, ProcId, Status, Tool, Value, Verdict, keys};
use serde_json::json;

use crate::args::control::WaitArgs;
use crate::detached;
use crate::failure::{EXIT_FAILURE, EXIT_TIMEOUT, Failure};
use crate::render::hint;
use crate::tool::{self, job};

/// Returns the exit code of the first job that did not end well.
pub(crate) fn run(args: &WaitArgs) -> Result<u8, Failure> {
    let jobs = args.jobs.iter().map(|word| named(word)).collect::<Result<Vec<_>, _>>()?;
    let until = args.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let mut code = 0;
    for nspace in jobs {
        let ended = match one(args, &nspace, until) {
            Ok(ended) => ended,
            Err(failure) if failure.exit_code == EXIT_TIMEOUT => return Err(failure),
            Err(failure) => {
                hint::say(&hint::failure(&failure, args.json));
                EXIT_FAILURE
            }
        };
        if args.json {
            let line = json!({ "job": nspace.to_string(), "exit_code": ended });
            super::print(&format!("{line}\n"))?;
        }
        if code == 0 {
            code = ended;
        }
    }
    Ok(code)
}

fn named(word: &str) -> Result<Nspace, Failure> {
    match job::target(word)? {
        (nspace, None) => Ok(nspace),
        _ => Err(Failure::usage(format!("'{word}' names ranks, and only whole jobs can be waited for"))),
    }
}

/// The exit code of one job, when it has ended.
fn one(args: &WaitArgs, nspace: &Nspace, until: Option<Instant>) -> Result<u8, Failure> {
    if !tool::names_any(&args.server)
        && let Some(kept) = detached::find(nspace.as_str())
    {
        loop {
            if let Some(code) = kept.ended()? {
                return Ok(code);
            }
            thread::sleep(left(nspace, until)?.min(PAUSE));
        }
    }
    let tool = tool::attach_for(&args.server, nspace, args.json)?;
    let (told, ends) = mpsc::channel();
    let lost = told.clone();
    let all = Info::new(keys::EVENT_AFFECTED_PROC, ProcId::all(nspace));
    let watched = tool
        .register_event_handler(&[Status::ERR_LOST_CONNECTION], &[], move |_: &Event, _: &[Info]| {
            let _ = lost.send(None);
            done()
        })
        .and_then(|_| {
            tool.register_event_handler(&[Status::EVENT_JOB_END], &[all], move |event: &Event, _: &[Info]| {
                let _ = told.send(Some(event.info.find(keys::EXIT_CODE).and_then(Value::as_i64)));
                done()
            })
        });
    watched.map_err(|error| tool::failed(&format!("cannot wait for job {nspace}"), &error))?;
    // Servers of ours report earlier ends to late listeners; others may only know that the job has ended.
    if let Some(code) = exit_code(&tool, nspace)? {
        return Ok(code);
    }
    match ends.recv_timeout(left(nspace, until)?) {
        Ok(Some(code)) => Ok(code.map_or(EXIT_FAILURE, shell_code)),
        Ok(None) | Err(RecvTimeoutError::Disconnected) => Err(Failure::new(format!(
            "the server of job {nspace} is gone, and did not say how the job ended"
        ))),
        Err(RecvTimeoutError::Timeout) => Err(late(nspace)),
    }
}

/// The exit code of a job that has ended; an error if the server knows no such job.
fn exit_code(tool: &Tool, nspace: &Nspace) -> Result<Option<u8>, Failure> {
    let ended = job::ask(tool, nspace, keys::EXIT_CODE).ok();
    let code = ended.and_then(|info| info.find(keys::EXIT_CODE).and_then(Value::as_i64));
    match code {
        Some(code) => Ok(Some(shell_code(code))),
        None => job::size(tool, nspace).map(|_| None),
    }
}

fn shell_code(code: i64) -> u8 {
    u8::try_from(code).unwrap_or(EXIT_FAILURE)
}

fn done() -> Verdict {
    Verdict { status: Status::EVENT_ACTION_COMPLETE, results: Vec::new() }
}

/// How long the wait may still take.
fn left(nspace: &Nspace, until: Option<Instant>) -> Result<Duration, Failure> {
    let Some(until) = until else { return Ok(FOR_EVER) };
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(late(nspace)),
        left => Ok(left),
    }
}

fn late(nspace: &Nspace) -> Failure {
    let failure = Failure::new(format!("job {nspace} has not ended in the time of '--timeout'"));
    Failure { exit_code: EXIT_TIMEOUT, ..failure }
}

/// How often the files of a detached job are checked for its end.
const PAUSE: Duration = Duration::from_millis(20);
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
