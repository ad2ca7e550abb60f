//! Monitoring: heartbeats are counted here, since they arrive here; everything else is the host's.
//!
//! A process asks to be watched and then sends signs of life. After more than the allowed number of windows without one,
//! the event that it chose is raised, once, and again only after it was alive in between.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::{Info, InfoList, ProcId, Value};
use tracing::{debug, warn};

use super::event::Events;
use super::host::Then;
use super::limits::MAX_MONITORS;
use super::peer::Asker;
use super::timers::{Timer, TimerId};
use super::turn::Cx;
use crate::host::{Asked, Event, HostOp};
use crate::machine::ConnId;

pub(super) const ATTRIBUTES: &[&str] = &[
    keys::MONITOR_HEARTBEAT,
    keys::SEND_HEARTBEAT,
    keys::MONITOR_CANCEL,
    keys::MONITOR_ID,
    keys::MONITOR_HEARTBEAT_TIME,
    keys::MONITOR_HEARTBEAT_DROPS,
    keys::RANGE,
];

#[derive(Debug, Default)]
pub(super) struct Monitors {
    watched: BTreeMap<u64, Watched>,
    last: u64,
}

#[derive(Debug)]
struct Watched {
    conn: ConnId,
    proc: ProcId,
    id: Option<String>,
    window: Duration,
    drops: u32,
    /// Windows without a sign of life.
    missed: u32,
    beats: u32,
    alerted: bool,
    event: Status,
    range: Range,
    timer: TimerId,
}

impl Monitors {
    pub(super) fn on_monitor(&mut self, cx: &mut Cx<'_>, from: Asker, request: Monitor) {
        if request.what.key == keys::SEND_HEARTBEAT {
            self.on_heartbeat(from.conn);
            return cx.answer_infos(&from, Status::SUCCESS, Vec::new());
        }
        if request.what.key == keys::MONITOR_HEARTBEAT {
            let status = self.watch(cx, &from, &request);
            return cx.answer_infos(&from, status, Vec::new());
        }
        let mut then = Then::AnswerInfos(from.clone());
        if request.what.key == keys::MONITOR_CANCEL {
            let id = match &request.what.value {
                Value::String(id) => id.as_str(),
                Value::NullString | Value::Undef => None,
                _ => return cx.answer_infos(&from, Status::ERR_BAD_PARAM, Vec::new()),
            };
            if self.unwatch(cx, from.conn, id) && id.is_some() {
                return cx.answer_infos(&from, Status::SUCCESS, Vec::new());
            }
            // The host may watch more. One that watches nothing has nothing to cancel.
            let unless_known = if id.is_some() { Status::ERR_NOT_FOUND } else { Status::SUCCESS };
            then = Then::AnswerCancel { to: from.clone(), unless_known };
        }
        let mut directives = request.directives;
        directives.extend(from.identity());
        let proc = from.proc.clone();
        let op = HostOp::Monitor(Asked {
            from: proc.clone(),
            request: Monitor { what: request.what, error: request.error, directives },
        });
        cx.ask(Some(&proc), op, then);
    }

    fn watch(&mut self, cx: &mut Cx<'_>, from: &Asker, request: &Monitor) -> Status {
        let Some(seconds) = request.directives.find(keys::MONITOR_HEARTBEAT_TIME).and_then(Value::as_u32)
        else {
            return Status::ERR_BAD_PARAM;
        };
        if seconds == 0 {
            return Status::ERR_BAD_PARAM;
        }
        if self.watched.values().filter(|w| w.proc == from.proc).count() >= MAX_MONITORS {
            warn!(proc = %from.proc, limit = MAX_MONITORS, "watched too many times: refused");
            return Status::ERR_OUT_OF_RESOURCE;
        }
        self.last += 1;
        let number = self.last;
        let window = Duration::from_secs(u64::from(seconds));
        let watched = Watched {
            conn: from.conn,
            proc: from.proc.clone(),
            id: request.directives.find(keys::MONITOR_ID).and_then(Value::as_str).map(str::to_owned),
            window,
            drops: request
                .directives
                .find(keys::MONITOR_HEARTBEAT_DROPS)
                .and_then(Value::as_u32)
                .unwrap_or(0),
            missed: 0,
            beats: 0,
            alerted: false,
            event: if request.error.is_success() { Status::MONITOR_HEARTBEAT_ALERT } else { request.error },
            range: match request.directives.find(keys::RANGE) {
                Some(Value::Range(range)) => *range,
                _ => Range::NAMESPACE,
            },
            timer: cx.timers.set(cx.now.after(window), Timer::Heartbeat(number)),
        };
        self.watched.insert(number, watched);
        Status::SUCCESS
    }

    /// Without an id: all that this connection has asked for. Whether there was one.
    fn unwatch(&mut self, cx: &mut Cx<'_>, conn: ConnId, id: Option<&str>) -> bool {
        let named = |w: &Watched| w.conn == conn && (id.is_none() || w.id.as_deref() == id);
        let gone: Vec<Watched> = self.watched.extract_if(.., |_, w| named(w)).map(|(_, w)| w).collect();
        for watched in &gone {
            cx.timers.cancel(Some(watched.timer));
        }
        !gone.is_empty()
    }

    pub(super) fn forget_of(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        self.unwatch(cx, conn, None);
    }

    pub(super) fn on_heartbeat(&mut self, conn: ConnId) {
        for watched in self.watched.values_mut().filter(|w| w.conn == conn) {
            watched.beats = watched.beats.saturating_add(1);
            watched.alerted = false;
        }
    }

    /// A window has ended.
    pub(super) fn on_overdue(&mut self, cx: &mut Cx<'_>, events: &mut Events, number: u64) {
        let Some(watched) = self.watched.get_mut(&number) else { return };
        watched.timer = cx.timers.set(cx.now.after(watched.window), Timer::Heartbeat(number));
        watched.missed = if watched.beats > 0 { 0 } else { watched.missed.saturating_add(1) };
        watched.beats = 0;
        if watched.missed <= watched.drops || watched.alerted {
            return;
        }
        watched.alerted = true;
        debug!(proc = %watched.proc, missed = watched.missed, "heartbeats missed");
        let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, watched.proc.clone())];
        let event = Event { code: watched.event, source: watched.proc.clone(), range: watched.range, info };
        let watched_on = Some(watched.conn);
        events.raise(cx, &event, watched_on, Then::Nothing);
    }
}
