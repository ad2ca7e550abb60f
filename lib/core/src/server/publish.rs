//! Publish, lookup and unpublish: the host keeps what is published, for all servers.
//!
//! Clients mix data and directives in one list: reserved keys are directives, the rest is data. The claimed uid is ignored;
//! the host is told the kernel's.

use phalanx_spec::{Persistence, Range, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::publish::{Lookup, LookupReply, Publish, Unpublish};
use phalanx_wire::{Info, InfoList, Value};

use super::host::{Then, as_failure};
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{HostOp, HostReply, LookupRequested, PublishRequest, UnpublishRequest};

pub(super) const PUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE, keys::PERSISTENCE];
pub(super) const LOOKUP_ATTRIBUTES: &[&str] = &[keys::RANGE];
pub(super) const UNPUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE];

pub(super) fn on_publish(cx: &mut Cx<'_>, from: Asker, publish: Publish) {
    let (mut info, data): (Vec<Info>, Vec<Info>) =
        publish.info.into_iter().partition(|i| i.key.is_reserved());
    if data.is_empty() {
        return cx.answer(&from, Status::ERR_BAD_PARAM);
    }
    let range = range(&info);
    let persistence = match info.find(keys::PERSISTENCE) {
        Some(Value::Persistence(persistence)) => *persistence,
        _ => Persistence::APP,
    };
    info.extend(from.identity());
    let (proc, uid) = (from.proc.clone(), from.uid);
    let op = HostOp::Publish(PublishRequest { from: proc.clone(), uid, data, range, persistence, info });
    cx.ask(Some(&proc), op, Then::Answer(from));
}

pub(super) fn on_lookup(cx: &mut Cx<'_>, from: Asker, lookup: Lookup) {
    if lookup.keys.is_empty() {
        return cx.answer(&from, Status::ERR_BAD_PARAM);
    }
    let range = range(&lookup.info);
    let mut info = lookup.info;
    info.extend(from.identity());
    let (proc, uid) = (from.proc.clone(), from.uid);
    let op = HostOp::Lookup(LookupRequested { from: proc.clone(), uid, keys: lookup.keys, range, info });
    cx.ask(Some(&proc), op, Then::AnswerLookup(from));
}

pub(super) fn on_unpublish(cx: &mut Cx<'_>, from: Asker, unpublish: Unpublish) {
    let range = range(&unpublish.info);
    let mut info = unpublish.info;
    info.extend(from.identity());
    let (proc, uid) = (from.proc.clone(), from.uid);
    let op =
        HostOp::Unpublish(UnpublishRequest { from: proc.clone(), uid, keys: unpublish.keys, range, info });
    cx.ask(Some(&proc), op, Then::Answer(from));
}

pub(super) fn on_looked_up(cx: &mut Cx<'_>, to: &Asker, reply: HostReply) {
    let status = reply.status();
    let reply = match reply {
        HostReply::Lookup(Ok(data)) if !data.is_empty() => LookupReply { status: Status::SUCCESS, data },
        HostReply::Lookup(Ok(_)) => LookupReply { status: Status::ERR_NOT_FOUND, data: Vec::new() },
        _ => LookupReply { status: as_failure(status), data: Vec::new() },
    };
    cx.reply(to, |dialect| reply.encode(dialect));
}

/// The session is the default.
fn range(info: &[Info]) -> Range {
    match info.find(keys::RANGE) {
        Some(Value::Range(range)) => *range,
        _ => Range::SESSION,
    }
}
