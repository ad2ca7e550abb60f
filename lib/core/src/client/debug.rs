//! A debugger may hold a process in init until it has attached.
//!
//! The job data request it (`pmix.dbg.init`). The process registers for `PMIX_DEBUGGER_RELEASE`, announces that it is ready,
//! and stays in init until that event arrives.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::event::{DeregisterEvents, Notify, RegisterEvents};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::{Info, Key};

use super::link::Cx;
use super::pending::Awaited;
use super::phase::{InitError, Phase};
use crate::stop::names;
use crate::store::LookupRequest;

/// The directive that holds a process, in its job's data.
pub(super) const ATTRIBUTES: &[&str] = &[keys::DEBUG_STOP_IN_INIT];

/// The directive names ranks, or all of them by being true or the wildcard.
pub(super) fn is_to_be_held(cx: &Cx<'_>) -> bool {
    let me = &cx.link.config.proc;
    let key = Some(Key::of(keys::DEBUG_STOP_IN_INIT));
    match cx.link.store.known(&LookupRequest::new(me.clone(), key, &[])) {
        Some(value) => names(&value, me.rank),
        None => false,
    }
}

pub(super) fn hold(cx: &mut Cx<'_>) {
    cx.link.phase = Phase::ExpectRelease { since: cx.now };
    let wish = RegisterEvents { codes: vec![Status::DEBUGGER_RELEASE], info: Vec::new() };
    cx.ask(None, &Request::RegisterEvents(wish), Awaited::Hold, &[]);
}

pub(super) fn on_hold(cx: &mut Cx<'_>, payload: &[u8]) -> Result<(), InitError> {
    let StatusReply(status) =
        StatusReply::decode(payload, cx.link.config.dialect).map_err(InitError::Malformed)?;
    if !status.is_success() {
        return Err(InitError::Refused(status));
    }
    let mut info = vec![Info::new(keys::EVENT_NON_DEFAULT, true), Info::new(keys::BREAKPOINT, "pmix-init")];
    let code = Status::READY_FOR_DEBUG;
    // For the server's host. Servers of 6.1 do not pass on events with the range of the resource manager; clients of 4.2 use that
    // range.
    let names_server = cx.link.config.dialect.release.major >= 5;
    let range = match cx.link.server().filter(|_| names_server) {
        Some(server) => {
            info.push(Info::new(keys::EVENT_CUSTOM_RANGE, server.clone()));
            Range::CUSTOM
        }
        None => Range::RM,
    };
    let ready = Request::Notify(Notify { code, range, info });
    let awaited = Awaited::Status { operation: "notify", subject: code.to_string() };
    cx.ask(None, &ready, awaited, &[]);
    Ok(())
}

pub(super) fn on_release(cx: &mut Cx<'_>) {
    let codes = vec![Status::DEBUGGER_RELEASE];
    cx.tell(&Request::DeregisterEvents(DeregisterEvents { codes }));
    cx.become_ready();
}
