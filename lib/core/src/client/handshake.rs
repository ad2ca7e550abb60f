//! The connection's life: from the start to admission, what arrives on it, and its end.
//!
//! The phases are named for what they wait for. Until the job data have arrived only init is under way, so an end of the
//! connection fails init; later it fails all pending requests and raises `PMIX_ERR_LOST_CONNECTION`.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::event::{Notification, VALUES_GONE};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::frame::{self, Frame};
use phalanx_wire::{InfoList, Kval};

use super::Tables;
use super::alone::begin_alone;
use super::call::ClientReturn;
use super::chain::procs;
use super::debug::{hold, is_to_be_held, on_release};
use super::finalize::{on_goodbye, say_goodbye};
use super::introduce::{hello, take_welcome};
use super::link::{Cx, Link, SERVER};
use super::pending::Awaited;
use super::phase::{InitError, Phase, Start};
use crate::host::Event;
use crate::machine::{CallId, CloseReason, Output};

impl Tables {
    pub(super) fn on_init(&mut self, cx: &mut Cx<'_>, id: CallId) {
        if !matches!(cx.link.phase, Phase::Idle) {
            return cx.out.push(Output::Return { id, result: ClientReturn::Init(Err(InitError::Again)) });
        }
        cx.link.starting = Some(id);
        let Some(server) = &cx.link.config.server else {
            begin_alone(cx.link);
            return cx.end_init(Ok(()));
        };
        cx.out.push(Output::Connect { conn: SERVER, address: server.address_text() });
        cx.link.phase =
            Phase::ExpectOpened(Start { since: cx.now, deadline: cx.now.after(cx.link.config.patience) });
    }

    pub(super) fn on_opened(&mut self, cx: &mut Cx<'_>) {
        let Phase::ExpectOpened(start) = cx.link.phase else { return };
        cx.out.push(Output::Send { conn: SERVER, frame: hello(cx.link, &self.introduction) });
        cx.link.phase = Phase::ExpectHelloReply { start, got: Vec::new() };
    }

    pub(super) fn on_bytes(&mut self, cx: &mut Cx<'_>, data: &[u8]) {
        match &mut cx.link.phase {
            Phase::Idle | Phase::ExpectOpened(_) | Phase::Alone | Phase::Lost | Phase::Ended => return,
            Phase::ExpectHelloReply { start, got } => {
                got.extend_from_slice(data);
                let (start, mut got) = (*start, std::mem::take(got));
                let rest = match take_welcome(cx.link, &self.introduction, &got) {
                    Err(error) => return self.fail_init(cx, error),
                    Ok(Some(length)) => got.split_off(length),
                    Ok(None) => return cx.link.phase = Phase::ExpectHelloReply { start, got },
                };
                cx.link.phase = Phase::ExpectJobData(start);
                cx.ask(None, &Request::JobData, Awaited::JobData, &[]);
                self.frames.feed(&rest);
            }
            _ => self.frames.feed(data),
        }
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => self.on_frame(cx, &frame),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the server sent what cannot be accepted");
                    cx.out.push(Output::Close { conn: SERVER });
                    return match cx.link.starting {
                        Some(_) => self.fail_init(cx, InitError::TooLong(error)),
                        None => self.lose(cx),
                    };
                }
            }
        }
    }

    fn on_frame(&mut self, cx: &mut Cx<'_>, frame: &Frame) {
        match frame.tag {
            frame::TAG_EVENT => self.on_notification(cx, &frame.payload),
            frame::TAG_IOF => self.streams.on_output(cx, &frame.payload),
            tag if tag >= frame::FIRST_REQUEST_TAG => match cx.link.pending.remove(tag) {
                Some(entry) => self.on_reply(cx, tag, entry, &frame.payload),
                None => tracing::warn!(tag, "the server answered what was not asked"),
            },
            tag => tracing::debug!(tag, "a message that a client does not take"),
        }
    }

    pub(super) fn on_job_data(&mut self, cx: &mut Cx<'_>, payload: &[u8]) {
        match load_job_data(cx.link, payload) {
            Err(error) => self.fail_init(cx, error),
            Ok(()) if is_to_be_held(cx) => hold(cx),
            Ok(()) => cx.become_ready(),
        }
    }

    pub(super) fn on_closed(&mut self, cx: &mut Cx<'_>, reason: CloseReason) {
        match &cx.link.phase {
            Phase::Idle | Phase::Alone | Phase::Lost | Phase::Ended => {}
            Phase::ExpectOpened(_) if reason == CloseReason::Foreign => self.give_up(cx, InitError::Foreign),
            Phase::ExpectOpened(_) => self.give_up(cx, InitError::Unreachable),
            Phase::ExpectHelloReply { .. } | Phase::ExpectJobData(_) | Phase::ExpectRelease { .. } => {
                self.give_up(cx, InitError::TurnedAway);
            }
            Phase::Ready | Phase::Finalizing => {
                tracing::debug!(?reason, "the connection to the server has ended");
                self.lose(cx);
            }
        }
    }

    /// Ends all pending requests, then runs the handlers registered for the loss.
    fn lose(&mut self, cx: &mut Cx<'_>) {
        let finalizing = matches!(cx.link.phase, Phase::Finalizing);
        cx.link.phase = if finalizing { Phase::Ended } else { Phase::Lost };
        self.shared.clear();
        for entry in cx.link.pending.take_all() {
            let result = entry.what.failed(Status::ERR_LOST_CONNECTION);
            cx.give_back(entry.call, result);
        }
        if !finalizing && let Some(source) = cx.link.server() {
            let event = Event {
                code: Status::ERR_LOST_CONNECTION,
                source: source.clone(),
                range: Range::PROC_LOCAL,
                info: Vec::new(),
            };
            self.handlers().run(cx, event);
        }
    }

    pub(super) fn fail_init(&mut self, cx: &mut Cx<'_>, error: InitError) {
        cx.out.push(Output::Close { conn: SERVER });
        self.give_up(cx, error);
    }

    fn give_up(&mut self, cx: &mut Cx<'_>, error: InitError) {
        cx.link.phase = Phase::Ended;
        cx.link.pending.take_all();
        self.shared.clear();
        cx.end_init(Err(error));
    }

    /// Ends everything that is overdue.
    pub(super) fn on_time(&mut self, cx: &mut Cx<'_>) {
        if cx.link.phase.deadline().is_some_and(|deadline| deadline <= cx.now) {
            return self.fail_init(cx, InitError::TimedOut);
        }
        while let Some(tag) = cx.link.pending.take_overdue(cx.now) {
            let Some(entry) = cx.link.pending.get_mut(tag) else { continue };
            if let Awaited::Invitation(_) = entry.what {
                self.inviting().on_invitation_overdue(cx, tag);
                continue;
            }
            let call = entry.call.take();
            match &entry.what {
                Awaited::LastFence => say_goodbye(cx, call),
                Awaited::Finalize => on_goodbye(cx, call),
                Awaited::Join { .. } => {
                    // No reply will come: the entry goes at once.
                    cx.link.pending.remove(tag);
                    cx.give_back(call, ClientReturn::Group(Err(Status::ERR_TIMEOUT)));
                }
                what => {
                    let result = what.failed(Status::ERR_TIMEOUT);
                    cx.give_back(call, result);
                }
            }
        }
    }

    fn on_notification(&mut self, cx: &mut Cx<'_>, payload: &[u8]) {
        let Notification { code, source, info, range } =
            match Notification::decode(payload, cx.link.config.dialect) {
                Ok(notification) => notification,
                Err(error) => return tracing::warn!(%error, "an event that cannot be read"),
            };
        if matches!(cx.link.phase, Phase::ExpectRelease { .. }) && code == Status::DEBUGGER_RELEASE {
            return on_release(cx);
        }
        if info.find(VALUES_GONE).is_some() {
            return cx.link.store.forget_values(&procs(&info, VALUES_GONE));
        }
        // The process that raised it may have committed before.
        cx.link.store.outdate_collected();
        let event = Event { code, source, range: range.unwrap_or(Range::UNDEF), info };
        if self.inviting().on_group_event(cx, &event) {
            self.handlers().run(cx, event);
        }
    }
}

fn load_job_data(link: &Link, payload: &[u8]) -> Result<(), InitError> {
    let (nspace, items) = JobData::items(payload, link.config.dialect).map_err(InitError::Malformed)?;
    if nspace != link.config.proc.nspace {
        return Err(InitError::WrongJob { got: nspace });
    }
    link.store.load_items(&nspace, items).map_err(InitError::Malformed)?;
    if let Some(server) = &link.config.server {
        link.store.keep(&link.config.proc, Kval::new(keys::SERVER_URI, server.to_string()));
    }
    Ok(())
}
