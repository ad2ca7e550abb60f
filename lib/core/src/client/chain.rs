//! Event handlers of this process: their order, and the chains under way.
//!
//! One event runs through its handlers one after the other: the one registered as first, those of this code alone, those of
//! several codes, the default ones, the one registered as last. Within a category a new handler goes to the front unless its
//! directives place it elsewhere. Each handler is a delivery that the program completes; its results are passed on to the
//! next.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::{Info, InfoList, ProcId, Value};

use super::call::Verdict;
use crate::explain::Waiting;
use crate::host::Event;
use crate::machine::{DeliveryId, HandlerId, Time};

/// A registered callback.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) id: HandlerId,
    /// Empty: all codes.
    pub(super) codes: Vec<Status>,
    pub(super) oneshot: bool,
    /// Handles only events of this process; not registered with the server.
    pub(super) stays_here: bool,
    name: Option<String>,
    object: Option<Value>,
    place: Position,
    range: Range,
    sources: Vec<ProcId>,
    affected: Vec<ProcId>,
}

/// The requested place of a handler.
#[derive(Clone, Debug, PartialEq)]
enum Position {
    First,
    FirstInCategory,
    Front,
    Before(String),
    After(String),
    Back,
    LastInCategory,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Category {
    First,
    Single,
    Multi,
    Default,
    Last,
}

impl Handler {
    pub(super) fn new(id: HandlerId, codes: Vec<Status>, info: &[Info]) -> Handler {
        let range = match info.find(keys::RANGE) {
            Some(Value::Range(range)) => *range,
            _ => Range::UNDEF,
        };
        let text = |key| info.find(key).and_then(Value::as_str).map(str::to_owned);
        Handler {
            id,
            codes,
            oneshot: info.is_set(keys::EVENT_ONESHOT),
            stays_here: range == Range::PROC_LOCAL,
            name: text(keys::EVENT_HDLR_NAME),
            object: info.find(keys::EVENT_RETURN_OBJECT).cloned(),
            place: Position::of(info),
            range,
            sources: procs(info, keys::EVENT_CUSTOM_RANGE),
            affected: affected(info),
        }
    }

    fn category(&self) -> Category {
        match (&self.place, self.codes.len()) {
            (Position::First, _) => Category::First,
            (Position::Last, _) => Category::Last,
            (_, 0) => Category::Default,
            (_, 1) => Category::Single,
            _ => Category::Multi,
        }
    }

    fn wants(&self, event: &Event, me: &ProcId) -> bool {
        let of_code = match self.codes.is_empty() {
            true => !event.info.is_set(keys::EVENT_NON_DEFAULT),
            false => self.codes.contains(&event.code),
        };
        let in_range = match self.range {
            Range::PROC_LOCAL => event.source == *me,
            Range::NAMESPACE => event.source.nspace == me.nspace,
            Range::CUSTOM => self.sources.iter().any(|source| source.covers(&event.source)),
            _ => true,
        };
        let touched = affected(&event.info);
        let concerns = |mine: &ProcId| touched.iter().any(|it| mine.covers(it) || it.covers(mine));
        // An event that names no process may concern any: servers deliver it to every such handler, too.
        let any_process = self.affected.is_empty() || touched.is_empty();
        of_code && in_range && (any_process || self.affected.iter().any(concerns))
    }
}

impl Position {
    fn of(info: &[Info]) -> Position {
        let name = |key| info.find(key).and_then(Value::as_str).map(str::to_owned);
        if info.is_set(keys::EVENT_HDLR_FIRST) {
            Position::First
        } else if info.is_set(keys::EVENT_HDLR_LAST) {
            Position::Last
        } else if info.is_set(keys::EVENT_HDLR_FIRST_IN_CATEGORY) {
            Position::FirstInCategory
        } else if info.is_set(keys::EVENT_HDLR_LAST_IN_CATEGORY) {
            Position::LastInCategory
        } else if let Some(other) = name(keys::EVENT_HDLR_BEFORE) {
            Position::Before(other)
        } else if let Some(other) = name(keys::EVENT_HDLR_AFTER) {
            Position::After(other)
        } else if info.is_set(keys::EVENT_HDLR_APPEND) {
            Position::Back
        } else {
            Position::Front
        }
    }
}

/// All handlers in the order in which they run, and the chains under way.
#[derive(Debug, Default)]
pub(super) struct Chains {
    handlers: Vec<Handler>,
    running: BTreeMap<DeliveryId, Chain>,
    deliveries: u64,
    /// Events that this process raised and that no handler of its own has wanted so far.
    unheard: VecDeque<Event>,
}

#[derive(Debug)]
struct Chain {
    event: Event,
    results: Vec<Info>,
    current: HandlerId,
    since: Time,
    ahead: VecDeque<HandlerId>,
}

/// The next handler to run, and what it is given.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) delivery: DeliveryId,
    pub(super) handler: HandlerId,
    pub(super) event: Event,
    pub(super) results: Vec<Info>,
    /// The one-shot handler that this run has used up.
    pub(super) spent: Option<Handler>,
}

impl Chains {
    /// Inserts a handler at its requested place. Refused if that place is taken, or does not exist.
    pub(super) fn add(&mut self, handler: Handler) -> Result<(), Status> {
        let at = self.position_for(&handler).ok_or(Status::ERR_EVENT_REGISTRATION)?;
        self.handlers.insert(at, handler);
        Ok(())
    }

    fn position_for(&self, new: &Handler) -> Option<usize> {
        let category = new.category();
        let start = self.handlers.partition_point(|handler| handler.category() < category);
        let end = self.handlers.partition_point(|handler| handler.category() <= category);
        let peers = self.handlers.get(start..end)?;
        let first = peers.first().is_some_and(|handler| handler.place == Position::FirstInCategory);
        let last = peers.last().is_some_and(|handler| handler.place == Position::LastInCategory);
        let named =
            |name: &str| self.handlers.iter().position(|handler| handler.name.as_deref() == Some(name));
        match &new.place {
            Position::First | Position::Last => peers.is_empty().then_some(start),
            Position::FirstInCategory => (!first).then_some(start),
            Position::LastInCategory => (!last).then_some(end),
            Position::Front => Some(start + usize::from(first)),
            Position::Back => Some(end - usize::from(last)),
            Position::Before(name) => named(name).filter(|at| *at >= start).map(|at| at.min(end)),
            Position::After(name) => named(name).filter(|at| *at < end).map(|at| (at + 1).max(start)),
        }
    }

    pub(super) fn remove(&mut self, id: HandlerId) -> Option<Handler> {
        let at = self.handlers.iter().position(|handler| handler.id == id)?;
        Some(self.handlers.remove(at))
    }

    /// Whether a handler needs the server to send events of this code; None: events of every code.
    pub(super) fn needs(&self, code: Option<Status>) -> bool {
        self.handlers.iter().filter(|handler| !handler.stays_here).any(|handler| match code {
            Some(code) => handler.codes.contains(&code),
            None => handler.codes.is_empty(),
        })
    }

    /// Starts an event that this process has raised. If no handler wants it now, it is kept for later ones, as the server
    /// keeps events of other processes.
    pub(super) fn start_own(&mut self, now: Time, event: Event, me: &ProcId) -> Option<Turn> {
        if !self.handlers.iter().any(|handler| handler.wants(&event, me)) {
            if self.unheard.len() == MOST_UNHEARD {
                self.unheard.pop_front();
            }
            self.unheard.push_back(event);
            return None;
        }
        self.start(now, event, me)
    }

    /// Starts kept events that a handler wants by now.
    pub(super) fn start_kept(&mut self, now: Time, me: &ProcId) -> Vec<Turn> {
        let handlers = &self.handlers;
        let wanted = |event: &Event| handlers.iter().any(|handler| handler.wants(event, me));
        let (wanted, rest) = std::mem::take(&mut self.unheard).into_iter().partition::<Vec<_>, _>(wanted);
        self.unheard = rest.into();
        wanted.into_iter().filter_map(|event| self.start(now, event, me)).collect()
    }

    /// Starts an event's chain. Returns the first turn, if a handler wants the event.
    pub(super) fn start(&mut self, now: Time, event: Event, me: &ProcId) -> Option<Turn> {
        let mut ahead: VecDeque<_> = self
            .handlers
            .iter()
            .filter(|handler| handler.wants(&event, me))
            .map(|handler| handler.id)
            .collect();
        if self.running.len() >= MOST_RUNNING {
            tracing::warn!(code = %event.code, "too many events are being handled; this one is dropped");
            ahead.clear();
        }
        let current = *ahead.front()?;
        self.step(Chain { event, results: Vec::new(), current, since: now, ahead })
    }

    /// A handler has finished. Returns the next turn, unless the chain has ended.
    pub(super) fn go_on(&mut self, now: Time, delivery: DeliveryId, verdict: Verdict) -> Option<Turn> {
        let mut chain = self.running.remove(&delivery)?;
        if verdict.status == Status::EVENT_ACTION_COMPLETE {
            return None;
        }
        chain.results.extend(verdict.results);
        chain.since = now;
        self.step(chain)
    }

    fn step(&mut self, mut chain: Chain) -> Option<Turn> {
        // A handler may have been removed since the chain began.
        let handler = loop {
            let id = chain.ahead.pop_front()?;
            if let Some(handler) = self.handlers.iter().find(|handler| handler.id == id) {
                break handler.clone();
            }
        };
        let mut event = chain.event.clone();
        event.info.extend(handler.name.as_deref().map(|name| Info::new(keys::EVENT_HDLR_NAME, name)));
        let object = handler.object.clone();
        event.info.extend(object.map(|object| Info::new(keys::EVENT_RETURN_OBJECT, object)));
        let delivery = DeliveryId(self.deliveries);
        self.deliveries += 1;
        let results = chain.results.clone();
        chain.current = handler.id;
        self.running.insert(delivery, chain);
        let spent = if handler.oneshot { self.remove(handler.id) } else { None };
        Some(Turn { delivery, handler: handler.id, event, results, spent })
    }

    pub(super) fn explain(&self, me: &ProcId) -> impl Iterator<Item = Waiting> {
        self.running.values().map(|chain| {
            let name = self.handlers.iter().find(|handler| handler.id == chain.current);
            let name = name.and_then(|handler| handler.name.clone());
            let name = name.unwrap_or_else(|| format!("handler {}", chain.current.0));
            Waiting {
                operation: "event".into(),
                subject: format!("{} at {name}", chain.event.code),
                asked_by: vec![chain.event.source.clone()],
                missing: vec![me.clone()],
                since: chain.since,
                deadline: None,
                unblocked_by: "the handler's completion".into(),
            }
        })
    }
}

/// The processes that an event affects, or that a handler is limited to.
fn affected(info: &[Info]) -> Vec<ProcId> {
    let mut all = procs(info, keys::EVENT_AFFECTED_PROC);
    all.extend(procs(info, keys::EVENT_AFFECTED_PROCS));
    all
}

/// One process or an array of them.
pub(super) fn procs(info: &[Info], key: &str) -> Vec<ProcId> {
    match info.find(key) {
        Some(Value::Proc(proc)) => vec![proc.clone()],
        Some(Value::DataArray(array)) => array.items.iter().filter_map(Value::as_proc).cloned().collect(),
        _ => Vec::new(),
    }
}

const MOST_RUNNING: usize = 4096;
const MOST_UNHEARD: usize = 64;

#[cfg(test)]
mod tests;
