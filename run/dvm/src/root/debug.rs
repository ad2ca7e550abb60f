//! Jobs that wait for a debugger: which ranks do, and when all of them are ready for it.
//!
//! What holds a process is its library in init, or the program itself: each finds the directive among its job's data, says when it
//! has come there (`PMIX_READY_FOR_DEBUG`) and goes on with `PMIX_DEBUGGER_RELEASE`, which reaches it as events do. The root
//! counts, and tells whoever has spawned the job once. Nothing here stops a process at exec: a spawn that wants that is refused.

use std::collections::VecDeque;
use std::sync::Arc;

use phalanx_core::{Event, Waiting};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::{App, Info, InfoList, Kval, Nspace, ProcId, Value};

use crate::msg::Down;
use crate::ranges::Ranges;
use crate::root::journal::What;
use crate::root::{Cx, ENOUGH, Root};

/// The stops, in the order in which a process comes to them.
pub(crate) const ATTRIBUTES: &[&str] = &[keys::DEBUG_STOP_IN_INIT, keys::DEBUG_STOP_IN_APP];

/// The stops to come.
#[derive(Debug, Default)]
pub(super) struct Stops(VecDeque<Stop>);

#[derive(Debug)]
struct Stop {
    /// Those who have not come to it.
    missing: Ranges,
    is_reached: bool,
    /// What the last one who came says of it.
    at: Option<Info>,
}

impl Stops {
    pub(super) fn new(job: &[Info], size: u32) -> Stops {
        let ranks = ATTRIBUTES.iter().filter_map(|key| job.find(key).map(|value| stopped(value, size)));
        let stop = |missing| Stop { missing, is_reached: false, at: None };
        Stops(ranks.filter(|ranks| !ranks.is_empty()).map(stop).collect())
    }

    /// The next stop, if nobody is missing there any more.
    fn pop(&mut self) -> Option<Stop> {
        self.0.pop_front_if(|stop| stop.missing.is_empty())
    }
}

/// What the processes find among their job's data.
pub(super) fn job_values(job: &[Info]) -> impl Iterator<Item = Kval> {
    ATTRIBUTES.iter().filter_map(|key| Some(Kval::new(key, job.find(key)?.clone())))
}

/// The stop that is wanted and that nothing here can make.
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

/// True for all, or ranks.
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
    /// A process says that a debugger may come.
    pub(super) fn ready_for_debug(&mut self, cx: &mut Cx<'_>, ready: &Event) {
        let ProcId { nspace, rank } = &ready.source;
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let Some(stop) = job.stops.0.front_mut() else { return };
        stop.missing.remove(rank.0);
        stop.is_reached = true;
        stop.at = ready.info.iter().find(|info| info.key == keys::BREAKPOINT).cloned();
        self.tell_of_stops(cx, nspace);
    }

    /// These have died, and come to no stop any more.
    pub(super) fn stop_without(&mut self, cx: &mut Cx<'_>, nspace: &Nspace, dead: &Ranges) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        for stop in &mut job.stops.0 {
            dead.iter().for_each(|rank| stop.missing.remove(rank));
        }
        self.tell_of_stops(cx, nspace);
    }

    /// Tells whoever has spawned the job when all who are to stop have. What nobody has come to is no stop.
    fn tell_of_stops(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        while let Some(job) = self.jobs.get_mut(nspace)
            && let Some(stop) = job.stops.pop()
        {
            if stop.is_reached {
                self.journals.append(&mut job.journal, cx.now, What::Stopped);
            }
            let Some(parent) = job.desc.parent.clone().filter(|_| stop.is_reached) else { continue };
            let mut info = vec![
                Info::new(keys::EVENT_CUSTOM_RANGE, parent.clone()),
                Info::new(keys::EVENT_NON_DEFAULT, true),
                Info::new(keys::NSPACE, nspace.as_str()),
            ];
            info.extend(stop.at);
            let (code, source) = (Status::READY_FOR_DEBUG, ProcId::all(nspace));
            let event = Arc::new(Event { code, source, range: Range::CUSTOM, info });
            let to = self.nodes_of_procs(std::iter::once(parent));
            cx.cast(to, Down::Event { event, except: None });
        }
    }

    pub(super) fn explain_stops(&self) -> Vec<Waiting> {
        let jobs = self.jobs.values();
        let waiting = jobs.filter_map(|job| {
            let missing = &job.stops.0.front()?.missing;
            Some(Waiting {
                operation: "stop for a debugger",
                subject: job.desc.nspace.to_string(),
                asked_by: job.desc.parent.iter().cloned().collect(),
                missing: missing
                    .iter()
                    .take(ENOUGH)
                    .map(|rank| ProcId::new(&job.desc.nspace, Rank(rank)))
                    .collect(),
                since: job.journal.since(),
                deadline: None,
                unblocked_by: "the named processes coming to where they are to stop",
            })
        });
        waiting.collect()
    }
}
