//! Publish, lookup and unpublish: the host keeps what is published, for all servers.
//!
//! Clients mix data and directives in one list: reserved keys are directives, the rest is data. The claimed uid is ignored;
//! the host gets the kernel's.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::publish::{LookupReply, Publish, Published};

use super::host::{Then, as_failure};
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{Asked, HostOp, HostReply, PublishedRequest};

pub(super) const PUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE, keys::PERSISTENCE];
pub(super) const LOOKUP_ATTRIBUTES: &[&str] = &[keys::RANGE];
pub(super) const UNPUBLISH_ATTRIBUTES: &[&str] = &[keys::RANGE];

pub(super) fn on_publish(cx: &mut Cx<'_>, from: Asker, publish: Publish) {
    if publish.data().next().is_none() {
        return cx.answer(from, Status::ERR_BAD_PARAM);
    }
    let mut request = Publish { uid: from.uid, ..publish };
    request.info.extend(from.identity());
    let proc = from.proc.clone();
    cx.ask(Some(&proc), HostOp::Publish(Asked { from: proc.clone(), request }), Then::Answer(from));
}

pub(super) fn on_lookup(cx: &mut Cx<'_>, from: Asker, lookup: Published) {
    if lookup.keys.is_empty() {
        return cx.answer(from, Status::ERR_BAD_PARAM);
    }
    let request = wanted(&from, lookup);
    cx.ask(Some(&from.proc.clone()), HostOp::Lookup(request), Then::AnswerLookup(from));
}

pub(super) fn on_unpublish(cx: &mut Cx<'_>, from: Asker, unpublish: Published) {
    let request = wanted(&from, unpublish);
    cx.ask(Some(&from.proc.clone()), HostOp::Unpublish(request), Then::Answer(from));
}

fn wanted(from: &Asker, published: Published) -> PublishedRequest {
    let mut request = Published { uid: from.uid, ..published };
    request.info.extend(from.identity());
    Asked { from: from.proc.clone(), request }
}

pub(super) fn on_looked_up(cx: &mut Cx<'_>, to: Asker, reply: HostReply) {
    let status = reply.status();
    let reply = match reply {
        HostReply::Lookup(Ok(data)) if !data.is_empty() => LookupReply { status: Status::SUCCESS, data },
        HostReply::Lookup(Ok(_)) => LookupReply { status: Status::ERR_NOT_FOUND, data: Vec::new() },
        _ => LookupReply { status: as_failure(status), data: Vec::new() },
    };
    cx.reply(to, |dialect| reply.encode(dialect));
}
