//! What a fact about a job means for it: a function from the job and the fact to the steps that follow, in their order. Nothing
//! is done here: `end.rs` takes the steps.
//!
//! Only this file decides what the end of one process means for the others of its job. The first reason for a job's end is the reported
//! one; whatever follows from it is a consequence, not a culprit.

use std::sync::Arc;

use phalanx_core::Time;
use phalanx_spec::Status;
use phalanx_wire::{Nspace, ProcId};

use crate::id::NodeId;
use crate::job::JobVerdict;
use crate::msg::{Control, Ends, FailurePolicy, MpiLibrary, ProcEnd, Reached};
use crate::ranges::Ranges;
use crate::root::consequence::Step;
use crate::root::jobs::RootJob;
use crate::root::journal;
use crate::root::journal::What;
use crate::root::lifecycle;
use crate::signals::{SIGKILL, SIGTERM};

/// What has happened to a job, or is wanted of it.
#[derive(Debug)]
pub(super) enum Fact<'a> {
    /// A process has failed.
    Failed(&'a ProcEnd),
    /// A process has ended well, in a job with a request for such reports.
    Left(&'a ProcEnd),
    /// A process aborts these ranks.
    Aborted { ranks: &'a Ranges, by: &'a ProcId, status: Status, message: &'a str },
    /// A rank that has not connected has loaded an MPI library.
    LoadedMpi { by: &'a ProcId, library: &'a MpiLibrary },
    /// Its time limit has passed.
    LimitPassed,
    /// The spawn's time limit for its start has passed.
    StartLimitPassed,
    /// The user sends a control action.
    Controlled(Control),
    /// It is to end.
    Doomed(JobVerdict),
    /// A node on which it has processes is lost, and why.
    NodeLost { node: NodeId, name: &'a str, why: &'a str },
    /// This is known to all jobs that have processes on that node.
    WithoutNode(NodeId),
    /// All its processes have ended, and their output is out.
    Exited(Box<Ends>),
}

/// The steps that follow. `concerned`: the jobs that may receive its events.
pub(super) fn steps(now: Time, job: &RootJob, concerned: &Arc<[Nspace]>, fact: Fact<'_>) -> Vec<Step> {
    match fact {
        Fact::LoadedMpi { by, library } => return loaded_mpi(job, by, library),
        Fact::StartLimitPassed if !job.journal.has_started() => return overdue(now, job),
        Fact::StartLimitPassed => return Vec::new(),
        _ if job.journal.has_exited() => return Vec::new(),
        _ => {}
    }
    match fact {
        Fact::Failed(end) => failed(job, concerned, end),
        Fact::Left(end) => left(concerned, end),
        Fact::Aborted { ranks, by, status, message } => aborted(job, ranks, (by, status, message)),
        Fact::LimitPassed => {
            let limit = job.limit.into_iter();
            limit.map(|limit| Step::End(JobVerdict::TimedOut { limit })).collect()
        }
        Fact::Controlled(control) => controlled(job, control),
        Fact::Doomed(verdict) => doomed(job, verdict),
        Fact::NodeLost { node, name, why } => node_lost(job, concerned, node, (name, why)),
        Fact::WithoutNode(node) if job.desc.on_failure == FailurePolicy::Continue => {
            vec![Step::GoOnWithout(job.desc.ranks_on(node))]
        }
        Fact::WithoutNode(_) => Vec::new(),
        Fact::Exited(ends) => exited(ends),
        Fact::LoadedMpi { .. } | Fact::StartLimitPassed => Vec::new(),
    }
}

fn failed(job: &RootJob, concerned: &Arc<[Nspace]>, end: &ProcEnd) -> Vec<Step> {
    let ranks = Ranges::single(end.proc.rank.0);
    let policy = job.desc.on_failure;
    let restarts = matches!(policy, FailurePolicy::Restart { .. });
    let ends_job = policy.ends_job(end);
    let mut then = Vec::new();
    // A process with an exit status did run, so the job has begun.
    then.extend(end.status.map(|_| Step::Begin));
    if !ends_job {
        then.push(Step::Dead(ranks.clone()));
    }
    if !restarts {
        then.push(Step::Free(ranks.clone()));
    }
    then.push(Step::Withdraw(ranks.clone()));
    let concerned = concerned.clone();
    then.push(Step::Enter(What::Failed { ranks: ranks.clone(), first: end.clone(), concerned }));
    if !ends_job {
        then.push(Step::Survivors(ranks.clone()));
    }
    then.push(line_about(end));
    if ends_job {
        then.push(Step::End(journal::failure_of(&job.journal, end)));
        return then;
    }
    then.push(Step::GoOnWithout(ranks));
    if restarts {
        then.push(Step::Recover(end.clone()));
    }
    then
}

fn left(concerned: &Arc<[Nspace]>, end: &ProcEnd) -> Vec<Step> {
    let (ranks, concerned) = (Ranges::single(end.proc.rank.0), concerned.clone());
    vec![Step::Begin, Step::Enter(What::Left { ranks, first: end.clone(), concerned }), line_about(end)]
}

fn line_about(end: &ProcEnd) -> Step {
    let (wanted, text) = lifecycle::line_about(end);
    Step::Line { wanted, text }
}

fn aborted(job: &RootJob, ranks: &Ranges, (by, status, message): (&ProcId, Status, &str)) -> Vec<Step> {
    if ranks.count() >= job.desc.size || job.desc.on_failure != FailurePolicy::Continue {
        return vec![Step::End(JobVerdict::Aborted { by: by.clone(), status, message: message.to_owned() })];
    }
    let order = Step::Order { ranks: Some(ranks.clone()), action: TERMINATE };
    vec![Step::Kill { ranks: ranks.clone(), by: by.clone(), signal: SIGTERM }, order]
}

fn loaded_mpi(job: &RootJob, by: &ProcId, library: &MpiLibrary) -> Vec<Step> {
    let loaded = Step::Enter(What::LoadedMpi { by: by.clone(), library: library.clone() });
    // A program started by a script may be meant to run alone: the report of the job's end mentions it.
    if library.has_pmix || library.below {
        return vec![loaded];
    }
    // Without a PMIx client in its MPI, each rank would run alone.
    let verdict = JobVerdict::WithoutPmix { by: by.clone(), library: library.file.clone() };
    match job.journal.verdict() {
        // Some releases of MPICH detect it themselves and their ranks exit: record this as the reason.
        Some(JobVerdict::Failed { .. }) => vec![loaded, Step::Enter(What::Ending(verdict))],
        _ => vec![loaded, Step::End(verdict)],
    }
}

fn overdue(now: Time, job: &RootJob) -> Vec<Step> {
    let seconds = now.since(job.journal.since()).as_secs();
    let error = format!("the job has not started within {seconds} s, the time limit of the spawn");
    vec![Step::Enter(What::StartOverdue), Step::End(JobVerdict::NotStarted { error }), Step::AnswerSpawn]
}

fn controlled(job: &RootJob, control: Control) -> Vec<Step> {
    let order = Step::Order { ranks: None, action: control };
    match control {
        Control::Signal(_) => vec![order],
        Control::Suspend | Control::Resume => vec![Step::Pause { ranks: job.desc.ranks(), control }, order],
        Control::Terminate { signal } => vec![Step::End(JobVerdict::Cancelled { signal })],
        Control::Kill => {
            let reason = Step::Reason(JobVerdict::Cancelled { signal: SIGKILL });
            vec![reason, Step::ReportEnding, Step::AbandonReaders, order]
        }
    }
}

fn doomed(job: &RootJob, verdict: JobVerdict) -> Vec<Step> {
    if job.journal.verdict().is_some() {
        return Vec::new();
    }
    vec![
        Step::Reason(verdict),
        // Before the order: messages keep their sequence.
        Step::LastLook,
        Step::ReportEnding,
        Step::WatchReaders,
        Step::Order { ranks: None, action: TERMINATE },
    ]
}

/// Its processes there are lost with the node.
fn node_lost(job: &RootJob, concerned: &Arc<[Nspace]>, node: NodeId, (name, why): (&str, &str)) -> Vec<Step> {
    let ranks = job.desc.ranks_on(node);
    let mut then = vec![Step::LoseStreams(ranks.clone())];
    let (node, why) = (name.to_owned(), why.to_owned());
    if job.desc.on_failure == FailurePolicy::Continue {
        let text = format!("node {node} was lost, and with it {}: {why}", ranks.in_words());
        let concerned = concerned.clone();
        then.extend([
            Step::Dead(ranks.clone()),
            Step::Withdraw(ranks.clone()),
            Step::Enter(What::Lost { ranks: ranks.clone(), node, why, concerned }),
            Step::Survivors(ranks),
            Step::Note(text),
        ]);
    } else {
        then.push(Step::End(JobVerdict::NodeLost { node, why }));
    }
    // The parts of this daemon may have been the last ones missing.
    then.push(Step::AwaitDaemons);
    then
}

fn exited(ends: Box<Ends>) -> Vec<Step> {
    // In a short job, connections are reported only here, with the ends.
    let Reached { count, after } = ends.connected;
    vec![
        Step::Enter(What::Connected { count, after }),
        Step::Enter(What::Exited(ends)),
        Step::FreeAll,
        Step::LineAboutEnd,
        Step::WithdrawAll,
        Step::Forget,
    ]
}

/// The control sent to daemons when ranks are to end.
const TERMINATE: Control = Control::Terminate { signal: SIGTERM };
