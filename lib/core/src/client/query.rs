//! Query: questions to the server and its host. What this library itself honours it adds to their answer.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::query::QueryRequest;
use phalanx_wire::cmd::{Body, InfoReply, Request};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{DataArray, Info, Query};

use super::call::ClientReturn;
use super::link::Cx;
use super::pending::{Awaited, list};
use super::{debug, event, finalize, get, group, invite};
use crate::machine::{CallId, Output};
use crate::store;
use crate::support::{self, Honoured, Layer, OuterSupport};

/// What each function honours before the server hears of it.
const FUNCTIONS: &[Honoured] = &[
    ("PMIx_Allocation_request", TIMED),
    ("PMIx_Connect", TIMED),
    ("PMIx_Disconnect", TIMED),
    ("PMIx_Fabric_register", TIMED),
    ("PMIx_Fence", TIMED),
    ("PMIx_Finalize", &[finalize::ATTRIBUTES]),
    ("PMIx_Get", &[get::ATTRIBUTES, store::LOOKUP_ATTRIBUTES]),
    ("PMIx_Get_credential", TIMED),
    ("PMIx_Group_construct", &[group::ATTRIBUTES]),
    ("PMIx_Group_destruct", TIMED),
    ("PMIx_Group_invite", &[invite::INVITE_ATTRIBUTES]),
    ("PMIx_Group_join", TIMED),
    ("PMIx_Group_leave", TIMED),
    ("PMIx_IOF_push", TIMED),
    ("PMIx_IOF_pull", TIMED),
    ("PMIx_Init", &[debug::ATTRIBUTES]),
    ("PMIx_Job_control", TIMED),
    ("PMIx_Log", TIMED),
    ("PMIx_Lookup", TIMED),
    ("PMIx_Process_monitor", TIMED),
    ("PMIx_Publish", TIMED),
    ("PMIx_Query_info", &[ATTRIBUTES]),
    ("PMIx_Register_event_handler", &[event::ATTRIBUTES]),
    ("PMIx_Resource_block", TIMED),
    ("PMIx_Session_control", TIMED),
    ("PMIx_Spawn", TIMED),
    ("PMIx_Unpublish", TIMED),
    ("PMIx_Validate_credential", TIMED),
];

/// Whatever waits for the server ends with the time given.
const TIMED: &[&[&str]] = &[&[keys::TIMEOUT]];

const ATTRIBUTES: &[&str] = &[
    keys::QUERY_ATTRIBUTE_SUPPORT,
    keys::CLIENT_ATTRIBUTES,
    keys::CLIENT_FUNCTIONS,
    keys::TOOL_ATTRIBUTES,
    keys::TOOL_FUNCTIONS,
    keys::TIMEOUT,
];

pub(super) fn on_query(cx: &mut Cx<'_>, outer: &OuterSupport, id: CallId, queries: Vec<Query>) {
    let own: Vec<Info> = queries.iter().flat_map(|query| own_support(outer, query)).collect();
    if own.is_empty() {
        return ask_query(cx, id, queries, None);
    }
    let own = Info::new(keys::QUERY_ATTRIBUTE_SUPPORT, DataArray::of_infos(own));
    let others = |query: &Query| {
        let others = [Layer::Server, Layer::Host].iter().any(|layer| layer.is_asked(&query.qualifiers));
        others || query.keys.iter().any(|key| *key != keys::QUERY_ATTRIBUTE_SUPPORT)
    };
    if cx.is_alone() || !queries.iter().any(others) {
        let result = ClientReturn::Infos(Status::SUCCESS, vec![own]);
        return cx.out.push(Output::Return { id, result });
    }
    ask_query(cx, id, queries, Some(own));
}

fn ask_query(cx: &mut Cx<'_>, id: CallId, queries: Vec<Query>, own: Option<Info>) {
    let keys: Vec<_> = queries.iter().flat_map(|query| &query.keys).collect();
    let awaited = Awaited::Query { keys: list(&keys), own };
    let qualifiers: Vec<Info> = queries.iter().flat_map(|query| query.qualifiers.iter().cloned()).collect();
    cx.ask(Some(id), &Request::Query(QueryRequest { queries }), awaited, &qualifiers);
}

/// A client and a tool are one library.
fn own_support(outer: &OuterSupport, query: &Query) -> Vec<Info> {
    if !query.keys.iter().any(|key| *key == keys::QUERY_ATTRIBUTE_SUPPORT) {
        return Vec::new();
    }
    let common = [FUNCTIONS, outer.client];
    let mut all = Layer::Client.answer(&common, &query.qualifiers);
    all.extend(Layer::Tool.answer(&[&common[..], &[outer.tool]].concat(), &query.qualifiers));
    all
}

/// The answer to a query, with what this library says of itself.
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
