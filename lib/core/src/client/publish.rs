//! Publish, lookup, unpublish: values that are found by key alone, whoever published them.

use phalanx_spec::keys;
use phalanx_wire::cmd::publish::{LookupReply, Publish, Published};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Info, Key};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::{Awaited, list};
use crate::machine::CallId;

pub(super) fn on_publish(cx: &mut Cx<'_>, id: CallId, info: Vec<Info>) {
    let data: Vec<_> = info.iter().map(|i| &i.key).filter(|key| !is_directive(key)).collect();
    let awaited = Awaited::Status { operation: "publish", subject: list(&data) };
    let request = Request::Publish(Publish { euid: cx.link.config.uid, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn on_lookup(cx: &mut Cx<'_>, id: CallId, keys: Vec<Key>, info: Vec<Info>) {
    let awaited = Awaited::Lookup { keys: keys.clone() };
    let request = Request::Lookup(Published { euid: cx.link.config.uid, keys, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
}

pub(super) fn on_unpublish(cx: &mut Cx<'_>, id: CallId, keys: Vec<Key>, info: Vec<Info>) {
    let awaited = Awaited::Status { operation: "unpublish", subject: list(&keys) };
    let request = Request::Unpublish(Published { euid: cx.link.config.uid, keys, info: info.clone() });
    cx.ask(Some(id), &request, awaited, &info);
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
