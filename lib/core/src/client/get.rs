//! Get: a value of another process or of a job.
//!
//! The program's thread has looked into the store before it came here. The answer is loaded into the store and looked up
//! again, so that a value is found by the same rules wherever it comes from.

mod shared;

pub(super) use shared::SharedGets;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::get::{self, Get, OwnerData, RefreshCache, RefreshReply};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Info, InfoList, ProcId, Value};

use super::pending::Awaited;
use super::{Client, ClientReturn, Out};
use crate::machine::{CallId, Output, Time};
use crate::store::{Lookup, LookupRequest, Realm, Store};

/// What decides whether, and for how long, the server is asked.
pub(super) const ATTRIBUTES: &[&str] =
    &[keys::OPTIONAL, keys::IMMEDIATE, keys::GET_REFRESH_CACHE, keys::TIMEOUT];

impl Client {
    pub(super) fn on_get(
        &mut self,
        now: Time,
        id: CallId,
        mut request: LookupRequest,
        info: Vec<Info>,
        out: &mut Out,
    ) {
        if let Some([member]) = self.members_named(&request.proc).as_deref() {
            request.proc = member.clone();
        }
        let known = match self.store.lookup(&request) {
            Lookup::Hit(value) => Ok(value),
            Lookup::AskServer if !self.is_alone() => return self.ask_for_value(now, id, request, info, out),
            Lookup::AskServer | Lookup::Absent => Err(Status::ERR_NOT_FOUND),
        };
        out.push(Output::Return { id, result: ClientReturn::Value(known) });
    }

    fn ask_for_value(
        &mut self,
        now: Time,
        id: CallId,
        request: LookupRequest,
        mut info: Vec<Info>,
        out: &mut Out,
    ) {
        let nspace = request.proc.nspace.clone();
        let rank = match &request.realm {
            // The value belongs to no rank; servers know by this that the infos say whose it is.
            Realm::Node { .. } | Realm::App { .. } => Rank::UNDEF,
            _ => request.proc.rank,
        };
        if request.refresh && self.config.dialect.release.major >= 5 {
            let refresh = Request::RefreshCache(RefreshCache { nspace, rank });
            return self.ask(now, Some(id), &refresh, Awaited::Refresh { request }, &info, out);
        }
        if self.may_share(&request, &info) {
            return self.ask_together(now, id, request, info, out);
        }
        if request.is_for_job_data_of(&self.config.proc) && info.find(keys::IMMEDIATE).is_none() {
            info.push(Info::new(keys::IMMEDIATE, true));
        }
        let get = Request::Get(Get { nspace, rank, info: info.clone(), key: request.key.clone() });
        self.ask(now, Some(id), &get, Awaited::Get { request }, &info, out);
    }

    pub(super) fn got(&self, request: &LookupRequest, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
        let reply = get::Reply::decode(payload, self.config.dialect)?;
        let mut spoken = None;
        let apart = (!self.remembers).then(|| Store::new(self.config.proc.clone()));
        let store = apart.as_ref().unwrap_or(&self.store);
        for data in reply.data {
            spoken = spoken.or_else(|| spoken_value(request, &data));
            self.load(store, data)?;
        }
        let value = store.known(request).or(spoken);
        let absent = if reply.status.is_success() { Status::ERR_NOT_FOUND } else { reply.status };
        Ok(ClientReturn::Value(value.ok_or(absent)))
    }

    /// The status is not looked at: 5.0.11 sends whatever stood in its memory.
    pub(super) fn refreshed(
        &self,
        request: &LookupRequest,
        payload: &[u8],
    ) -> Result<ClientReturn, DecodeError> {
        let reply = RefreshReply::decode(payload, self.config.dialect)?;
        self.load(&self.store, OwnerData { owner: request.proc.clone(), values: reply.values })?;
        Ok(ClientReturn::Value(self.store.known(request).ok_or(Status::ERR_NOT_FOUND)))
    }

    fn load(&self, store: &Store, data: OwnerData) -> Result<(), DecodeError> {
        if data.owner.rank == Rank::WILDCARD {
            let format = self.config.dialect.format;
            store.load_job(JobData::from_values(data.owner.nspace, data.values, format)?);
        } else {
            store.load_owner(data);
        }
        Ok(())
    }
}

/// The value that was asked for, when the server sends it without saying to which node or app it belongs.
fn spoken_value(request: &LookupRequest, data: &OwnerData) -> Option<Value> {
    let ProcId { nspace, rank } = &data.owner;
    let key = request.key.as_ref().filter(|_| request.qualified.is_none())?;
    if *nspace != request.proc.nspace || !(*rank == Rank::UNDEF || *rank == request.proc.rank) {
        return None;
    }
    data.values.iter().find(|kval| kval.key == *key).map(|kval| kval.value.clone())
}
