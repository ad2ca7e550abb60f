//! A debugger may hold a process in init until it has attached.
//!
//! The job data say so (`pmix.dbg.init`). The process asks to be told of `PMIX_DEBUGGER_RELEASE`, announces that it is ready,
//! and stays in init until that event comes.

use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::cmd::event::{DeregisterEvents, Notify, RegisterEvents};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::{Info, Key, Value};

use super::handshake::Phase;
use super::pending::Awaited;
use super::{Client, InitError, Out};
use crate::machine::Time;
use crate::store::LookupRequest;

/// What holds a process there stands among its job's data.
pub(super) const ATTRIBUTES: &[&str] = &[keys::DEBUG_STOP_IN_INIT];

impl Client {
    /// The directive names ranks or, by being true or the wildcard, all.
    pub(super) fn is_to_be_held(&self) -> bool {
        let me = &self.config.proc;
        let key = Some(Key::of(keys::DEBUG_STOP_IN_INIT));
        match self.store.known(&LookupRequest::new(me.clone(), key, &[])) {
            Some(value) => names(&value, me.rank),
            None => false,
        }
    }

    pub(super) fn hold(&mut self, now: Time, out: &mut Out) {
        self.phase = Phase::ExpectRelease { since: now };
        let wish = RegisterEvents { codes: vec![Status::DEBUGGER_RELEASE], info: Vec::new() };
        self.ask(now, None, &Request::RegisterEvents(wish), Awaited::Hold, &[], out);
    }

    pub(super) fn on_hold(&mut self, now: Time, payload: &[u8], out: &mut Out) {
        match StatusReply::decode(payload, self.config.dialect) {
            Err(error) => self.fail_init(InitError::Malformed(error), out),
            Ok(StatusReply(status)) if !status.is_success() => {
                self.fail_init(InitError::Refused(status), out)
            }
            Ok(_) => {
                let info =
                    vec![Info::new(keys::EVENT_NON_DEFAULT, true), Info::new(keys::BREAKPOINT, "pmix-init")];
                let code = Status::READY_FOR_DEBUG;
                let ready = Request::Notify(Notify { code, range: Range::RM, info });
                let awaited = Awaited::Status { operation: "notify", subject: code.to_string() };
                self.ask(now, None, &ready, awaited, &[], out);
            }
        }
    }

    pub(super) fn on_release(&mut self, out: &mut Out) {
        let codes = vec![Status::DEBUGGER_RELEASE];
        self.tell(&Request::DeregisterEvents(DeregisterEvents { codes }), out);
        self.become_ready(out);
    }
}

fn names(value: &Value, rank: Rank) -> bool {
    match value {
        Value::Rank(one) => *one == rank || *one == Rank::WILDCARD,
        Value::DataArray(array) => array.items.iter().any(|one| names(one, rank)),
        value => value.is_true(),
    }
}
