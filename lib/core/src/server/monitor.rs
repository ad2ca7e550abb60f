//! Monitoring: heartbeats and files are watched here; everything else is up to the host.
//!
//! A process asks to be watched, and then gives signs of life: heartbeats, or changes of a file. After more than the allowed
//! number of windows without one, the event that the process chose is raised once, and again only after a sign of life in
//! between. The windows of a process that is paused do not count.

mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::monitor::{Monitor, SILENT};
use phalanx_wire::{Info, InfoList, ProcId, Value};
use tracing::{debug, warn};

use super::event::{Events, Raiser};
use super::host::Then;
use super::limits::MAX_MONITORS;
use super::peer::Asker;
use super::registry::Client;
use super::timers::{Timer, TimerId};
use super::turn::Cx;
use crate::host::{Asked, Event, HostOp};
use crate::machine::{ConnId, FileLook, Output, Time};
use file::{Seen, WatchedFile};

pub(super) const ATTRIBUTES: &[&str] = &[
    keys::MONITOR_HEARTBEAT,
    keys::SEND_HEARTBEAT,
    keys::MONITOR_FILE,
    keys::MONITOR_CANCEL,
    keys::MONITOR_ID,
    keys::MONITOR_HEARTBEAT_TIME,
    keys::MONITOR_HEARTBEAT_DROPS,
    keys::MONITOR_FILE_SIZE,
    keys::MONITOR_FILE_ACCESS,
    keys::MONITOR_FILE_MODIFY,
    keys::MONITOR_FILE_CHECK_TIME,
    keys::MONITOR_FILE_DROPS,
    keys::RANGE,
    keys::EVENT_CUSTOM_RANGE,
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
    signs: Signs,
    window: Duration,
    drops: u32,
    /// Windows without a sign of life.
    missed: u32,
    /// The last sign of life, or the start.
    alive: Time,
    alerted: bool,
    event: Status,
    range: Range,
    /// For [`Range::CUSTOM`]: the processes to alert.
    audience: Option<Info>,
    is_paused: bool,
    timer: TimerId,
}

/// Source of signs of life.
#[derive(Debug)]
enum Signs {
    /// Number received in this window.
    Heartbeats(u32),
    File(WatchedFile),
}

impl Monitors {
    pub(super) fn on_monitor(&mut self, cx: &mut Cx<'_>, from: Asker, request: Monitor) {
        match request.what.key.as_str() {
            keys::SEND_HEARTBEAT => {
                self.on_heartbeat(from.conn, cx.now);
                return cx.answer_infos(from, Status::SUCCESS, Vec::new());
            }
            keys::MONITOR_HEARTBEAT => {
                let status = self.watch_heartbeats(cx, &from, &request).err().unwrap_or(Status::SUCCESS);
                return cx.answer_infos(from, status, Vec::new());
            }
            // If the request gives no interval, only the host may have one.
            keys::MONITOR_FILE if request.directives.find(keys::MONITOR_FILE_CHECK_TIME).is_some() => {
                let status = self.watch_files(cx, &from, &request).err().unwrap_or(Status::SUCCESS);
                return cx.answer_infos(from, status, Vec::new());
            }
            _ => {}
        }
        let mut unless_known = None;
        if request.what.key == keys::MONITOR_CANCEL {
            let id = match &request.what.value {
                Value::String(id) => id.as_str(),
                Value::NullString | Value::Undef => None,
                _ => return cx.answer_infos(from, Status::ERR_BAD_PARAM, Vec::new()),
            };
            if self.unwatch(cx, from.conn, id) && id.is_some() {
                return cx.answer_infos(from, Status::SUCCESS, Vec::new());
            }
            // The host may support more. If it does not, there is nothing to cancel.
            unless_known = Some(if id.is_some() { Status::ERR_NOT_FOUND } else { Status::SUCCESS });
        }
        let mut directives = request.directives;
        directives.extend(from.identity());
        let proc = from.proc.clone();
        let op = HostOp::Monitor(Asked {
            from: proc.clone(),
            request: Monitor { what: request.what, error: request.error, directives },
        });
        let then = match unless_known {
            Some(unless_known) => Then::AnswerCancel { to: from, unless_known },
            None => Then::AnswerInfos(from),
        };
        cx.ask(Some(&proc), op, then);
    }

    fn watch_heartbeats(&mut self, cx: &mut Cx<'_>, from: &Asker, request: &Monitor) -> Result<(), Status> {
        let window = window(&request.directives, keys::MONITOR_HEARTBEAT_TIME)?;
        let drops = number(&request.directives, keys::MONITOR_HEARTBEAT_DROPS).unwrap_or(0);
        has_audience(&request.directives)?;
        self.make_room(from, 1)?;
        self.watch(cx, from, request, (Signs::Heartbeats(0), window, drops));
        Ok(())
    }

    fn watch_files(&mut self, cx: &mut Cx<'_>, from: &Asker, request: &Monitor) -> Result<(), Status> {
        let window = window(&request.directives, keys::MONITOR_FILE_CHECK_TIME)?;
        let drops = number(&request.directives, keys::MONITOR_FILE_DROPS).unwrap_or(0);
        has_audience(&request.directives)?;
        let pid = cx.peers.jobs.client(&from.proc).and_then(Client::pid);
        let files = WatchedFile::all(request, pid)?;
        self.make_room(from, files.len())?;
        for file in files {
            let (path, reads) = (file.path().to_owned(), file.counts_reads());
            let number = self.watch(cx, from, request, (Signs::File(file), window, drops));
            // Later looks are compared with this one.
            cx.out.push(Output::LookAt { look: number, path, reads });
        }
        Ok(())
    }

    fn make_room(&self, from: &Asker, count: usize) -> Result<(), Status> {
        let have = self.watched.values().filter(|w| w.proc == from.proc).count();
        if have + count > MAX_MONITORS {
            warn!(proc = %from.proc, limit = MAX_MONITORS, "watched too many times: refused");
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        Ok(())
    }

    fn watch(
        &mut self,
        cx: &mut Cx<'_>,
        from: &Asker,
        request: &Monitor,
        (signs, window, drops): (Signs, Duration, u32),
    ) -> u64 {
        self.last += 1;
        let number = self.last;
        let alert = match &signs {
            Signs::Heartbeats(_) => Status::MONITOR_HEARTBEAT_ALERT,
            Signs::File(_) => Status::MONITOR_FILE_ALERT,
        };
        let watched = Watched {
            conn: from.conn,
            proc: from.proc.clone(),
            id: request.directives.find(keys::MONITOR_ID).and_then(Value::as_str).map(str::to_owned),
            signs,
            window,
            drops,
            missed: 0,
            alive: cx.now,
            alerted: false,
            event: if request.error.is_success() { alert } else { request.error },
            range: match request.directives.find(keys::RANGE) {
                Some(Value::Range(range)) => *range,
                _ => Range::NAMESPACE,
            },
            audience: request.directives.iter().find(|info| info.key == *keys::EVENT_CUSTOM_RANGE).cloned(),
            is_paused: false,
            timer: cx.timers.set(cx.now.after(window), Timer::Window(number)),
        };
        self.watched.insert(number, watched);
        number
    }

    /// Removes the monitor with this id, or all of this connection. Returns whether there was one.
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

    /// The host has paused this process, or it goes on: then the time without a sign of life begins anew.
    pub(super) fn on_paused(&mut self, proc: &ProcId, is_paused: bool, now: Time) {
        for watched in self.watched.values_mut().filter(|w| w.proc == *proc) {
            watched.is_paused = is_paused;
            (watched.missed, watched.alive) = (0, now);
        }
    }

    pub(super) fn on_heartbeat(&mut self, conn: ConnId, now: Time) {
        for watched in self.watched.values_mut().filter(|w| w.conn == conn) {
            if let Signs::Heartbeats(beats) = &mut watched.signs {
                *beats = beats.saturating_add(1);
                (watched.alive, watched.alerted) = (now, false);
            }
        }
    }

    /// A window has ended.
    pub(super) fn on_window_over(&mut self, cx: &mut Cx<'_>, events: &mut Events, number: u64) {
        let Some(watched) = self.watched.get_mut(&number) else { return };
        watched.timer = cx.timers.set(cx.now.after(watched.window), Timer::Window(number));
        if watched.is_paused {
            return;
        }
        let is_alive = match &mut watched.signs {
            Signs::Heartbeats(beats) => std::mem::take(beats) > 0,
            Signs::File(file) => match file.look() {
                Some(path) => {
                    let reads = file.counts_reads();
                    return cx.out.push(Output::LookAt { look: number, path, reads });
                }
                // Its file system has not answered the previous look yet.
                None => false,
            },
        };
        watched.judge(cx, events, is_alive);
    }

    /// The result of a look at a file: `None` if the file is absent or cannot be seen.
    pub(super) fn on_looked(
        &mut self,
        cx: &mut Cx<'_>,
        events: &mut Events,
        number: u64,
        look: Option<FileLook>,
    ) {
        let Some(watched) = self.watched.get_mut(&number) else { return };
        let Signs::File(file) = &mut watched.signs else { return };
        match file.seen(look) {
            Seen::First => {}
            Seen::Changed => watched.judge(cx, events, true),
            Seen::Same => watched.judge(cx, events, false),
        }
    }
}

impl Watched {
    /// One more window is over.
    fn judge(&mut self, cx: &mut Cx<'_>, events: &mut Events, is_alive: bool) {
        if is_alive {
            (self.missed, self.alerted) = (0, false);
            // A heartbeat says when it came.
            if matches!(self.signs, Signs::File(_)) {
                self.alive = cx.now;
            }
            return;
        }
        self.missed = self.missed.saturating_add(1);
        if self.missed <= self.drops || self.alerted {
            return;
        }
        self.alerted = true;
        debug!(proc = %self.proc, missed = self.missed, "no sign of life");
        let mut info = vec![Info::new(keys::EVENT_AFFECTED_PROC, self.proc.clone())];
        info.extend(self.id.as_deref().map(|id| Info::new(keys::MONITOR_ID, id)));
        if let Signs::File(file) = &self.signs {
            info.push(Info::new(keys::MONITOR_FILE, file.name()));
        }
        info.extend(self.audience.clone());
        info.push(Info::new(SILENT, cx.now.since(self.alive).as_millis() as u64));
        let event = Event { code: self.event, source: self.proc.clone(), range: self.range, info };
        // The watched process gets the event as well, if it registered for it.
        events.raise(cx, &event, Raiser::Server, Then::Nothing);
    }
}

/// An alert with a custom range needs the processes that it is for.
fn has_audience(directives: &[Info]) -> Result<(), Status> {
    let is_custom = matches!(directives.find(keys::RANGE), Some(Value::Range(Range::CUSTOM)));
    match is_custom && directives.find(keys::EVENT_CUSTOM_RANGE).is_none() {
        true => Err(Status::ERR_BAD_PARAM),
        false => Ok(()),
    }
}

/// In seconds.
fn window(directives: &[Info], key: &str) -> Result<Duration, Status> {
    match number(directives, key) {
        Some(seconds @ 1..) => Ok(Duration::from_secs(u64::from(seconds))),
        _ => Err(Status::ERR_BAD_PARAM),
    }
}

fn number(directives: &[Info], key: &str) -> Option<u32> {
    directives.find(key).and_then(Value::as_u32)
}
