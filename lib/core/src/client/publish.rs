//! Publish, lookup, unpublish: values that are found by key alone, independent of the publisher.

use phalanx_spec::keys;
use phalanx_wire::Key;
use phalanx_wire::cmd::publish::{LookupReply, Publish, Published};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_publish(cx: &mut Cx<'_>, id: CallId, publish: Publish) {
    let publish = Publish { uid: cx.link.config.uid, ..publish };
    let data: Vec<_> = publish.info.iter().map(|i| &i.key).filter(|key| !is_directive(key)).collect();
    let awaited = Awaited::Status { operation: "publish", subject: list(&data) };
    let info = publish.info.clone();
    cx.ask(Some(id), &Request::Publish(publish), awaited, &info);
}

pub(super) fn on_lookup(cx: &mut Cx<'_>, id: CallId, published: Published) {
    let lookup = Published { uid: cx.link.config.uid, ..published };
    let (awaited, info) = (Awaited::Lookup { keys: lookup.keys.clone() }, lookup.info.clone());
    cx.ask(Some(id), &Request::Lookup(lookup), awaited, &info);
}

pub(super) fn on_unpublish(cx: &mut Cx<'_>, id: CallId, published: Published) {
    let unpublish = Published { uid: cx.link.config.uid, ..published };
    let awaited = Awaited::Status { operation: "unpublish", subject: list(&unpublish.keys) };
    let info = unpublish.info.clone();
    cx.ask(Some(id), &Request::Unpublish(unpublish), awaited, &info);
}

pub(super) fn found(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let LookupReply { status, data } = LookupReply::decode(payload, dialect)?;
    Ok(ClientReturn::Found(status, data))
}

fn is_directive(key: &Key) -> bool {
    [keys::RANGE, keys::PERSISTENCE, keys::TIMEOUT, keys::ACCESS_PERMISSIONS]
        .iter()
        .any(|directive| key == directive)
}
