//! Query: questions to the server and its host.

use phalanx_wire::cmd::query::QueryRequest;
use phalanx_wire::cmd::{Body, InfoReply, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Info, Query};

use super::pending::{Awaited, list};
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Time};

impl Client {
    pub(super) fn on_query(&mut self, now: Time, id: CallId, queries: Vec<Query>, out: &mut Out) {
        let keys: Vec<_> = queries.iter().flat_map(|query| &query.keys).collect();
        let awaited = Awaited::Infos { operation: "query", subject: list(&keys) };
        let qualifiers: Vec<Info> =
            queries.iter().flat_map(|query| query.qualifiers.iter().cloned()).collect();
        self.ask(now, Some(id), &Request::Query(QueryRequest { queries }), awaited, &qualifiers, out);
    }
}

/// A reply that holds a status and infos.
pub(super) fn infos(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let InfoReply { status, info } = InfoReply::decode(payload, dialect)?;
    Ok(ClientReturn::Infos(status, info))
}
