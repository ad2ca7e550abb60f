//! Query: sends questions to the server and its host, and adds to their answer what this library itself honours.

use phalanx_spec::{Status, functions, keys};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::{Body, HostRequest, InfoReply, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{DataArray, Info, Query};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::{Awaited, list};
use super::{debug, event, finalize, get, group, invite};
use crate::machine::{CallId, Output};
use crate::store;
use crate::support::{self, Honoured, Layer, OuterSupport};

/// What each function honours before the request goes to the server.
const FUNCTIONS: &[Honoured] = &[
    (functions::CONNECT, TIMED),
    (functions::DISCONNECT, TIMED),
    (functions::FENCE, TIMED),
    (functions::FINALIZE, &[finalize::ATTRIBUTES]),
    (functions::GET, &[get::ATTRIBUTES, store::LOOKUP_ATTRIBUTES]),
    (functions::GROUP_CONSTRUCT, &[group::ATTRIBUTES]),
    (functions::GROUP_DESTRUCT, TIMED),
    (functions::GROUP_INVITE, &[invite::INVITE_ATTRIBUTES]),
    (functions::GROUP_JOIN, TIMED),
    (functions::GROUP_LEAVE, TIMED),
    (functions::IOF_PUSH, TIMED),
    (functions::IOF_PULL, TIMED),
    (functions::INIT, &[debug::ATTRIBUTES]),
    (functions::LOG, TIMED),
    (functions::LOOKUP, TIMED),
    (functions::PROCESS_MONITOR, TIMED),
    (functions::PUBLISH, TIMED),
    (functions::QUERY_INFO, &[ATTRIBUTES]),
    (functions::REGISTER_EVENT_HANDLER, &[event::ATTRIBUTES]),
    (functions::SPAWN, TIMED),
    (functions::UNPUBLISH, TIMED),
];

/// The same for requests that are only passed on.
const PASSED_ON: &[Honoured] = &{
    let mut rows = [("", TIMED); HostRequest::FUNCTIONS.len()];
    let mut row = 0;
    while row < rows.len() {
        let (function, takes_directives) = HostRequest::FUNCTIONS[row];
        rows[row] = (function, if takes_directives { TIMED } else { &[] });
        row += 1;
    }
    rows
};

/// Calls that wait for the server honour a time limit.
const TIMED: &[&[&str]] = &[&[keys::TIMEOUT]];

const ATTRIBUTES: &[&str] = &[
    keys::QUERY_ATTRIBUTE_SUPPORT,
    keys::CLIENT_ATTRIBUTES,
    keys::CLIENT_FUNCTIONS,
    keys::TOOL_ATTRIBUTES,
    keys::TOOL_FUNCTIONS,
    keys::TIMEOUT,
];

pub(super) fn on_query(cx: &mut Cx<'_>, outer: &OuterSupport, id: CallId, request: Queries) {
    let own: Vec<Info> = request.queries.iter().flat_map(|query| own_support(outer, query)).collect();
    if own.is_empty() {
        return ask_query(cx, id, request, None);
    }
    let own = Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(own));
    let others = |query: &Query| {
        let others = [Layer::Server, Layer::Host].iter().any(|layer| layer.is_asked(&query.qualifiers));
        others || query.keys.iter().any(|key| *key != keys::QUERY_ATTRIBUTE_SUPPORT)
    };
    if cx.is_alone() || !request.queries.iter().any(others) {
        let result = ClientReturn::Infos(Status::SUCCESS, vec![own]);
        return cx.out.push(Output::Return { id, result });
    }
    ask_query(cx, id, request, Some(own));
}

fn ask_query(cx: &mut Cx<'_>, id: CallId, request: Queries, own: Option<Info>) {
    let queries = &request.queries;
    let keys: Vec<_> = queries.iter().flat_map(|query| &query.keys).collect();
    let awaited = Awaited::Query { keys: list(&keys), own };
    let qualifiers: Vec<Info> = queries.iter().flat_map(|query| query.qualifiers.iter().cloned()).collect();
    cx.ask(Some(id), &Request::Query(request), awaited, &qualifiers);
}

/// Client and tool are one library.
fn own_support(outer: &OuterSupport, query: &Query) -> Vec<Info> {
    if !query.keys.iter().any(|key| *key == keys::QUERY_ATTRIBUTE_SUPPORT) {
        return Vec::new();
    }
    let common = [FUNCTIONS, PASSED_ON, outer.client];
    let mut all = Layer::Client.answer(&common, &query.qualifiers);
    all.extend(Layer::Tool.answer(&[&common[..], &[outer.tool]].concat(), &query.qualifiers));
    all
}

/// The answer to a query, with this library's own part.
pub(super) fn answered(
    own: Option<Info>,
    payload: &[u8],
    dialect: Dialect,
) -> Result<ClientReturn, DecodeError> {
    let InfoReply { status, mut info } = InfoReply::decode(payload, dialect)?;
    let Some(own) = own else { return Ok(ClientReturn::Infos(status, info)) };
    info.push(own);
    support::join(&mut info);
    let status = if status.is_success() { status } else { Status::QUERY_PARTIAL_SUCCESS };
    Ok(ClientReturn::Infos(status, info))
}

/// A reply that holds a status and infos.
pub(super) fn infos(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let InfoReply { status, info } = InfoReply::decode(payload, dialect)?;
    Ok(ClientReturn::Infos(status, info))
}
