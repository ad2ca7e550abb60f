//! Slots that come back: of ranks that have ended while their job goes on, and of those that are about to end.
//!
//! A spawn that does not fit, but would if processes that are ending had ended, waits for that. Daemons report ends with a delay
//! (`local/freed.rs`), so that the first step is to ask them. Processes are ending if they have finalized, if their job is being
//! ended, or if the job that has spawned theirs has disconnected from it: a pool of workers is replaced in this way. Other processes
//! may have ended a moment ago, before their daemon notices, so a spawn without hope waits a little, too.

use std::time::Duration;

use phalanx_core::{HostReply, Time};
use phalanx_spec::Status;
use phalanx_wire::{Nspace, Text};

use crate::job::JobRequest;
use crate::msg::{Members, Task, each};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::dvm::Dvm;
use crate::root::jobs::{Jobs, RootJob};
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::placing;
use crate::root::targets::named;
use crate::root::turn::{Cx, ENOUGH};

/// A spawn that waits for slots.
#[derive(Debug)]
pub(super) struct Cramped {
    pub(super) job: Box<JobRequest>,
    /// When the spawn was requested.
    pub(super) submitted: Time,
    /// The spawn's own time limit.
    pub(super) until: Option<Time>,
    /// The most that it waits.
    limit: Time,
    /// The daemons have reported all ends that they know.
    has_asked: bool,
    /// How long it waits for ends that daemons did not know by then.
    patient_until: Option<Time>,
}

impl Kind for Cramped {
    fn name(&self) -> &'static str {
        "spawn"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Spawned(Err(status))
    }

    fn is_done(&self, is_idle: bool) -> bool {
        is_idle && !self.has_asked
    }

    fn has_next_step(&mut self) -> bool {
        !std::mem::replace(&mut self.has_asked, true)
    }

    fn explain(&self, _: &[Asker], jobs: &Jobs) -> Explained {
        let programs = self.job.apps.iter().filter_map(|app| app.argv.first()).map(Text::to_string_lossy);
        let missing: Vec<_> = each(&ending(jobs)).take(ENOUGH).collect();
        let unblocked_by = match missing.is_empty() {
            false => "the end of the named processes, which are ending: then their slots are free",
            true => "slots of processes that have ended, if a daemon is about to report some",
        };
        let subject = programs.collect::<Vec<_>>().join(" ");
        Explained { subject, missing, unblocked_by, ..Explained::default() }
    }
}

/// The processes that will probably end soon.
fn ending(jobs: &Jobs) -> Vec<Members> {
    let of_job = |job: &RootJob| {
        let ranks = (0..job.desc.size).filter(|rank| job.has_slot(*rank) && job.is_ending(*rank));
        Members { nspace: job.desc.nspace.clone(), ranks: ranks.collect() }
    };
    jobs.values().map(of_job).filter(|members| !members.ranks.is_empty()).collect()
}

/// Whether the process that has requested the job goes on.
pub(super) fn has_requester(dvm: &Dvm, job: &JobRequest) -> bool {
    let Some(by) = &job.parent else { return false };
    match dvm.jobs.get(&by.nspace) {
        Some(job) => job.journal.verdict().is_none() && !job.ended.contains(by.rank.0),
        None => dvm.is_tool(by),
    }
}

/// Whether the job would fit if no other were there.
pub(super) fn may_come(dvm: &Dvm, job: &JobRequest) -> bool {
    placing::place(dvm, job).is_err() && placing::fits_among(dvm, job, |_, _| false)
}

/// Makes a spawn that does not fit wait, at first for what the daemons know of ends.
pub(super) fn wait(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    asker: Asker,
    (submitted, until): (Time, Option<Time>),
    job: &JobRequest,
) {
    let limit = cx.now.after(LIMIT);
    let limit = until.map_or(limit, |until| until.min(limit));
    let job = Box::new(job.clone());
    let cramped = Cramped { job, submitted, until, limit, has_asked: false, patient_until: None };
    let Some(number) = operations.begin(cx, Some(asker), Some(limit), cramped) else { return };
    let mut daemons = Ranges::new();
    dvm.jobs.values().for_each(|job| daemons.add(&job.desc.nodes));
    operations.give_task(cx, number, daemons, Task::TellFreed { limit: LIMIT });
}

/// How long the spawn still waits. `None`: it is to be launched or refused now, because it fits, because nothing that is ending
/// or may have ended would make it fit, or because its requester has ended.
pub(super) fn waits_until(now: Time, dvm: &Dvm, cramped: &mut Cramped) -> Option<Time> {
    let mut until = cramped.limit;
    if cramped.has_asked {
        let patient_until = *cramped.patient_until.get_or_insert(now.after(PATIENCE));
        if !has_requester(dvm, &cramped.job) || placing::place(dvm, &cramped.job).is_ok() {
            return None;
        }
        let stays = |job: &RootJob, rank: u32| job.has_slot(rank) && !job.is_ending(rank);
        if !placing::fits_among(dvm, &cramped.job, stays) {
            until = until.min(patient_until);
        }
    }
    (now < until).then_some(until)
}

/// The spawns that wait for slots, the oldest first.
pub(super) fn waiting(operations: &Operations) -> Vec<u64> {
    operations.of::<Cramped>().map(|(number, _)| number).collect()
}

/// A daemon reports processes that have ended, or have finalized.
pub(super) fn freed(dvm: &mut Dvm, nspace: &Nspace, ended: &Ranges, leaving: &Ranges) {
    if let Some(job) = dvm.jobs.get_mut(nspace) {
        // A report about ranks that are being started again was sent before.
        let stays = |ranks: &Ranges| ranks.iter().filter(|rank| !job.restarting.contains(*rank)).collect();
        let (ended, leaving): (Ranges, Ranges) = (stays(ended), stays(leaving));
        job.ended.add(&ended);
        job.leaving.add(&leaving);
    }
}

/// The reason for the refusal of a spawn that has waited.
pub(super) fn in_vain(jobs: &Jobs, error: &str, waited: Duration) -> String {
    let (error, hint) = error.split_once('\n').map_or((error, None), |(error, hint)| (error, Some(hint)));
    let ending = ending(jobs);
    let waited = match (waited.as_secs(), &*ending) {
        (0, _) => String::new(),
        (waited, []) => format!(", after {waited} s of waiting for processes that were ending"),
        (waited, some) => format!(", after {waited} s of waiting for the end of {}", named(some)),
    };
    let hint = hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("{error}{waited}{hint}")
}

/// How long after its end a process may be unknown to its daemon.
const PATIENCE: Duration = Duration::from_millis(500);
/// A spawn waits no longer than this for processes that are ending. Those that do not end when asked politely are killed
/// earlier (`Limits::kill_grace`).
const LIMIT: Duration = Duration::from_secs(10);
