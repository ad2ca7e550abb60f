//! Events: registration of handlers, raising of events, and events from the server.
//!
//! The server sends an event to processes that registered for its code, but not to the one that raised it: that one runs its
//! own handlers here. `chain.rs` decides which handlers run, and in which order.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::Info;
use phalanx_wire::cmd::event::{DeregisterEvents, Notify, RegisterEvents};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::DecodeError;

use super::call::{ClientDelivery, ClientReturn, Verdict};
use super::chain::{Chains, Handler, Turn, procs};
use super::group::Groups;
use super::link::{Cx, Link};
use super::pending::Awaited;
use super::phase::Phase;
use crate::host::Event;
use crate::machine::{CallId, DeliveryId, HandlerId, Output};

/// The handlers of this process, and the groups, which need events from the server as well.
#[derive(Debug)]
pub(super) struct Handlers<'a> {
    pub(super) chains: &'a mut Chains,
    pub(super) groups: &'a Groups,
}

impl Handlers<'_> {
    pub(super) fn on_register_events(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        handler: HandlerId,
        codes: Vec<Status>,
        info: Vec<Info>,
    ) {
        let done = |status| Output::Return { id, result: ClientReturn::Done(status) };
        if !matches!(cx.link.phase, Phase::Ready | Phase::Alone | Phase::Lost) {
            return cx.out.push(done(Status::ERR_INIT));
        }
        let new = Handler::new(handler, codes.clone(), &info);
        let stays_here = new.stays_here;
        let info: Vec<_> = info.into_iter().filter(is_for_server).collect();
        let is_news = match codes.is_empty() {
            true => !self.chains.needs(None),
            false => codes.iter().any(|code| !self.chains.needs(Some(*code))),
        };
        if let Err(status) = self.chains.add(new) {
            return cx.out.push(done(status));
        }
        for turn in self.chains.start_kept(cx.now, &cx.link.config.proc) {
            self.deliver(cx, Some(turn));
        }
        let concerns_server = !stays_here && (is_news || !info.is_empty());
        if !concerns_server || !matches!(cx.link.phase, Phase::Ready) {
            return cx.out.push(done(Status::SUCCESS));
        }
        let request = Request::RegisterEvents(RegisterEvents { codes, info: info.clone() });
        cx.ask(Some(id), &request, Awaited::Registration { handler }, &info);
    }

    pub(super) fn on_deregister_events(&mut self, cx: &mut Cx<'_>, id: CallId, handler: HandlerId) {
        // A one-shot handler may have run meanwhile: it is gone, which is all the caller wants.
        if let Some(gone) = self.chains.remove(handler) {
            self.forget_codes(cx, &gone);
        }
        cx.out.push(Output::Return { id, result: ClientReturn::Done(Status::SUCCESS) });
    }

    /// Deregisters the codes that are not needed here any more.
    fn forget_codes(&mut self, cx: &mut Cx<'_>, gone: &Handler) {
        if gone.stays_here {
            return;
        }
        let codes: Vec<_> = match gone.codes.is_empty() {
            true if self.chains.needs(None) => Vec::new(),
            true => vec![EVERY_CODE],
            false => {
                let needed = |code| self.chains.needs(Some(code)) || self.groups.need(code);
                gone.codes.iter().copied().filter(|code| !needed(*code)).collect()
            }
        };
        if !codes.is_empty() {
            cx.tell(&Request::DeregisterEvents(DeregisterEvents { codes }));
        }
    }

    pub(super) fn on_notify(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        code: Status,
        range: Range,
        info: Vec<Info>,
    ) {
        let me = cx.link.config.proc.clone();
        let targets = procs(&info, keys::EVENT_CUSTOM_RANGE);
        let for_me = match range {
            Range::RM => false,
            Range::CUSTOM => targets.iter().any(|target| target.covers(&me)),
            _ => true,
        };
        if range == Range::PROC_LOCAL || cx.is_alone() {
            cx.give_back(Some(id), ClientReturn::Done(Status::SUCCESS));
        } else {
            let request = Request::Notify(Notify { code, range, info: info.clone() });
            let awaited = Awaited::Status { operation: "notify", subject: code.to_string() };
            cx.ask(Some(id), &request, awaited, &info);
        }
        if for_me {
            let event = Event { code, source: me.clone(), range, info };
            let turn = self.chains.start_own(cx.now, event, &me);
            self.deliver(cx, turn);
        }
    }

    pub(super) fn run(&mut self, cx: &mut Cx<'_>, event: Event) {
        let turn = self.chains.start(cx.now, event, &cx.link.config.proc);
        self.deliver(cx, turn);
    }

    pub(super) fn on_handled(&mut self, cx: &mut Cx<'_>, delivery: DeliveryId, verdict: Verdict) {
        let turn = self.chains.go_on(cx.now, delivery, verdict);
        self.deliver(cx, turn);
    }

    fn deliver(&mut self, cx: &mut Cx<'_>, turn: Option<Turn>) {
        let Some(Turn { delivery, handler, event, results, spent }) = turn else { return };
        cx.out.push(Output::Deliver {
            id: delivery,
            to: handler,
            what: ClientDelivery::Event { event, results },
        });
        if let Some(spent) = spent {
            self.forget_codes(cx, &spent);
        }
    }
}

pub(super) fn registered(
    link: &Link,
    chains: &mut Chains,
    handler: HandlerId,
    payload: &[u8],
) -> Result<ClientReturn, DecodeError> {
    let reply = StatusReply::decode(payload, link.config.dialect);
    if !matches!(reply, Ok(StatusReply(status)) if status.is_success()) {
        chains.remove(handler);
    }
    reply.map(|StatusReply(status)| ClientReturn::Done(status))
}

/// The order and names of handlers matter only here.
fn is_for_server(info: &Info) -> bool {
    !ATTRIBUTES.iter().any(|key| info.key == **key)
}

/// Directives of a registration that are honoured here.
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

/// Means all codes when a default handler is removed (OpenPMIx: `PMIX_MAX_ERR_CONSTANT`).
const EVERY_CODE: Status = Status(i32::MIN);
