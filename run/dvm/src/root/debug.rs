//! Jobs that wait for a debugger: which ranks wait, when all of them are ready, and when they are released.
//!
//! A process is held by its library in init, or by the program itself. Each finds the directive among its job's data, reports
//! that it has stopped (`PMIX_READY_FOR_DEBUG`) and goes on at `PMIX_DEBUGGER_RELEASE`, which arrives as an ordinary event. The
//! root counts, and notifies the job's spawner once. Nothing here stops a process at exec: a spawn that requests it is refused.
//!
//! A stop is an operation that lasts from the placement of the job until no rank is held. A release event raised for one node
//! only does not reach the root; instead the root notices that the processes there deregister their handlers for it.

use std::sync::Arc;

use phalanx_core::Event;
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{App, Info, InfoList, Kval, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::journal::What;
use crate::root::operations::Asked;
use crate::root::{Cx, ENOUGH, Root};

/// The stops, in the order in which a process comes to them.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::DEBUG_STOP_IN_INIT, keys::DEBUG_STOP_IN_APP];

/// Ranks of a job that are to wait for a debugger at the same place.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) nspace: Nspace,
    place: &'static str,
    /// Ranks that have not reached the stop.
    missing: Ranges,
    /// Ranks that wait at the stop.
    held: Ranges,
    is_reached: bool,
    /// The job's spawner was notified that all ranks have stopped.
    is_told: bool,
    /// The breakpoint that the last rank to stop has named.
    at: Option<Info>,
}

impl Stop {
    fn all_of<'a>(nspace: &'a Nspace, job: &'a [Info], size: u32) -> impl Iterator<Item = Stop> + 'a {
        let ranks = ATTRIBUTES.iter().filter_map(move |key| Some((*key, stopped(job.find(key)?, size))));
        ranks.filter(|(_, ranks)| !ranks.is_empty()).map(|(key, missing)| Stop {
            nspace: nspace.clone(),
            place: if key == keys::DEBUG_STOP_IN_INIT { "in init" } else { "in the program" },
            missing,
            held: Ranges::new(),
            is_reached: false,
            is_told: false,
            at: None,
        })
    }

    fn is_over(&self) -> bool {
        self.missing.is_empty() && self.held.is_empty()
    }

    pub(super) fn subject(&self) -> String {
        let Stop { nspace, place, held, .. } = self;
        match held.is_empty() {
            true => format!("{nspace} {place}"),
            false => format!("{nspace}:{held} {place}"),
        }
    }

    pub(super) fn missing(&self) -> Vec<ProcId> {
        self.missing.iter().take(ENOUGH).map(|rank| ProcId::new(&self.nspace, Rank(rank))).collect()
    }

    pub(super) fn unblocked_by(&self) -> &'static str {
        match self.missing.is_empty() {
            true => "the debugger letting them go (PMIX_DEBUGGER_RELEASE)",
            false => "the named processes coming to where they are to stop",
        }
    }
}

/// The directives to put into the job's data.
pub(super) fn job_values(job: &[Info]) -> impl Iterator<Item = Kval> {
    ATTRIBUTES.iter().filter_map(|key| Some(Kval::new(key, job.find(key)?.clone())))
}

/// A requested stop that cannot be made, with the reason.
pub(super) fn impossible(job: &[Info], apps: &[App]) -> Option<String> {
    let is_wanted = |info: &&Info, key: &str| info.key == key && !stopped(&info.value, u32::MAX).is_empty();
    if job
        .iter()
        .chain(apps.iter().flat_map(|app| &app.info))
        .any(|info| is_wanted(&info, keys::DEBUG_STOP_ON_EXEC))
    {
        return Some("PMIX_DEBUG_STOP_ON_EXEC: processes cannot be stopped there".to_owned());
    }
    let of_one = |info: &&Info| ATTRIBUTES.iter().any(|key| is_wanted(info, key));
    let one = apps.iter().flat_map(|app| &app.info).find(of_one)?;
    Some(format!("{}: stops are for the whole job, or for ranks of it", one.key))
}

/// Checks that the job has the ranks that are to stop.
pub(super) fn check_ranks(job: &[Info], size: usize) -> Result<(), String> {
    for key in ATTRIBUTES {
        let wanted = job.find(key).map(|value| stopped(value, u32::MAX)).unwrap_or_default();
        let is_beyond = |rank: &u32| usize::try_from(*rank).is_ok_and(|rank| rank >= size);
        if let Some(rank) = wanted.iter().find(is_beyond).filter(|_| !wanted.contains(u32::MAX - 1)) {
            let last = size.saturating_sub(1);
            return Err(format!("{key}: rank {rank} is to stop, and the job's ranks are 0 to {last}"));
        }
    }
    Ok(())
}

/// The value is true for all ranks, or lists ranks.
fn stopped(value: &Value, size: u32) -> Ranges {
    match value {
        Value::Rank(Rank::WILDCARD) => Ranges::first(size),
        Value::Rank(rank) if rank.0 < size => Ranges::single(rank.0),
        Value::Rank(_) => Ranges::new(),
        Value::DataArray(array) => array.items.iter().fold(Ranges::new(), |mut all, one| {
            all.add(&stopped(one, size));
            all
        }),
        value if value.is_true() => Ranges::first(size),
        _ => Ranges::new(),
    }
}

impl Root {
    /// The job has been placed.
    pub(super) fn begin_stops(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, job: &[Info]) {
        let Some(size) = self.desc(nspace).map(|desc| desc.size) else { return };
        for stop in Stop::all_of(nspace, job, size) {
            let number = self.begin_operation(cx, None, None, Asked::Stop(stop));
            if let Some(job) = self.jobs.get_mut(nspace) {
                job.stops.extend(number);
            }
        }
    }

    /// A process reports that it has stopped for a debugger.
    pub(super) fn ready_for_debug(&mut self, cx: &mut Cx<'_>, ready: &Event) {
        let ProcId { nspace, rank } = &ready.source;
        let mut came = false;
        self.change_stops(cx, nspace, |stop| {
            if came || !stop.missing.contains(rank.0) {
                // It has left the stop before.
                return stop.held.remove(rank.0);
            }
            came = true;
            stop.missing.remove(rank.0);
            stop.held.insert(rank.0);
            stop.is_reached = true;
            stop.at = ready.info.iter().find(|info| info.key == keys::BREAKPOINT).cloned();
        });
    }

    /// A debugger releases processes.
    pub(super) fn released(&mut self, cx: &mut Cx<'_>, release: &Event) {
        let mut freed: Vec<ProcId> = match release.range {
            Range::CUSTOM => procs(release.info.find(keys::EVENT_CUSTOM_RANGE)).collect(),
            Range::NAMESPACE => vec![ProcId::all(&release.source.nspace)],
            _ => self.jobs.keys().map(ProcId::all).collect(),
        };
        freed.retain(|proc| self.jobs.get(&proc.nspace).is_some_and(|job| !job.stops.is_empty()));
        for ProcId { nspace, rank } in freed {
            self.change_stops(cx, &nspace, |stop| match rank {
                Rank::WILDCARD => stop.held = Ranges::new(),
                rank => stop.held.remove(rank.0),
            });
        }
    }

    /// No process at this daemon waits for a debugger any more.
    pub(super) fn released_on(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let stopped = self.jobs.iter().filter(|(_, job)| !job.stops.is_empty());
        let here = stopped.map(|(nspace, job)| (nspace.clone(), job.desc.ranks_on(node)));
        for (nspace, here) in here.collect::<Vec<_>>() {
            self.change_stops(cx, &nspace, |stop| here.iter().for_each(|rank| stop.held.remove(rank)));
        }
    }

    /// These ranks have died and will not reach a stop.
    pub(super) fn stop_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, dead: &Ranges) {
        self.change_stops(cx, nspace, |stop| {
            for rank in dead.iter() {
                stop.missing.remove(rank);
                stop.held.remove(rank);
            }
        });
    }

    /// The job is over.
    pub(super) fn end_stops_of(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let is_of_job = |asked: &Asked| matches!(asked, Asked::Stop(stop) if stop.nspace == *nspace);
        for number in self.operations.numbers(|one| is_of_job(&one.asked)) {
            if let Some(operation) = self.end_operation(number) {
                self.answer_operation(cx, operation, Status::ERR_JOB_TERMINATED);
            }
        }
    }

    pub(super) fn forget_stop(&mut self, number: u64, nspace: &Nspace) {
        if let Some(job) = self.jobs.get_mut(nspace) {
            job.stops.retain(|stop| *stop != number);
        }
    }

    fn change_stops(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, mut change: impl FnMut(&mut Stop)) {
        let stops = self.jobs.get(nspace).map(|job| job.stops.clone()).unwrap_or_default();
        for number in stops {
            let Some(Asked::Stop(stop)) = self.operations.get_mut(number).map(|one| &mut one.asked) else {
                continue;
            };
            change(stop);
            let is_over = stop.is_over();
            // Do not report a stop that no rank has reached.
            if stop.missing.is_empty() && stop.is_reached && !std::mem::replace(&mut stop.is_told, true) {
                let at = stop.at.take();
                self.tell_of_stop(cx, nspace, at);
            }
            if is_over && let Some(operation) = self.end_operation(number) {
                self.answer_operation(cx, operation, Status::SUCCESS);
            }
        }
    }

    /// Notifies the job's spawner that all ranks that are to stop have stopped.
    fn tell_of_stop(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, at: Option<Info>) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        self.journals.append(&mut job.journal, cx.now, What::Stopped);
        let Some(parent) = job.desc.parent.clone() else { return };
        let mut info = vec![
            Info::new(keys::EVENT_CUSTOM_RANGE, parent.clone()),
            Info::new(keys::EVENT_NON_DEFAULT, true),
            Info::new(keys::NSPACE, nspace.as_str()),
        ];
        info.extend(at);
        let (code, source) = (Status::READY_FOR_DEBUG, ProcId::all(nspace));
        let event = Arc::new(Event { code, source, range: Range::CUSTOM, info });
        let to = self.nodes_of_procs(std::iter::once(parent));
        cx.cast(to, Down::Event { event, except: None });
    }
}
