//! Events: registrations, delivery, and replay to late registrations.
//!
//! An event that a local process raises goes to the local processes that registered for it and are in its range; unless its range ends at this
//! node it then goes to the host, which notifies other servers. An event from the host goes to local processes only. No event goes to the
//! connection that raised it, nor twice to one process. Recent events are kept, within bounds, for later registrations; they are sent after
//! the answer to the registration, in the order in which they happened. Jobs that are registered after an event get it only if it names them: a
//! debugger's release would undo their stops, and MPI libraries would abort because of the error of another job.
//!
//! What the host announces about a job is restricted: it goes to tools, to the jobs that the host names, and to processes that named the job
//! when they registered. Only the last get what happened before they connected.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_spec::{DataType, Range, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::event::{Notification, Notify, RegisterEvents, VALUES_GONE};
use phalanx_wire::codec::Dialect;
use phalanx_wire::frame::TAG_EVENT;
use phalanx_wire::{DataArray, Info, InfoList, Nspace, ProcId, Value};
use tracing::{debug, warn};

use super::directive::{procs_of, refuse_unknown};
use super::host::Then;
use super::limits::{EVENT_AGE, MAX_EVENT_BYTES, MAX_REGISTRATIONS};
use super::own::OWN;
use super::peer::{Asker, Peer, PeerKind};
use super::registry::Job;
use super::turn::Cx;
use super::values::weight_of_infos;
use crate::host::{Event, EventsRequest, HostOp};
use crate::machine::{ConnId, Time};

pub(super) use kept::Raiser;
use kept::{Audience, Cached, Kept};

/// The first ones order the handlers within a client; the server ignores them but accepts them.
pub(super) const REGISTER_ATTRIBUTES: &[&str] = &[
    keys::EVENT_HDLR_NAME,
    keys::EVENT_HDLR_FIRST,
    keys::EVENT_HDLR_LAST,
    keys::EVENT_HDLR_FIRST_IN_CATEGORY,
    keys::EVENT_HDLR_LAST_IN_CATEGORY,
    keys::EVENT_HDLR_BEFORE,
    keys::EVENT_HDLR_AFTER,
    keys::EVENT_HDLR_PREPEND,
    keys::EVENT_HDLR_APPEND,
    keys::EVENT_RETURN_OBJECT,
    keys::EVENT_CUSTOM_RANGE,
    keys::RANGE,
    keys::EVENT_AFFECTED_PROC,
    keys::EVENT_AFFECTED_PROCS,
];
pub(super) const NOTIFY_ATTRIBUTES: &[&str] = &[
    keys::EVENT_NON_DEFAULT,
    keys::EVENT_CUSTOM_RANGE,
    keys::EVENT_DO_NOT_CACHE,
    keys::EVENT_AFFECTED_PROC,
    keys::EVENT_AFFECTED_PROCS,
    keys::EVENT_TEXT_MESSAGE,
    keys::EVENT_PROXY,
];

/// Processes per message.
const MOST_GONE: usize = 1024;
/// The code that a client deregisters for its default handler.
const DEFAULT_HANDLER: Status = Status(i32::MIN);

#[derive(Debug, Default)]
pub(super) struct Events {
    registrations: BTreeMap<ConnId, Vec<Registration>>,
    /// Number of registrations per code (none: all codes). The host knows of these.
    wanted: BTreeMap<Option<Status>, usize>,
    /// Registrations that the host has not answered. It may send earlier events before its answer.
    unanswered: Vec<Unanswered>,
    /// Events that processes raised.
    raised: Kept,
    /// Events that the host announced. Kept apart so that the ends of many jobs do not displace the events of processes.
    announced: Kept,
}

#[derive(Debug, PartialEq)]
struct Registration {
    /// `None`: every event without `PMIX_EVENT_NON_DEFAULT`.
    code: Option<Status>,
    /// Only events that affect one of these; empty: all events.
    affected: Vec<ProcId>,
}

#[derive(Debug)]
struct Unanswered {
    conn: ConnId,
    tag: u32,
    codes: Vec<Option<Status>>,
}

/// How well a registration fits an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interest {
    None,
    InItsCode,
    /// It named a process that the event affects.
    InWhatItAffects,
}

impl Events {
    pub(super) fn on_register(&mut self, cx: &mut Cx<'_>, from: Asker, request: RegisterEvents) {
        if let Err(status) =
            refuse_unknown("event registration", &from.proc, &request.info, REGISTER_ATTRIBUTES)
        {
            return cx.answer(from, status);
        }
        let codes: Vec<Option<Status>> = match request.codes.as_slice() {
            [] => vec![None],
            codes => codes.iter().copied().map(Some).collect(),
        };
        let affected = affected(&request.info);
        let registered = |conn| self.registrations.get(&conn).map_or(0, Vec::len);
        let before: usize = cx.peers.connections_of(&from).map(registered).sum();
        if before + codes.len() > MAX_REGISTRATIONS {
            warn!(proc = %from.proc, limit = MAX_REGISTRATIONS, "too many event registrations: refused");
            return cx.answer(from, Status::ERR_OUT_OF_RESOURCE);
        }
        let own = self.registrations.entry(from.conn).or_default();
        let mut news = Vec::new();
        let own_process = from.conn == OWN;
        for code in codes {
            let registration = Registration { code, affected: affected.clone() };
            if own.contains(&registration) {
                continue;
            }
            own.push(registration);
            // The host does not need its own registration.
            if own_process {
                continue;
            }
            let wanted = self.wanted.entry(code).or_default();
            *wanted += 1;
            // Asks behind an unanswered registration of the code as well, so that this one gets the same earlier events.
            let is_asked = self.unanswered.iter().any(|other| other.codes.contains(&code));
            // Only the host knows all that happened to the processes named in the registration.
            let is_named = code.is_some() && !affected.is_empty();
            if *wanted == 1 || is_asked || is_named {
                news.push(code);
            }
        }
        if news.is_empty() {
            return self.on_registration_answered(cx, from, Status::SUCCESS);
        }
        let codes = if news.contains(&None) { Vec::new() } else { news.iter().copied().flatten().collect() };
        self.unanswered.push(Unanswered { conn: from.conn, tag: from.tag(), codes: news });
        let proc = from.proc.clone();
        let op = HostOp::RegisterEvents(EventsRequest { codes, info: request.info });
        cx.ask(Some(&proc), op, Then::RegisterEvents(from));
    }

    /// If the host does not support events, local ones are still delivered.
    pub(super) fn on_registration_answered(&mut self, cx: &mut Cx<'_>, to: Asker, status: Status) {
        if !status.is_success() {
            debug!(proc = %to.proc, %status, "the host does not serve these events: local ones only");
        }
        let conn = to.conn;
        self.unanswered.retain(|one| (one.conn, one.tag) != (conn, to.tag()));
        cx.answer(to, Status::SUCCESS);
        if !self.awaits_answer(conn) {
            self.replay(cx, conn);
        }
    }

    fn awaits_answer(&self, conn: ConnId) -> bool {
        self.unanswered.iter().any(|one| one.conn == conn)
    }

    pub(super) fn on_deregister(&mut self, cx: &mut Cx<'_>, conn: ConnId, codes: &[Status]) {
        let named = |code: Option<Status>| match code {
            None => codes.is_empty() || codes.contains(&DEFAULT_HANDLER),
            Some(code) => codes.contains(&code),
        };
        let Some(own) = self.registrations.get_mut(&conn) else { return };
        let gone: Vec<Registration> = own.extract_if(.., |registration| named(registration.code)).collect();
        if conn != OWN {
            self.unwant(cx, gone);
        }
    }

    pub(super) fn forget_connection(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: &ProcId) {
        let gone = self.registrations.remove(&conn).unwrap_or_default();
        self.unanswered.retain(|one| one.conn != conn);
        let is_last = !cx.peers.goes_on_without(proc, conn);
        self.raised.forget_connection(conn, proc, is_last);
        self.announced.forget_connection(conn, proc, is_last);
        self.unwant(cx, gone);
    }

    fn unwant(&mut self, cx: &mut Cx<'_>, gone: Vec<Registration>) {
        let mut ended = Vec::new();
        for registration in gone {
            let Some(wanted) = self.wanted.get_mut(&registration.code) else { continue };
            *wanted -= 1;
            if *wanted == 0 {
                self.wanted.remove(&registration.code);
                ended.push(registration.code);
            }
        }
        let codes: Vec<Status> = ended.iter().copied().flatten().collect();
        if codes.len() < ended.len() {
            cx.ask(
                None,
                HostOp::DeregisterEvents(EventsRequest { codes: Vec::new(), info: Vec::new() }),
                Then::Nothing,
            );
        }
        if !codes.is_empty() {
            cx.ask(None, HostOp::DeregisterEvents(EventsRequest { codes, info: Vec::new() }), Then::Nothing);
        }
    }

    /// A process has raised an event that [`checked`] accepted.
    pub(super) fn on_notify(&mut self, cx: &mut Cx<'_>, from: Asker, event: &Event) {
        // The host raised it in this very process: it notifies the other servers itself.
        if from.conn == OWN {
            self.tell(cx, event, Raiser::Connection(OWN), Audience::Range);
            return cx.answer(from, Status::SUCCESS);
        }
        self.raise(cx, event, Raiser::Connection(from.conn), Then::Answer(from));
    }

    /// Notifies local processes, then the host if other nodes may be concerned. `then`: what the host's answer is for; done
    /// at once if the host is not asked.
    pub(super) fn raise(&mut self, cx: &mut Cx<'_>, event: &Event, raised_by: Raiser, then: Then) {
        self.tell(cx, event, raised_by, Audience::Range);
        let is_of_server = matches!(event.range, Range::LOCAL | Range::PROC_LOCAL);
        if is_of_server && !FOR_THE_HOST.contains(&event.code) {
            if let Then::Answer(to) = then {
                cx.answer(to, Status::SUCCESS);
            }
            return;
        }
        let source = event.source.clone();
        cx.ask(Some(&source), HostOp::Notify(event.clone()), then);
    }

    pub(super) fn on_event_from_host(&mut self, cx: &mut Cx<'_>, event: &Event) -> Status {
        self.tell(cx, event, Raiser::Source, Audience::Range);
        Status::SUCCESS
    }

    /// The host announces something about a job.
    pub(super) fn on_announcement(
        &mut self,
        cx: &mut Cx<'_>,
        event: &Event,
        (number, concerned): (u64, Option<Vec<Nspace>>),
    ) -> Status {
        self.tell(cx, event, Raiser::Source, Audience::OfJob { concerned, number });
        Status::SUCCESS
    }

    /// The host repeats what happened a while ago, for a registration that came only now.
    pub(super) fn on_late_announcement(
        &mut self,
        cx: &mut Cx<'_>,
        event: Event,
        (number, concerned): (u64, Option<Vec<Nspace>>),
        ago: Duration,
    ) -> Status {
        // The same event may happen to a process repeatedly, so the number counts too.
        let is_same = |cached: &Cached| {
            let (known, source) = (&cached.event, &cached.event.source);
            (cached.number(), known.code, source) == (number, event.code, &event.source)
                && affected(&known.info) == affected(&event.info)
        };
        if ago <= EVENT_AGE && !self.announced.recent(cx.now).any(|cached| is_same(cached)) {
            let audience = Audience::OfJob { concerned, number };
            let cached = Cached::new(cx.now.before(ago), event, Raiser::Source, audience);
            self.tell_and_keep(cx, cached, |events, conn, peer, cached| events.is_due(conn, peer, cached));
        }
        Status::SUCCESS
    }

    /// Sends an event to the local processes that want it, and keeps it for later registrations.
    fn tell(&mut self, cx: &mut Cx<'_>, event: &Event, raised_by: Raiser, audience: Audience) {
        let cached = Cached::new(cx.now, event.clone(), raised_by, audience);
        self.tell_and_keep(cx, cached, |events, conn, peer, cached| {
            let is_source = is_source(conn, peer, &cached.event, cached.raised_by);
            !is_source && events.hears(conn, peer, &cached.event, &cached.audience)
        });
    }

    /// Connections that wait for the answer to a registration get the event after that answer.
    fn tell_and_keep(
        &mut self,
        cx: &mut Cx<'_>,
        mut cached: Cached,
        is_for: impl Fn(&Events, ConnId, &Peer, &Cached) -> bool,
    ) {
        let is_to_keep = cached.is_for_latecomers();
        let peers = cx.peers.conns.peers();
        let told = peers.filter(|(conn, peer)| {
            !(is_to_keep && self.awaits_answer(*conn)) && is_for(self, *conn, peer, &cached)
        });
        let told: BTreeSet<ConnId> = told.map(|(conn, _)| conn).collect();
        let mut encoded: Vec<(Dialect, Vec<u8>)> = Vec::new();
        for conn in &told {
            send_event(cx, *conn, &cached.event, &mut encoded);
        }
        if is_to_keep {
            cached.told = told;
            match cached.audience {
                Audience::Range => self.raised.keep(cx.now, cached),
                Audience::OfJob { .. } => self.announced.keep(cx.now, cached),
            }
        }
    }

    /// Sends an event to one peer, if it wants it.
    pub(super) fn tell_one(&mut self, cx: &mut Cx<'_>, conn: ConnId, event: &Event) {
        if self.is_wanted(conn, event) {
            send_event(cx, conn, event, &mut Vec::new());
        }
    }

    /// Notifies clients that cache values that those of these processes are obsolete. Other clients would run their event handlers
    /// for it.
    pub(super) fn tell_values_gone(&self, cx: &mut Cx<'_>, procs: &[ProcId]) {
        let clients = cx.peers.conns.peers().filter(|(_, peer)| peer.reads_files());
        let clients: Vec<ConnId> = clients.map(|(conn, _)| conn).collect();
        for procs in procs.chunks(MOST_GONE).filter(|_| !clients.is_empty()) {
            let source = ProcId::all(&procs[0].nspace);
            let gone =
                DataArray { of: DataType::PROC, items: procs.iter().cloned().map(Value::from).collect() };
            let info = vec![Info::new(VALUES_GONE, gone)];
            let event = Event { code: Status::ERR_PROC_RESTART, source, range: Range::CUSTOM, info };
            let mut encoded = Vec::new();
            clients.iter().for_each(|conn| send_event(cx, *conn, &event, &mut encoded));
        }
    }

    /// Sends a peer the recent events that it has not received.
    fn replay(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let mut raised = std::mem::take(&mut self.raised);
        let mut announced = std::mem::take(&mut self.announced);
        let mut due = Vec::new();
        if let Some(peer) = cx.peers.conns.peer(conn) {
            let job = cx.peers.jobs.get(&peer.proc().nspace).filter(|_| peer.role() == PeerKind::Client);
            let born = job.map_or(Time(0), Job::since);
            for kept in [&mut raised, &mut announced] {
                let mut last = Time(0);
                for cached in kept.recent(cx.now) {
                    last = last.max(cached.since);
                    if !cached.is_before(born) && self.is_due(conn, peer, cached) && cached.told.insert(conn)
                    {
                        due.push((last, cached.event.clone()));
                    }
                }
            }
        }
        (self.raised, self.announced) = (raised, announced);
        due.sort_by_key(|(at, _)| *at);
        for (_, event) in due {
            send_event(cx, conn, &event, &mut Vec::new());
        }
    }

    /// A job is over. What was announced about it is kept for later registrations that name it.
    pub(super) fn forget_of(&mut self, nspace: &Nspace) {
        self.raised.forget_events_of(nspace);
        self.raised.forget_told_in(nspace);
        self.announced.forget_told_in(nspace);
    }

    pub(super) fn are_from(&self, nspace: &Nspace) -> bool {
        self.raised.knows(nspace) || self.announced.told_any_of(nspace)
    }

    fn is_wanted(&self, conn: ConnId, event: &Event) -> bool {
        self.interest(conn, event) > Interest::None
    }

    fn interest(&self, conn: ConnId, event: &Event) -> Interest {
        let affected = affected(&event.info);
        let all = self.registrations.get(&conn).into_iter().flatten();
        all.map(|registration| registration.interest(event, &affected)).max().unwrap_or(Interest::None)
    }

    /// Whether a peer wants an event and is in its audience.
    fn hears(&self, conn: ConnId, peer: &Peer, event: &Event, audience: &Audience) -> bool {
        match self.interest(conn, event) {
            Interest::None => false,
            interest => match audience {
                Audience::Range => may_see(peer, event),
                Audience::OfJob { concerned, .. } => {
                    let is_concerned = |jobs: &Vec<Nspace>| jobs.contains(&peer.proc().nspace);
                    let is_for_it =
                        peer.role() != PeerKind::Client || concerned.as_ref().is_none_or(is_concerned);
                    !peer.has_finalized() && (is_for_it || interest == Interest::InWhatItAffects)
                }
            },
        }
    }

    /// Whether a peer that has just registered should get an earlier event.
    fn is_due(&self, conn: ConnId, peer: &Peer, cached: &Cached) -> bool {
        let event = &cached.event;
        if cached.told_before.contains(peer.proc()) {
            return false;
        }
        if is_source(conn, peer, event, cached.raised_by) {
            return wants_its_own_again(peer, event) && self.is_wanted(conn, event);
        }
        let is_of_its_time = match cached.audience {
            Audience::Range => true,
            Audience::OfJob { .. } => {
                peer.since() <= cached.since || self.interest(conn, event) == Interest::InWhatItAffects
            }
        };
        is_of_its_time && self.hears(conn, peer, event, &cached.audience)
    }
}

impl Registration {
    fn interest(&self, event: &Event, affected: &[ProcId]) -> Interest {
        let code = match self.code {
            Some(code) => code == event.code,
            None => !event.info.is_set(keys::EVENT_NON_DEFAULT),
        };
        let meets = |mine: &ProcId| affected.iter().any(|a| mine.covers(a) || a.covers(mine));
        match code {
            false => Interest::None,
            true if self.affected.iter().any(meets) => Interest::InWhatItAffects,
            true if self.affected.is_empty() || affected.is_empty() => Interest::InItsCode,
            true => Interest::None,
        }
    }
}

fn send_event(cx: &mut Cx<'_>, conn: ConnId, event: &Event, encoded: &mut Vec<(Dialect, Vec<u8>)>) {
    let Some(dialect) = cx.peers.conns.peer(conn).map(|peer| peer.dialect()) else { return };
    if !encoded.iter().any(|(other, _)| *other == dialect) {
        let Event { code, source, range, info } = event.clone();
        let notification = Notification { code, source, info, range: Some(range) };
        encoded.push((dialect, notification.encode(dialect)));
    }
    if let Some((_, bytes)) = encoded.iter().find(|(other, _)| *other == dialect) {
        cx.send(conn, TAG_EVENT, bytes);
    }
}

/// The event that a process wants to raise, or why it may not.
pub(super) fn checked(from: &Asker, notify: Notify) -> Result<Event, Status> {
    if notify.range > Range::PROC_LOCAL {
        return Err(Status::ERR_BAD_PARAM);
    }
    let bytes = weight_of_infos(&notify.info);
    if bytes > MAX_EVENT_BYTES {
        warn!(proc = %from.proc, bytes, limit = MAX_EVENT_BYTES, "event too large: refused");
        return Err(Status::ERR_OUT_OF_RESOURCE);
    }
    let Notify { code, range, info, .. } = notify;
    Ok(Event { code, source: from.proc.clone(), range, info })
}

/// Whether this peer raised the event itself; other connections of its rank did not.
fn is_source(conn: ConnId, peer: &Peer, event: &Event, raised_by: Raiser) -> bool {
    *peer.proc() == event.source
        && match raised_by {
            Raiser::Source => true,
            Raiser::Connection(raised_by) => raised_by == conn,
            Raiser::Server => false,
        }
}

/// Whether a peer is in the event's range.
fn may_see(peer: &Peer, event: &Event) -> bool {
    if peer.has_finalized() {
        return false;
    }
    match event.range {
        Range::UNDEF | Range::LOCAL | Range::SESSION | Range::GLOBAL => true,
        Range::NAMESPACE => peer.proc().nspace == event.source.nspace,
        Range::CUSTOM => {
            let range = event.info.find(keys::EVENT_CUSTOM_RANGE).map(procs_of).unwrap_or_default();
            range.iter().any(|proc| proc.covers(peer.proc()))
        }
        _ => false,
    }
}

/// Whether a peer that registers late for its own event needs it from us. Libraries before 5.0 keep such events themselves;
/// later ones keep only those that never left the process.
fn wants_its_own_again(peer: &Peer, event: &Event) -> bool {
    !peer.has_finalized()
        && peer.dialect().release.major >= 5
        && (event.range != Range::CUSTOM
            || event
                .info
                .find(keys::EVENT_CUSTOM_RANGE)
                .map(procs_of)
                .unwrap_or_default()
                .iter()
                .any(|p| p.covers(peer.proc())))
}

/// The processes that an event affects, or that a registration is limited to.
fn affected(info: &[Info]) -> Vec<ProcId> {
    let named = [keys::EVENT_AFFECTED_PROC, keys::EVENT_AFFECTED_PROCS];
    info.iter()
        .filter(|info| named.iter().any(|key| info.key == **key))
        .flat_map(|info| procs_of(&info.value))
        .collect()
}

/// Events that are reports to the runtime, which needs them whatever their range.
const FOR_THE_HOST: [Status; 3] =
    [Status::JCTRL_CHECKPOINT_COMPLETE, Status::READY_FOR_DEBUG, Status::DEBUGGER_RELEASE];
