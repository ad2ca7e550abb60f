//! Jobs that wait for a debugger: which ranks wait, when all of them are ready, and when they are released.
//!
//! A process is held by its library in init, or by the program itself. Each finds the directive among its job's data, reports
//! that it has stopped (`PMIX_READY_FOR_DEBUG`) and goes on at `PMIX_DEBUGGER_RELEASE`, which arrives as an ordinary event. The
//! root counts, and notifies the job's spawner when all ranks have stopped that will. Nothing here stops a process at exec: a spawn that
//! requests it is refused.
//!
//! A stop is an operation that lasts from the start of the job until no rank is held, and begins again when a rank stops there later. A release
//! event raised for one node only does not reach the root; instead the root notices that the processes there deregister their handlers for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use phalanx_core::{Event, Time};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{App, Info, InfoList, Kval, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::{Down, procs};
use crate::ranges::Ranges;
use crate::root::answer::Asker;
use crate::root::consequence::Consequence;
use crate::root::dvm::Dvm;
use crate::root::event::LATEST;
use crate::root::jobs::Jobs;
use crate::root::journal::What;
use crate::root::kind::{Explained, Kind};
use crate::root::operations::Operations;
use crate::root::turn::{Cx, ENOUGH};

/// The stops, in the order in which a process comes to them.
pub(crate) const ATTRIBUTES: &[&str] = &[StopPoint::Init.key(), StopPoint::Program.key()];

/// Ranks of a job that are to wait for a debugger at the same place.
#[derive(Debug)]
pub(super) struct Stop {
    nspace: Nspace,
    place: StopPoint,
    /// Ranks that have not reached the stop.
    missing: Ranges,
    /// Ranks that wait at the stop.
    held: Ranges,
    /// Ranks that were released before they reached the stop, and the time of the latest release.
    freed: (Time, Ranges),
    is_reached: bool,
    /// The job's spawner was notified that all ranks have stopped.
    is_reported: bool,
    /// The breakpoint that the last rank to stop has named.
    at: Option<Info>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopPoint {
    Init,
    Program,
}

impl StopPoint {
    /// In the order in which a process comes to them.
    const ALL: [StopPoint; 2] = [StopPoint::Init, StopPoint::Program];

    const fn key(self) -> &'static str {
        match self {
            StopPoint::Init => keys::DEBUG_STOP_IN_INIT,
            StopPoint::Program => keys::DEBUG_STOP_IN_APP,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            StopPoint::Init => "in init",
            StopPoint::Program => "in the program",
        }
    }
}

impl Stop {
    fn new(nspace: &Nspace, place: StopPoint, missing: Ranges) -> Stop {
        Stop {
            nspace: nspace.clone(),
            place,
            missing,
            held: Ranges::new(),
            freed: (Time(0), Ranges::new()),
            is_reached: false,
            is_reported: false,
            at: None,
        }
    }

    /// A rank has reached the stop.
    fn reach(&mut self, now: Time, rank: u32, at: Option<Info>) {
        let (since, freed) = &mut self.freed;
        let goes_on = freed.contains(rank) && now.since(*since) <= LATEST;
        freed.remove(rank);
        // A rank that comes again is held again.
        self.is_reported &= self.missing.contains(rank);
        self.missing.remove(rank);
        if !goes_on {
            self.held.insert(rank);
        }
        self.is_reached = true;
        self.at = at;
    }

    /// Releases the held ranks, and returns the others.
    fn release(&mut self, mut ranks: Ranges) -> Ranges {
        ranks.take(&self.held.take(&ranks));
        ranks
    }

    /// They will not have to wait when they come. What is left of them.
    fn free(&mut self, now: Time, mut ranks: Ranges) -> Ranges {
        let early = self.missing.and(&ranks);
        if !early.is_empty() {
            self.freed.0 = now;
            self.freed.1.add(&early);
        }
        ranks.take(&early);
        ranks
    }

    fn is_over(&self) -> bool {
        self.missing.is_empty() && self.held.is_empty()
    }
}

impl Kind for Stop {
    fn name(&self) -> &'static str {
        "stop for a debugger"
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.nspace == *nspace
    }

    fn calls(&self) -> Vec<String> {
        vec![self.nspace.to_string()]
    }

    fn is_of_askers(&self) -> bool {
        false
    }

    fn explain(&self, _: &[Asker], jobs: &Jobs) -> Explained {
        let Stop { nspace, place, held, missing, .. } = self;
        let held = if held.is_empty() { String::new() } else { format!(":{held}") };
        let parent = jobs.get(nspace).and_then(|job| job.desc.parent.clone());
        Explained {
            subject: format!("{nspace}{held} {}", place.in_words()),
            waiting: Some(parent.into_iter().collect()),
            missing: missing.iter().take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect(),
            unblocked_by: match missing.is_empty() {
                true => "the debugger letting them go (PMIX_DEBUGGER_RELEASE)",
                false => "the named processes coming to where they are to stop",
            },
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

/// The breakpoint of a library that waits in init.
const IN_INIT: &str = "pmix-init";

/// Asks the daemons, which know the job now, to report ranks that end or finalize before their stop.
pub(super) fn begin_stops(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &mut Operations,
    nspace: &Nspace,
    job: &[Info],
) {
    let Some(size) = dvm.desc(nspace).map(|desc| desc.size) else { return };
    for place in StopPoint::ALL {
        let ranks = job.find(place.key()).map(|value| stopped(value, size)).unwrap_or_default();
        if !ranks.is_empty() {
            operations.begin(cx, None, None, Stop::new(nspace, place, ranks.clone()));
            watch_stopped(cx, dvm, nspace, ranks);
        }
    }
}

fn watch_stopped(cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, ranks: Ranges) {
    let Some(to) = dvm.desc(nspace).map(|desc| desc.nodes_of(&ranks)) else { return };
    cx.cast(to, Down::Watch { nspace: nspace.clone(), ranks });
}

/// A process reports that it has stopped for a debugger.
pub(super) fn ready_for_debug(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    ready: &Event,
) -> Vec<Consequence> {
    let ProcId { nspace, rank } = &ready.source;
    let at = ready.info.iter().find(|info| info.key == keys::BREAKPOINT);
    let is_in_init = at.is_some_and(|at| at.value.as_str() == Some(IN_INIT));
    let Some(job) = dvm.jobs.get(nspace).filter(|job| !job.journal.has_exited()) else { return Vec::new() };
    let size = job.desc.size;
    let in_program = job.desc.job.iter().find(|kval| kval.key == *StopPoint::Program.key());
    let is_to_stop = in_program.is_some_and(|kval| stopped(&kval.value, size).contains(rank.0));
    let stops = || {
        let called = operations.called::<Stop>(nspace.as_str());
        called.filter_map(|number| operations.get::<Stop>(number))
    };
    let awaited = stops().find(|stop| stop.missing.contains(rank.0));
    let awaited = awaited.map(|stop| stop.place);
    let place = match is_in_init {
        true => Some(StopPoint::Init),
        false => awaited.or(is_to_stop.then_some(StopPoint::Program)),
    };
    // A rank may come again: it was started again, or is several programs, one behind the other.
    if let Some(place) = place
        && !stops().any(|stop| stop.place == place)
    {
        operations.begin(cx, None, None, Stop::new(nspace, place, Ranges::new()));
    }
    if place.is_some() && awaited.is_none() {
        watch_stopped(cx, dvm, nspace, Ranges::single(rank.0));
    }
    let now = cx.now;
    change_stops(cx, dvm, operations, nspace, |stop| match Some(stop.place) == place {
        true => stop.reach(now, rank.0, at.cloned()),
        // It has gone on from there.
        false => stop.held.remove(rank.0),
    })
}

/// A debugger releases processes.
pub(super) fn released(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    release: &Event,
) -> Vec<Consequence> {
    let mut then = Vec::new();
    let named: Option<Vec<ProcId>> = match release.range {
        Range::CUSTOM => Some(procs(release.info.find(keys::EVENT_CUSTOM_RANGE)).collect()),
        Range::NAMESPACE => Some(vec![ProcId::all(&release.source.nspace)]),
        _ => None,
    };
    let is_named = named.is_some();
    let freed = named.unwrap_or_else(|| dvm.jobs.keys().map(ProcId::all).collect());
    let now = cx.now;
    for ProcId { nspace, rank } in freed {
        let Some(job) = dvm.jobs.get(&nspace) else { continue };
        let mut ranks = if rank == Rank::WILDCARD { job.desc.ranks() } else { Ranges::single(rank.0) };
        then.extend(change_stops(cx, dvm, operations, &nspace, |stop| {
            ranks = stop.release(std::mem::take(&mut ranks));
            // Servers keep a release for the processes that it names.
            if is_named {
                ranks = stop.free(now, std::mem::take(&mut ranks));
            }
        }));
    }
    then
}

/// No process at this daemon waits for a debugger any more.
pub(super) fn released_on(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    node: NodeId,
) -> Vec<Consequence> {
    let mut then = Vec::new();
    let stopped: BTreeSet<Nspace> = operations.of::<Stop>().map(|(_, stop)| stop.nspace.clone()).collect();
    for nspace in stopped {
        let here = dvm.desc(&nspace).map(|desc| desc.ranks_on(node)).unwrap_or_default();
        let release = |stop: &mut Stop| drop(stop.release(here.clone()));
        then.extend(change_stops(cx, dvm, operations, &nspace, release));
    }
    then
}

/// These ranks have ended or finalized and will not reach a stop.
pub(super) fn stop_without(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    nspace: &Nspace,
    gone: &Ranges,
) -> Vec<Consequence> {
    let Some(job) = dvm.jobs.get(nspace) else { return Vec::new() };
    // Their successors come.
    let gone: Ranges = gone.iter().filter(|rank| !job.restarting.contains(*rank)).collect();
    change_stops(cx, dvm, operations, nspace, |stop| {
        stop.missing.take(&gone);
        stop.held.take(&gone);
    })
}

/// The successors of these processes may end before their stop.
pub(super) fn watch_again(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    operations: &Operations,
    nspace: &Nspace,
    ranks: &Ranges,
) {
    let stops = operations.called::<Stop>(nspace.as_str());
    let missing: Ranges = stops
        .filter_map(|number| operations.get::<Stop>(number))
        .flat_map(|stop| stop.missing.and(ranks).iter().collect::<Vec<_>>())
        .collect();
    if !missing.is_empty() {
        watch_stopped(cx, dvm, nspace, missing);
    }
}

/// These are started again, and come anew to where they are to stop.
pub(super) fn stop_again(dvm: &Dvm, operations: &mut Operations, nspace: &Nspace, ranks: &Ranges) {
    let Some(job) = dvm.jobs.get(nspace) else { return };
    for (_, stop) in operations.of_mut::<Stop>().filter(|(_, stop)| stop.nspace == *nspace) {
        let stated = job.desc.job.iter().find(|kval| kval.key == *stop.place.key());
        let again = stated.map(|kval| stopped(&kval.value, job.desc.size).and(ranks)).unwrap_or_default();
        stop.held.take(&again);
        stop.missing.add(&again);
        stop.is_reported &= again.is_empty();
    }
}

/// The job is over.
pub(super) fn end_stops_of(
    cx: &mut Cx<'_>,
    operations: &mut Operations,
    nspace: &Nspace,
) -> Vec<Consequence> {
    let stops: Vec<u64> = operations.called::<Stop>(nspace.as_str()).collect();
    let end = |number| operations.finish(cx, number, Status::ERR_JOB_TERMINATED);
    stops.into_iter().flat_map(end).collect()
}

fn change_stops(
    cx: &mut Cx<'_>,
    dvm: &mut Dvm,
    operations: &mut Operations,
    nspace: &Nspace,
    mut change: impl FnMut(&mut Stop),
) -> Vec<Consequence> {
    let mut then = Vec::new();
    for number in operations.called::<Stop>(nspace.as_str()).collect::<Vec<_>>() {
        let Some(stop) = operations.get_mut::<Stop>(number) else { continue };
        change(stop);
        let is_over = stop.is_over();
        // Also if all have ended before: the spawner may wait for nothing else while other ranks go on.
        if stop.missing.is_empty() && !std::mem::replace(&mut stop.is_reported, true) {
            let (at, is_reached) = (stop.at.take(), stop.is_reached);
            if is_reached {
                dvm.append(cx, nspace, What::Stopped);
            }
            tell_of_stop(cx, dvm, nspace, at);
        }
        if is_over {
            then.extend(operations.finish(cx, number, Status::SUCCESS));
        }
    }
    then
}

/// Notifies the job's spawner that all ranks that are to stop have stopped or ended. `at`: none if all have ended.
fn tell_of_stop(cx: &mut Cx<'_>, dvm: &Dvm, nspace: &Nspace, at: Option<Info>) {
    let Some(parent) = dvm.desc(nspace).and_then(|desc| desc.parent.clone()) else { return };
    let mut info = vec![
        Info::new(keys::EVENT_CUSTOM_RANGE, parent.clone()),
        Info::new(keys::EVENT_NON_DEFAULT, true),
        Info::new(keys::NSPACE, nspace.as_str()),
    ];
    info.extend(at);
    let (code, source) = (Status::READY_FOR_DEBUG, ProcId::all(nspace));
    let event = Arc::new(Event { code, source, range: Range::CUSTOM, info });
    let to = dvm.nodes_of_procs(std::iter::once(parent));
    cx.cast(to, Down::Event { event, except: None });
}
