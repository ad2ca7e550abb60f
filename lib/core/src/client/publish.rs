//! Publish, lookup, unpublish: values that are found by key alone, whoever published them.

use phalanx_spec::keys;
use phalanx_wire::cmd::publish::{Lookup, LookupReply, Publish, Unpublish};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Info, Key};

use super::pending::{Awaited, list};
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_publish(&mut self, now: Time, id: CallId, info: Vec<Info>, out: &mut Out) {
        let data: Vec<_> = info.iter().map(|i| &i.key).filter(|key| !is_directive(key)).collect();
        let awaited = Awaited::Status { operation: "publish", subject: list(&data) };
        let request = Request::Publish(Publish { euid: self.config.uid, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn on_lookup(
        &mut self,
        now: Time,
        id: CallId,
        keys: Vec<Key>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Lookup { keys: keys.clone() };
        let request = Request::Lookup(Lookup { euid: self.config.uid, keys, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }

    pub(super) fn on_unpublish(
        &mut self,
        now: Time,
        id: CallId,
        keys: Vec<Key>,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        let awaited = Awaited::Status { operation: "unpublish", subject: list(&keys) };
        let request = Request::Unpublish(Unpublish { euid: self.config.uid, keys, info: info.clone() });
        self.ask(now, Some(id), &request, awaited, &info, out);
    }
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
