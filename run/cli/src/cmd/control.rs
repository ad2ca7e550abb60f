//! `px ctl` and `px kill`: job control, and its results.

mod requests;

use std::time::Duration;

use phalanx_dvm::spawn::KILL_AFTER;
use phalanx_dvm::{PREEMPT, Ranges, names};
use pmix::{DataArray, Info, Status, Value, keys};
use serde_json::json;

use crate::args::control::{
    CheckpointArgs, CtlAction, CtlArgs, KillArgs, PreemptArgs, RestartArgs, SignalArgs, TargetArgs,
    TerminateArgs,
};
use crate::failure::{EXIT_FAILURE, Failure};
use crate::render::{hint, value, words};
use crate::tool::{self, job};

/// An operation on ranks.
struct Deed {
    directives: Vec<Info>,
    /// The word for its success.
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
        CtlAction::Checkpoint(args) => each(&args.target, checkpoint(args)),
        CtlAction::Restart(RestartArgs { from, target }) => {
            let from = from.as_deref().unwrap_or_default();
            each(target, Deed::new(Info::new(keys::JOB_CTRL_RESTART, from), "started again"))
        }
        CtlAction::Preempt(args) => each(&args.target, preempt(args)),
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

fn checkpoint(args: &CheckpointArgs) -> Deed {
    let signal = args.signal.map(|signal| Info::new(keys::JOB_CTRL_CHECKPOINT_SIGNAL, signal));
    let name = Info::new(keys::JOB_CTRL_CHECKPOINT, args.name.as_str());
    // In some releases the key of the signal is that of the limit, too: with both given, the signal is one.
    let timeout = args.timeout.or(signal.is_some().then_some(PATIENCE));
    Deed::new(name, format!("checkpointed as {}", args.name)).with(signal).with(limit(timeout))
}

fn preempt(args: &PreemptArgs) -> Deed {
    let (done, then) = match args.pause {
        true => ("alerted and paused", keys::JOB_CTRL_PAUSE),
        false => ("alerted and asked to end", keys::JOB_CTRL_TERMINATE),
    };
    let name = Info::new(PREEMPT, args.name.as_str()).required();
    Deed::new(name, done).with(Some(Info::new(then, true))).with(limit(args.timeout))
}

/// In whole seconds.
fn limit(timeout: Option<Duration>) -> Option<Info> {
    let seconds = timeout?.as_millis().div_ceil(1000);
    Some(Info::new(keys::JOB_CTRL_CHECKPOINT_TIMEOUT, i32::try_from(seconds).unwrap_or(i32::MAX)))
}

fn sent(signal: i32) -> Deed {
    Deed::new(Info::new(keys::JOB_CTRL_SIGNAL, signal), format!("sent {}", words::signal(signal)))
}

/// Applies the operation to all targets, one job after the other; a failure of one does not stop the others.
fn each(args: &TargetArgs, deed: Deed) -> Result<u8, Failure> {
    let deed = &deed.with(args.id.as_deref().map(|id| Info::new(keys::JOB_CTRL_ID, id)));
    // A malformed target is an error before anything is done.
    let targets = args.targets.iter().map(|word| job::target(word)).collect::<Result<Vec<_>, _>>()?;
    let mut code = 0;
    for (nspace, ranks) in targets {
        let told = carry_out(args, &nspace, ranks, deed);
        match told {
            Ok(outcome) => {
                let text = if args.json { outcome.json(deed) } else { outcome.text(deed) };
                super::print(&text)?;
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

/// The results for the ranks of one job.
struct Outcome {
    job: String,
    done: Ranges,
    /// What is to be known about those besides.
    but: Option<String>,
    failed: Vec<RankResults>,
}

fn carry_out(
    args: &TargetArgs,
    nspace: &pmix::Nspace,
    ranks: Option<Ranges>,
    deed: &Deed,
) -> Result<Outcome, Failure> {
    let tool = tool::attach_for(&args.server, nspace, args.json)?;
    let size = job::size(&tool, nspace)?;
    let wanted = ranks.unwrap_or_else(|| (0..size).collect());
    let targets = job::procs(nspace, size, &wanted)?;
    let (status, results) = match tool.job_control(&targets, &deed.directives) {
        Ok(results) => (Status::SUCCESS, results),
        Err(pmix::Error::Reported { status, results, .. }) => (status, results),
        Err(error) => return Err(tool::failed(&format!("cannot steer job {nspace}"), &error)),
    };
    let told = results_of(&results);
    // A server that names no ranks answers for all of them.
    let told = match told.is_empty() {
        true => vec![RankResults { status, ranks: wanted, why: None }],
        false => told,
    };
    let (done, failed): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.status.is_success());
    let mut outcome = Outcome { job: nspace.to_string(), done: Ranges::new(), failed, but: None };
    outcome.but = done.iter().find_map(|told| told.why.clone());
    done.iter().for_each(|told| outcome.done.add(&told.ranks));
    Ok(outcome)
}

/// The result for some ranks, perhaps with a reason.
struct RankResults {
    status: Status,
    ranks: Ranges,
    why: Option<String>,
}

impl RankResults {
    fn why(&self) -> String {
        self.why.clone().unwrap_or_else(|| why(self.status))
    }
}

/// The results for the ranks of one job, as ranges of equal results.
fn results_of(results: &[Info]) -> Vec<RankResults> {
    let about =
        results.iter().filter(|info| info.key == *names::RESULT).filter_map(|info| info.value.as_array());
    let result = |about: &DataArray| {
        let ranks = job::ranges(value::find(about, names::WHICH)?.as_str()?).ok()?;
        let why = value::find(about, keys::EVENT_TEXT_MESSAGE).and_then(Value::as_str).map(str::to_owned);
        match value::find(about, names::STATUS) {
            Some(Value::Status(status)) => Some(RankResults { status: *status, ranks, why }),
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
            let but = self.but.as_ref().map(|but| format!("; {but}")).unwrap_or_default();
            text += &line(&self.done, &(deed.done.clone() + &but));
        }
        for told in &self.failed {
            text += &line(&told.ranks, &format!("not {}: {}", deed.done, told.why()));
        }
        text
    }

    fn json(&self, deed: &Deed) -> String {
        let failed = self.failed.iter().map(|RankResults { status, ranks, why }| {
            let mut told =
                json!({ "ranks": ranks.to_string(), "status": status.to_string(), "number": status.0 });
            if let (Some(why), Some(told)) = (why, told.as_object_mut()) {
                told.insert("why".to_owned(), why.as_str().into());
            }
            told
        });
        let done = self.done.to_string();
        let mut all = json!({ "job": self.job, "what": deed.done, "ranks": done, "failed": failed.collect::<Vec<_>>() });
        if let (Some(but), Some(all)) = (&self.but, all.as_object_mut()) {
            all.insert("note".to_owned(), but.as_str().into());
        }
        format!("{all}\n")
    }
}

fn why(status: Status) -> String {
    match status {
        Status::ERR_NOT_FOUND => "ended before".to_owned(),
        Status::ERR_LOST_CONNECTION => "their node was lost".to_owned(),
        Status::ERR_NO_PERMISSIONS => "this job is not yours".to_owned(),
        Status::ERR_TIMEOUT => "not in time".to_owned(),
        Status::ERR_PROC_ABORTED => "ended meanwhile".to_owned(),
        Status::ERR_EXISTS => "they are being started again already".to_owned(),
        status => status.to_string(),
    }
}

const SIGKILL: i32 = 9;
/// The limit of a checkpoint at a signal that the command line names, as it is by default.
const PATIENCE: Duration = Duration::from_secs(300);
