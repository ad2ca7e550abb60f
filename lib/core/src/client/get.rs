//! Get: a value of another process or of a job.
//!
//! The program's thread has looked into the store before it came here. The answer is loaded into the store and looked up
//! again, so that the same rules apply to a value wherever it comes from.

mod shared;
mod told;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::get::{self, Get, OwnerData, RefreshCache, RefreshReply};
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, InfoList};

use super::call::ClientReturn;
use super::group::Groups;
use super::link::{Cx, Link};
use super::pending::Awaited;
use crate::machine::{CallId, Output};
use crate::store::{Lookup, LookupRequest, Realm, Store};
pub(super) use shared::SharedGets;
use shared::may_share;
use told::{load, spoken_value};

/// Directives that decide whether, and for how long, the server is asked.
pub(super) const ATTRIBUTES: &[&str] =
    &[keys::OPTIONAL, keys::IMMEDIATE, keys::GET_REFRESH_CACHE, keys::TIMEOUT];

pub(super) fn on_get(
    cx: &mut Cx<'_>,
    shared: &mut SharedGets,
    groups: &Groups,
    id: CallId,
    mut request: LookupRequest,
    info: Vec<Info>,
) {
    if let Some([member]) = groups.members_named(&request.proc).as_deref() {
        request.proc = member.clone();
    }
    let known = match cx.link.store.lookup(&request) {
        Lookup::Hit(value) => Ok(value),
        Lookup::AskServer if !cx.is_alone() => return ask_for_value(cx, shared, id, request, info),
        Lookup::AskServer | Lookup::Absent => Err(Status::ERR_NOT_FOUND),
    };
    cx.out.push(Output::Return { id, result: ClientReturn::Value(known) });
}

fn ask_for_value(
    cx: &mut Cx<'_>,
    shared: &mut SharedGets,
    id: CallId,
    request: LookupRequest,
    mut info: Vec<Info>,
) {
    let nspace = request.proc.nspace.clone();
    let rank = match &request.realm {
        // The value belongs to no rank; servers then take the owner from the infos.
        Realm::Node { .. } | Realm::App { .. } => Rank::UNDEF,
        _ => request.proc.rank,
    };
    if request.refresh && cx.link.config.dialect.release.major >= 5 {
        let refresh = Request::RefreshCache(RefreshCache { nspace, rank });
        return cx.ask(Some(id), &refresh, Awaited::Refresh { request }, &info);
    }
    if may_share(cx.link, &request, &info) {
        return shared.ask(cx, id, request, info);
    }
    if request.is_for_job_data_of(&cx.link.config.proc) && info.find(keys::IMMEDIATE).is_none() {
        info.push(Info::new(keys::IMMEDIATE, true));
    }
    let get = Request::Get(Get { nspace, rank, info: info.clone(), key: request.key.clone() });
    cx.ask(Some(id), &get, Awaited::Get { request }, &info);
}

pub(super) fn got(link: &Link, request: &LookupRequest, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
    let reply = get::Reply::decode(payload, link.config.dialect)?;
    let mut spoken = None;
    let apart = (!link.remembers).then(|| Store::new(link.config.proc.clone()));
    let store = apart.as_ref().unwrap_or(&link.store);
    for data in reply.data {
        spoken = spoken.or_else(|| spoken_value(request, &data));
        load(link, store, data)?;
    }
    let value = store.known(request).or(spoken);
    let absent = if reply.status.is_success() { Status::ERR_NOT_FOUND } else { reply.status };
    Ok(ClientReturn::Value(value.ok_or(absent)))
}

/// The status is ignored: 5.0.11 sends uninitialized memory.
pub(super) fn refreshed(
    link: &Link,
    request: &LookupRequest,
    payload: &[u8],
) -> Result<ClientReturn, DecodeError> {
    let reply = RefreshReply::decode(payload, link.config.dialect)?;
    load(link, &link.store, OwnerData { owner: request.proc.clone(), values: reply.values })?;
    Ok(ClientReturn::Value(link.store.known(request).ok_or(Status::ERR_NOT_FOUND)))
}
