//! Reports on the life of jobs: as events (the standard's *Tracking the job lifecycle*), and as lines for the user where the
//! request asks for them.
//!
//! A job's start is told when the first of its processes runs, that its launch is complete when all do, its end when nothing is
//! left of it. Each says when it happened.
//!
//! That time is reckoned from the wall time at which the root's time began.

use std::sync::Arc;

use phalanx_core::{Event, Time};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::job::JobEnd;
use crate::msg::{Down, ExitStatus, ProcEnd, ReportedEnds, exit_code};
use crate::ranges::Ranges;
use crate::root::about::{about_tool, about_verdict};
use crate::root::dvm::Dvm;
use crate::root::interests::announcement;
use crate::root::journal;
use crate::root::journal::{Entry, Journal, Moment, What};
use crate::root::query::names;
use crate::root::turn::Cx;

/// The directives of a request about it.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::NOTIFY_COMPLETION,
    keys::NOTIFY_JOB_EVENTS,
    keys::NOTIFY_PROC_TERMINATION,
    keys::NOTIFY_PROC_ABNORMAL_TERMINATION,
    keys::LOG_COMPLETION,
    keys::LOG_JOB_EVENTS,
    keys::LOG_PROC_TERMINATION,
    keys::LOG_PROC_ABNORMAL_TERMINATION,
];

/// All codes of such events: those that journals replay for late registrations.
pub(super) const CODES: [Status; 6] = [
    Status::EVENT_JOB_START,
    Status::LAUNCH_COMPLETE,
    Status::EVENT_PROC_TERMINATED,
    Status::ERR_PROC_TERM_WO_SYNC,
    Status::ERR_PROC_RESTART,
    Status::EVENT_JOB_END,
];

/// The number of a journal entry that an event announces, and when it happened.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub(super) number: u64,
    /// Since the epoch.
    seconds: u64,
}

/// Which ends of processes a request wants reported as they happen.
pub(super) fn reported_ends(info: &[Info]) -> ReportedEnds {
    let wants = |keys: [&str; 2]| keys.iter().any(|key| info.is_set(key));
    if wants([keys::NOTIFY_PROC_TERMINATION, keys::LOG_PROC_TERMINATION]) {
        ReportedEnds::All
    } else if wants([keys::NOTIFY_PROC_ABNORMAL_TERMINATION, keys::LOG_PROC_ABNORMAL_TERMINATION]) {
        ReportedEnds::Bad
    } else {
        ReportedEnds::Deciding
    }
}

/// Enters what has happened to a job into its journal, and announces it.
pub(super) fn enter(cx: &mut Cx<'_>, dvm: &mut Dvm, nspace: &Nspace, what: What) {
    let announced = Announced::of(&what);
    let ranks = what.ranks().cloned().unwrap_or_default();
    let concerned = what.concerned().cloned();
    let Some(number) = dvm.append(cx, nspace, what) else { return };
    let stamp = stamp(dvm, number, cx.now);
    let Some(announced) = announced else { return };
    for event in announced.events(nspace, &ranks, stamp) {
        dvm.interests.raise(cx, event, number, concerned.clone());
    }
}

/// What is announced as it happens. The end of a job has more to report, and is announced when nothing is left of it.
enum Announced {
    JobStart,
    LaunchComplete,
    /// Of each of the ranks, in the same way.
    ProcEnd(ProcEnd),
    Lost,
    Restart,
}

impl Announced {
    fn of(what: &What) -> Option<Announced> {
        match what {
            What::Began { .. } => Some(Announced::JobStart),
            What::Started { whole: true, .. } => Some(Announced::LaunchComplete),
            What::Failed { first, .. } | What::Left { first, .. } => Some(Announced::ProcEnd(first.clone())),
            What::Lost { .. } => Some(Announced::Lost),
            What::Restarted { .. } => Some(Announced::Restart),
            _ => None,
        }
    }

    fn events<'a>(
        self,
        nspace: &'a Nspace,
        ranks: &'a Ranges,
        stamp: Stamp,
    ) -> Box<dyn Iterator<Item = Event> + 'a> {
        let procs = ranks.iter().map(|rank| ProcId::new(nspace, Rank(rank)));
        let of_job = |code| Box::new(std::iter::once(job_event(code, nspace, stamp)));
        match self {
            Announced::JobStart => of_job(Status::EVENT_JOB_START),
            Announced::LaunchComplete => of_job(Status::LAUNCH_COMPLETE),
            Announced::ProcEnd(first) => {
                let end = move |proc| end_events(&ProcEnd { proc, ..first.clone() }, stamp);
                Box::new(procs.flat_map(end))
            }
            Announced::Lost => Box::new(procs.map(move |proc| lost_event(proc, stamp))),
            Announced::Restart => Box::new(procs.map(move |proc| restart_event(nspace, &proc, stamp))),
        }
    }
}

/// Fault-tolerant MPI registers for all events and for no code, and takes each process that an event names for one that failed. Other jobs' MPI aborts
/// at such an event, so only jobs that ask for it get one.
pub(super) fn tell_survivors(cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, ranks: &Ranges) {
    let Some(desc) = dvm.desc(nspace).filter(|desc| desc.survives_failures()) else { return };
    let proc = |rank| ProcId::new(nspace, Rank(rank));
    let Some(source) = ranks.iter().next().map(proc) else { return };
    let info = ranks.iter().map(|rank| Info::new(keys::EVENT_AFFECTED_PROC, proc(rank))).collect();
    let event = Event { code: Status::ERR_PROC_ABORTED, source, range: Range::NAMESPACE, info };
    cx.cast(desc.nodes.clone(), Down::Event { event: Arc::new(event), except: None });
}

/// A job is over. `in_full`: with the whole report, because the DVM ends, too, and cannot be asked for it.
pub(super) fn tell_job_end(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    (end, in_full): (&JobEnd, bool),
    stamp: Stamp,
    concerned: Arc<[Nspace]>,
) {
    let mut event = job_end_event(end, stamp);
    if in_full && end.procs.len() <= MOST_IN_EVENT {
        event.info.push(Info::new(names::END, Value::ByteObject(end.to_bytes().into())));
    }
    dvm.interests.raise(cx, event, stamp.number, Some(concerned));
}

pub(super) fn stamp(dvm: &Dvm, number: u64, at: Time) -> Stamp {
    let seconds = dvm.config.clock.saturating_add(at.since(Time::default())).as_secs();
    Stamp { number, seconds }
}

/// The DVM, which is the session of its jobs, begins or ends.
pub(super) fn tell_session(cx: &mut Cx<'_>, dvm: &Dvm, code: Status) {
    let Ok(session) = Nspace::new(&dvm.config.dvm) else { return };
    let stamp = stamp(dvm, dvm.journals.last(), cx.now);
    let mut event = job_event(code, &session, stamp);
    event.info.push(Info::new(keys::SESSION_ID, SESSION));
    dvm.interests.raise(cx, event, stamp.number, None);
}

/// The line for the user about the end of a process, and the directives of which one asks for it.
pub(super) fn line_about(end: &ProcEnd) -> (&'static [&'static str], String) {
    let how = match end.status {
        Some(ExitStatus::Code(0)) if end.lost_connection => "without finalizing".to_owned(),
        Some(status) => format!("with status {}", status.shell_code()),
        None => "without having run".to_owned(),
    };
    let wanted: &[&str] = match end.is_failure() {
        true => &[keys::LOG_PROC_TERMINATION, keys::LOG_PROC_ABNORMAL_TERMINATION],
        false => &[keys::LOG_PROC_TERMINATION],
    };
    (wanted, format!("rank {} (on {}) has ended {how}", end.proc.rank, end.node))
}

/// Prints a line for the user of a job, if its request asks for one of `wanted`.
pub(super) fn log_for(cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, wanted: &[&str], text: &str) {
    let Some(job) = dvm.jobs.get(nspace) else { return };
    if wanted.iter().any(|key| job.logs.contains(key)) {
        dvm.tell_user_of(cx, &ProcId::all(nspace), &format!("job {nspace}: {text}"));
    }
}

/// The events that announce a moment of a journal entry.
pub(super) fn events_of<'a>(
    dvm: &Dvm,
    journal: &'a Journal,
    entry: &Entry,
    moment: &'a Moment,
) -> Box<dyn Iterator<Item = Event> + 'a> {
    let stamp = stamp(dvm, moment.number, moment.at);
    if let What::Ended { .. } = entry.what() {
        let end = journal::end_of(journal, entry.at(), |node| dvm.nodes.name(node).to_string());
        return Box::new(std::iter::once(job_end_event(&end, stamp)));
    }
    match Announced::of(entry.what()) {
        Some(announced) => announced.events(&journal.desc().nspace, &moment.ranks, stamp),
        None => Box::new(std::iter::empty()),
    }
}

fn end_events(end: &ProcEnd, stamp: Stamp) -> impl Iterator<Item = Event> + use<> {
    let without_sync = end.is_without_sync().then_some(Status::ERR_PROC_TERM_WO_SYNC);
    let proc = end.proc.clone();
    let mut info = about(&proc, stamp);
    if let Some(status) = end.status {
        info.push(exit_code(status.shell_code()));
    }
    let codes = [Status::EVENT_PROC_TERMINATED].into_iter().chain(without_sync);
    codes.map(move |code| announcement(code, proc.clone(), info.clone()))
}

/// How the process has ended is unknown.
fn lost_event(proc: ProcId, stamp: Stamp) -> Event {
    let info = about(&proc, stamp);
    announcement(Status::EVENT_PROC_TERMINATED, proc, info)
}

/// The source is the whole job: the source of an event is not notified, and the rank may want the event.
fn restart_event(nspace: &Nspace, proc: &ProcId, stamp: Stamp) -> Event {
    announcement(Status::ERR_PROC_RESTART, ProcId::all(nspace), about(proc, stamp))
}

fn job_event(code: Status, nspace: &Nspace, stamp: Stamp) -> Event {
    let whole = ProcId::all(nspace);
    let info = about(&whole, stamp);
    announcement(code, whole, info)
}

fn job_end_event(end: &JobEnd, stamp: Stamp) -> Event {
    let whole = ProcId::all(&end.nspace);
    let mut info = about(&whole, stamp);
    info.push(Info::new(keys::JOB_TERM_STATUS, end.verdict.status()));
    info.push(exit_code(end.exit_code));
    info.extend(end.first.clone().map(|proc| Info::new(keys::PROCID, proc)));
    info.extend(about_verdict(&end.verdict, LONGEST_TEXT));
    info.extend(end.tool.as_ref().map(about_tool));
    info.push(Info::new(names::AGE, end.duration.as_millis() as u64));
    let mut text = end.lines().join("\n");
    if !text.is_empty() {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        info.push(Info::new(keys::EVENT_TEXT_MESSAGE, text));
    }
    announcement(Status::EVENT_JOB_END, whole, info)
}

/// The attributes that all of these events have.
fn about(proc: &ProcId, stamp: Stamp) -> Vec<Info> {
    vec![
        Info::new(keys::EVENT_AFFECTED_PROC, proc.clone()),
        Info::new(keys::NSPACE, proc.nspace.as_str()),
        Info::new(keys::EVENT_TIMESTAMP, Value::Time(stamp.seconds)),
        Info::new(names::NUMBER, stamp.number),
    ]
}

/// Session numbers are for hosts with several sessions; a DVM is one.
pub(super) const SESSION: u32 = 0;
/// With more processes, a report does not fit into an event.
const MOST_IN_EVENT: usize = 4096;
/// The longest text in an event: programs may abort with messages of any length.
const LONGEST_TEXT: usize = 4096;
