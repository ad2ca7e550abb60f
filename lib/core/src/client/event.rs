//! Events: registration of handlers, raising of events, and what the server reports.
//!
//! The server sends an event to a process that has registered its code, never to the one that raised it: whose own handlers
//! run here. Which handlers run, in which order, `chain.rs` knows.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::Info;
use phalanx_wire::cmd::event::{DeregisterEvents, Notification, Notify, RegisterEvents};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::DecodeError;

use super::chain::{Handler, Turn, procs};
use super::handshake::Phase;
use super::pending::Awaited;
use super::{Client, ClientDelivery, ClientReturn, Out, Verdict};
use crate::host::Event;
use crate::machine::{CallId, DeliveryId, HandlerId, Output, Time};

impl Client {
    pub(super) fn on_register_events(
        &mut self,
        now: Time,
        id: CallId,
        handler: HandlerId,
        codes: Vec<Status>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let done = |status| Output::Return { id, result: ClientReturn::Done(status) };
        if !matches!(self.phase, Phase::Ready | Phase::Alone | Phase::Lost) {
            return out.push(done(Status::ERR_INIT));
        }
        let new = Handler::new(handler, codes.clone(), &info);
        let stays_here = new.stays_here;
        let info: Vec<_> = info.into_iter().filter(is_for_server).collect();
        let is_news = match codes.is_empty() {
            true => !self.chains.needs(None),
            false => codes.iter().any(|code| !self.chains.needs(Some(*code))),
        };
        if let Err(status) = self.chains.add(new) {
            return out.push(done(status));
        }
        for turn in self.chains.start_kept(now, &self.config.proc) {
            self.deliver(Some(turn), out);
        }
        let concerns_server = !stays_here && (is_news || !info.is_empty());
        if !concerns_server || !matches!(self.phase, Phase::Ready) {
            return out.push(done(Status::SUCCESS));
        }
        let request = Request::RegisterEvents(RegisterEvents { codes, info: info.clone() });
        self.ask(now, Some(id), &request, Awaited::Registration { handler }, &info, out);
    }

    pub(super) fn registered(
        &mut self,
        handler: HandlerId,
        payload: &[u8],
    ) -> Result<ClientReturn, DecodeError> {
        let reply = StatusReply::decode(payload, self.config.dialect);
        if !matches!(reply, Ok(StatusReply(status)) if status.is_success()) {
            self.chains.remove(handler);
        }
        reply.map(|StatusReply(status)| ClientReturn::Done(status))
    }

    pub(super) fn on_deregister_events(&mut self, id: CallId, handler: HandlerId, out: &mut Out) {
        // A one-shot handler may have run meanwhile: that it is gone is all that was asked for.
        if let Some(gone) = self.chains.remove(handler) {
            self.forget_codes(&gone, out);
        }
        out.push(Output::Return { id, result: ClientReturn::Done(Status::SUCCESS) });
    }

    /// Tells the server which codes nobody here waits for any more.
    fn forget_codes(&mut self, gone: &Handler, out: &mut Out) {
        if gone.stays_here {
            return;
        }
        let codes: Vec<_> = match gone.codes.is_empty() {
            true if self.chains.needs(None) => Vec::new(),
            true => vec![EVERY_CODE],
            false => {
                let needed = |code| self.chains.needs(Some(code)) || self.needs_for_groups(code);
                gone.codes.iter().copied().filter(|code| !needed(*code)).collect()
            }
        };
        if !codes.is_empty() {
            self.tell(&Request::DeregisterEvents(DeregisterEvents { codes }), out);
        }
    }

    pub(super) fn on_notify(
        &mut self,
        now: Time,
        id: CallId,
        code: Status,
        range: Range,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let me = self.config.proc.clone();
        let targets = procs(&info, keys::EVENT_CUSTOM_RANGE);
        let for_me = match range {
            Range::RM => false,
            Range::CUSTOM => targets.iter().any(|target| target.covers(&me)),
            _ => true,
        };
        if range == Range::PROC_LOCAL || self.is_alone() {
            self.give_back(Some(id), ClientReturn::Done(Status::SUCCESS), out);
        } else {
            let request = Request::Notify(Notify { code, range, info: info.clone() });
            let awaited = Awaited::Status { operation: "notify", subject: code.to_string() };
            self.ask(now, Some(id), &request, awaited, &info, out);
        }
        if for_me {
            let event = Event { code, source: me.clone(), range, info };
            let turn = self.chains.start_own(now, event, &me);
            self.deliver(turn, out);
        }
    }

    pub(super) fn on_notification(&mut self, now: Time, payload: &[u8], out: &mut Out) {
        let Notification { code, source, info, range } =
            match Notification::decode(payload, self.config.dialect) {
                Ok(notification) => notification,
                Err(error) => return tracing::warn!(%error, "an event that cannot be read"),
            };
        if matches!(self.phase, Phase::ExpectRelease { .. }) && code == Status::DEBUGGER_RELEASE {
            return self.on_release(out);
        }
        // Whoever raised it may have committed before.
        self.store.outdate_collected();
        let event = Event { code, source, range: range.unwrap_or(Range::UNDEF), info };
        self.on_group_event(now, &event, out);
        self.run_chain(now, event, out);
    }

    pub(super) fn run_chain(&mut self, now: Time, event: Event, out: &mut Out) {
        let turn = self.chains.start(now, event, &self.config.proc);
        self.deliver(turn, out);
    }

    pub(super) fn on_handled(&mut self, now: Time, delivery: DeliveryId, verdict: Verdict, out: &mut Out) {
        let turn = self.chains.go_on(now, delivery, verdict);
        self.deliver(turn, out);
    }

    fn deliver(&mut self, turn: Option<Turn>, out: &mut Out) {
        let Some(Turn { delivery, handler, event, results, spent }) = turn else { return };
        out.push(Output::Deliver {
            id: delivery,
            to: handler,
            what: ClientDelivery::Event { event, results },
        });
        if let Some(spent) = spent {
            self.forget_codes(&spent, out);
        }
    }
}

/// Where a handler stands among others, and what it is called, is nobody else's business.
fn is_for_server(info: &Info) -> bool {
    !ATTRIBUTES.iter().any(|key| info.key == **key)
}

/// What a registration says that is acted upon here.
pub(super) const ATTRIBUTES: &[&str] = &[
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
    keys::EVENT_ONESHOT,
    keys::RANGE,
    keys::EVENT_CUSTOM_RANGE,
];

/// Stands for all codes where a default handler is given up (OpenPMIx: `PMIX_MAX_ERR_CONSTANT`).
const EVERY_CODE: Status = Status(i32::MIN);
