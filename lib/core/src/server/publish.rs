//! Publish, lookup and unpublish: the host keeps what is published, for all servers.
//!
//! Clients mix data and directives in one list: reserved keys are directives, the rest is data. The claimed uid is ignored;
//! the host is told the kernel's.

use phalanx_spec::{Persistence, Range, Status, keys};
use phalanx_wire::cmd::publish::{Lookup, Publish, Unpublish};
use phalanx_wire::{Info, InfoList, Value};

use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::HostOp;

pub(super) const PUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE, keys::PERSISTENCE];
pub(super) const LOOKUP_ATTRIBUTES: &[&str] = &[keys::RANGE];
pub(super) const UNPUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE];

impl Server {
    pub(super) fn on_publish(&mut self, cx: &mut Cx<'_>, from: Asker, publish: Publish) {
        let (mut info, data): (Vec<Info>, Vec<Info>) =
            publish.info.into_iter().partition(|i| i.key.is_reserved());
        if data.is_empty() {
            return self.answer(cx, &from, Status::ERR_BAD_PARAM);
        }
        let range = range(&info);
        let persistence = match info.find(keys::PERSISTENCE) {
            Some(Value::Persistence(persistence)) => *persistence,
            _ => Persistence::APP,
        };
        info.extend(from.identity());
        let (proc, uid) = (from.proc.clone(), from.uid);
        let op = HostOp::Publish { from: proc.clone(), uid, data, range, persistence, info };
        self.call_host(cx, Some(&proc), op, Then::Answer(from));
    }

    pub(super) fn on_lookup(&mut self, cx: &mut Cx<'_>, from: Asker, lookup: Lookup) {
        if lookup.keys.is_empty() {
            return self.answer(cx, &from, Status::ERR_BAD_PARAM);
        }
        let range = range(&lookup.info);
        let mut info = lookup.info;
        info.extend(from.identity());
        let (proc, uid) = (from.proc.clone(), from.uid);
        let op = HostOp::Lookup { from: proc.clone(), uid, keys: lookup.keys, range, info };
        self.call_host(cx, Some(&proc), op, Then::AnswerLookup(from));
    }

    pub(super) fn on_unpublish(&mut self, cx: &mut Cx<'_>, from: Asker, unpublish: Unpublish) {
        let range = range(&unpublish.info);
        let mut info = unpublish.info;
        info.extend(from.identity());
        let (proc, uid) = (from.proc.clone(), from.uid);
        let op = HostOp::Unpublish { from: proc.clone(), uid, keys: unpublish.keys, range, info };
        self.call_host(cx, Some(&proc), op, Then::Answer(from));
    }
}

/// The session is the default.
fn range(info: &[Info]) -> Range {
    match info.find(keys::RANGE) {
        Some(Value::Range(range)) => *range,
        _ => Range::SESSION,
    }
}
