//! `px ctl` and `px kill`: job control, and what has become of it.

use phalanx_dvm::{Ranges, names};
use pmix::{Info, ProcId, Status, Value, keys};
use serde_json::json;

use crate::args::ctl::{CtlAction, CtlArgs, KillArgs, SignalArgs, TargetArgs};
use crate::failure::{EXIT_FAILURE, Failure};
use crate::render::{hint, value, words};
use crate::tool::{self, job};

/// What is to be done to ranks.
struct Deed {
    directive: Info,
    /// What was done when it is done.
    done: String,
}

pub(crate) fn run(args: &CtlArgs) -> Result<u8, Failure> {
    let flag = |key, done: &str| Deed { directive: Info::new(key, true), done: done.to_owned() };
    match &args.action {
        CtlAction::Pause(target) => each(target, &flag(keys::JOB_CTRL_PAUSE, "paused")),
        CtlAction::Resume(target) => each(target, &flag(keys::JOB_CTRL_RESUME, "resumed")),
        CtlAction::Signal(SignalArgs { signal, target }) => each(target, &sent(*signal)),
        CtlAction::Kill(target) => each(target, &flag(keys::JOB_CTRL_KILL, "killed")),
        CtlAction::Terminate(target) => each(target, &terminate()),
    }
}

pub(crate) fn kill(args: &KillArgs) -> Result<u8, Failure> {
    let deed = match args.signal {
        Some(SIGKILL) => Deed { directive: Info::new(keys::JOB_CTRL_KILL, true), done: "killed".into() },
        Some(signal) => sent(signal),
        None => terminate(),
    };
    each(&args.target, &deed)
}

fn terminate() -> Deed {
    Deed { directive: Info::new(keys::JOB_CTRL_TERMINATE, true), done: "asked to end".into() }
}

fn sent(signal: i32) -> Deed {
    let done = format!("sent {}", words::signal(signal));
    Deed { directive: Info::new(keys::JOB_CTRL_SIGNAL, signal), done }
}

/// Does it to all targets, one job after the other; what fails for one is no reason to leave out the others.
fn each(args: &TargetArgs, deed: &Deed) -> Result<u8, Failure> {
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
    let (status, results) = match tool.job_control(&targets, std::slice::from_ref(&deed.directive)) {
        Ok(results) => (Status::SUCCESS, results),
        Err(pmix::Error::Reported { status, results, .. }) => (status, results),
        Err(error) => return Err(tool::failed(&format!("cannot steer job {nspace}"), &error)),
    };
    let failed = failures(&results);
    let mut done = wanted;
    for (_, ranks) in &failed {
        ranks.iter().for_each(|rank| done.remove(rank));
    }
    // A server that does not say of whom it speaks speaks of all.
    match (failed.is_empty(), status.is_success()) {
        (true, false) => {
            Ok(Outcome { job: nspace.to_string(), done: Ranges::new(), failed: vec![(status, done)] })
        }
        _ => Ok(Outcome { job: nspace.to_string(), done, failed }),
    }
}

/// The targets that the answer names, as ranges of equal results.
fn failures(results: &[Info]) -> Vec<(Status, Ranges)> {
    let mut failed: Vec<(Status, Ranges)> = Vec::new();
    for about in value::records(results, keys::PROC_INFO_ARRAY) {
        let proc = match value::find(&about, keys::PROCID) {
            Some(Value::Proc(ProcId { rank, .. })) => *rank,
            _ => continue,
        };
        let Some(Value::Status(status)) = value::find(&about, names::STATUS) else { continue };
        match failed.iter_mut().find(|(known, _)| known == status) {
            Some((_, ranks)) => ranks.insert(proc.0),
            None => failed.push((*status, [proc.0].into_iter().collect())),
        }
    }
    failed
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
