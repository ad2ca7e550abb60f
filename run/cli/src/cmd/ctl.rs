//! `px ctl` and `px kill`: job control, and what has become of it.

mod requests;

use std::time::Duration;

use phalanx_dvm::spawn::KILL_AFTER;
use phalanx_dvm::{Ranges, names};
use pmix::{DataArray, Info, Status, Value, keys};
use serde_json::json;

use crate::args::ctl::{CtlAction, CtlArgs, KillArgs, SignalArgs, TargetArgs, TerminateArgs};
use crate::failure::{EXIT_FAILURE, Failure};
use crate::render::{hint, value, words};
use crate::tool::{self, job};

/// What is to be done to ranks.
struct Deed {
    directives: Vec<Info>,
    /// What was done when it is done.
    done: String,
}

impl Deed {
    fn new(directive: Info, done: impl Into<String>) -> Deed {
        Deed { directives: vec![directive], done: done.into() }
    }

    fn with(mut self, more: Option<Info>) -> Deed {
        self.directives.extend(more);
        self
    }
}

pub(crate) fn run(args: &CtlArgs) -> Result<u8, Failure> {
    let flag = |key, done: &str| Deed::new(Info::new(key, true), done);
    match &args.action {
        CtlAction::Pause(target) => each(target, flag(keys::JOB_CTRL_PAUSE, "paused")),
        CtlAction::Resume(target) => each(target, flag(keys::JOB_CTRL_RESUME, "resumed")),
        CtlAction::Signal(SignalArgs { signal, target }) => each(target, sent(*signal)),
        CtlAction::Kill(target) => each(target, flag(keys::JOB_CTRL_KILL, "killed")),
        CtlAction::Terminate(TerminateArgs { grace, target }) => each(target, terminate(*grace)),
        CtlAction::Status(args) => requests::status(args),
        CtlAction::Cancel(args) => requests::cancel(args),
    }
}

pub(crate) fn kill(args: &KillArgs) -> Result<u8, Failure> {
    let deed = match args.signal {
        Some(SIGKILL) => Deed::new(Info::new(keys::JOB_CTRL_KILL, true), "killed"),
        Some(signal) => sent(signal),
        None => terminate(None),
    };
    each(&args.target, deed)
}

fn terminate(grace: Option<Duration>) -> Deed {
    let micros = |grace: Duration| u64::try_from(grace.as_micros()).unwrap_or(u64::MAX);
    let grace = grace.map(|grace| Info::new(KILL_AFTER, micros(grace)).required());
    Deed::new(Info::new(keys::JOB_CTRL_TERMINATE, true), "asked to end").with(grace)
}

fn sent(signal: i32) -> Deed {
    Deed::new(Info::new(keys::JOB_CTRL_SIGNAL, signal), format!("sent {}", words::signal(signal)))
}

/// Does it to all targets, one job after the other; what fails for one is no reason to leave out the others.
fn each(args: &TargetArgs, deed: Deed) -> Result<u8, Failure> {
    let deed = &deed.with(args.id.as_deref().map(|id| Info::new(keys::JOB_CTRL_ID, id)));
    // A word that means nothing is an error before anything is done.
    let targets = args.targets.iter().map(|word| job::target(word)).collect::<Result<Vec<_>, _>>()?;
    let mut code = 0;
    for (nspace, ranks) in targets {
        let told = carry_out(args, &nspace, ranks, deed);
        match told {
            Ok(outcome) => {
                let text = if args.json { outcome.json(deed) } else { outcome.text(deed) };
                super::print(text.as_bytes())?;
                code = code.max(if outcome.failed.is_empty() { 0 } else { EXIT_FAILURE });
            }
            Err(failure) => {
                hint::say(&hint::failure(&failure, args.json));
                code = code.max(failure.exit_code);
            }
        }
    }
    Ok(code)
}

/// What has become of it for the ranks of one job.
struct Outcome {
    job: String,
    done: Ranges,
    failed: Vec<(Status, Ranges)>,
}

fn carry_out(
    args: &TargetArgs,
    nspace: &pmix::Nspace,
    ranks: Option<Ranges>,
    deed: &Deed,
) -> Result<Outcome, Failure> {
    let tool = tool::attach_for(&args.server, nspace)?;
    let size = job::size(&tool, nspace)?;
    let wanted = ranks.unwrap_or_else(|| (0..size).collect());
    let targets = job::procs(nspace, size, &wanted)?;
    let (status, results) = match tool.job_control(&targets, &deed.directives) {
        Ok(results) => (Status::SUCCESS, results),
        Err(pmix::Error::Reported { status, results, .. }) => (status, results),
        Err(error) => return Err(tool::failed(&format!("cannot steer job {nspace}"), &error)),
    };
    let told = results_of(&results);
    // A server that does not say of whom it speaks speaks of all.
    let told = if told.is_empty() { vec![(status, wanted)] } else { told };
    let (done, failed): (Vec<_>, Vec<_>) = told.into_iter().partition(|(status, _)| status.is_success());
    let mut outcome = Outcome { job: nspace.to_string(), done: Ranges::new(), failed };
    done.iter().for_each(|(_, ranks)| outcome.done.add(ranks));
    Ok(outcome)
}

/// What has become of the ranks of one job, as ranges of equal results.
fn results_of(results: &[Info]) -> Vec<(Status, Ranges)> {
    let about =
        results.iter().filter(|info| info.key == *names::RESULT).filter_map(|info| info.value.as_array());
    let result = |about: &DataArray| {
        let ranks = job::ranges(value::find(about, names::WHICH)?.as_str()?).ok()?;
        match value::find(about, names::STATUS) {
            Some(Value::Status(status)) => Some((*status, ranks)),
            _ => None,
        }
    };
    about.filter_map(result).collect()
}

impl Outcome {
    fn text(&self, deed: &Deed) -> String {
        let line = |ranks: &Ranges, what: &str| {
            format!("{}: {}: {what}\n", self.job, words::ranks(&ranks.iter().collect::<Vec<_>>()))
        };
        let mut text = String::new();
        if !self.done.is_empty() {
            text += &line(&self.done, &deed.done);
        }
        for (status, ranks) in &self.failed {
            text += &line(ranks, &format!("not {}: {}", deed.done, why(*status)));
        }
        text
    }

    fn json(&self, deed: &Deed) -> String {
        let failed = self.failed.iter().map(|(status, ranks)| {
            json!({ "ranks": ranks.to_string(), "status": status.to_string(), "number": status.0 })
        });
        let done = self.done.to_string();
        format!(
            "{}\n",
            json!({ "job": self.job, "what": deed.done, "ranks": done, "failed": failed.collect::<Vec<_>>() })
        )
    }
}

fn why(status: Status) -> String {
    match status {
        Status::ERR_NOT_FOUND => "ended before".to_owned(),
        Status::ERR_LOST_CONNECTION => "their node was lost".to_owned(),
        Status::ERR_NO_PERMISSIONS => "this job is not yours".to_owned(),
        status => status.to_string(),
    }
}

const SIGKILL: i32 = 9;
