//! Get: values of processes, jobs, nodes and apps.

use std::sync::PoisonError;

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::InfoList;
use pmix::{ClientCall, ClientReturn, Error, Info, Lookup, LookupRequest, ProcId, Value};

use super::calls::submit;
use super::topology;
use crate::guard::{BAD, Code, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::native::Native;
use crate::pointer::{Opaque, Ptr};
use crate::release::free_array;
use crate::{cmem, from_c, to_c};

/// `pmix_value_cbfunc_t`
type ValueCallback = Option<extern "C" fn(Code, Ptr<pmix_value_t>, Ptr<Opaque>)>;

/// Values that programs have pointers to; they stay until the client ends.
#[derive(Default)]
pub(crate) struct Kept(Vec<(ProcId, String, Value, Ptr<pmix_value_t>)>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.iter().for_each(|(.., at)| free_array(*at, 1));
    }
}

exported! {
    /// `to` is set to a value that the caller frees; with `pmix.get.ptr` to one that we own; with `pmix.get.static` the
    /// value is written to where it points.
    fn PMIx_Get(
        proc: Ptr<pmix_proc_t>, key: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, to: Ptr<Ptr<pmix_value_t>>,
    ) -> Code {
        let instance = instance()?;
        let client = &instance.client;
        let place = to.read().ok_or(BAD)?;
        if (info.is_null() || count == 0) && let Some(value) = at_hand(client, proc, key) {
            to.write(cmem::one(to_c::value(&expanded(value)?)?));
            return Ok(());
        }
        let info = from_c::infos(info, count)?;
        let request = request(client, proc, key, &info)?;
        let name = request.key.as_ref().map_or_else(String::new, |key| key.as_str().to_owned());
        let owner = request.proc.clone();
        let own_topology = is_own_topology(client, &request);
        let in_c = |value: &Value| match value {
            Value::Pointer if own_topology => topology::own_value(),
            value => to_c::value(&expanded(value.clone())?),
        };
        let value = match client.known(&request).map_err(|error| error.status())? {
            Lookup::Hit(value) => value,
            _ if own_topology => Value::Pointer,
            Lookup::Absent => return Err(Status::ERR_NOT_FOUND),
            Lookup::AskServer => asked(client.perform(ClientCall::Get { request, info: info.clone() }))?,
        };
        if info.is_set(keys::GET_STATIC_VALUES) {
            if place.is_null() {
                return Err(BAD);
            }
            place.write(in_c(&value)?);
        } else if info.is_set(keys::GET_POINTER_VALUES) {
            let mut kept = instance.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let same = |one: &&(ProcId, String, Value, _)| one.0 == owner && one.1 == name && one.2 == value;
            let found = kept.0.iter().find(same).map(|one| one.3);
            let at = match found {
                Some(at) => at,
                None => {
                    let at = cmem::one(in_c(&value)?);
                    kept.0.push((owner, name, value, at));
                    at
                }
            };
            to.write(at);
        } else {
            to.write(cmem::one(in_c(&value)?));
        }
        Ok(())
    }

    /// The callback's value is freed when it returns.
    fn PMIx_Get_nb(
        proc: Ptr<pmix_proc_t>, key: Ptr<u8>, info: Ptr<pmix_info_t>, count: usize, callback: ValueCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        let callback = callback.ok_or(BAD)?;
        let info = from_c::infos(info, count)?;
        let instance = instance()?;
        let request = request(&instance.client, proc, key, &info)?;
        if is_own_topology(&instance.client, &request) {
            let known = vec![Info::new(keys::OPTIONAL, true)];
            let at = cmem::one(topology::own_value()?);
            // The callback runs where all others do.
            return submit(ClientCall::Get { request, info: known }, move |_| {
                callback(Status::SUCCESS.0, at, cbdata);
                free_array(at, 1);
            });
        }
        submit(ClientCall::Get { request, info }, move |answer| {
            match asked(answer).and_then(expanded).and_then(|value| to_c::value(&value)) {
                Ok(c) => {
                    let at = cmem::one(c);
                    callback(Status::SUCCESS.0, at, cbdata);
                    free_array(at, 1);
                }
                Err(status) => callback(status.0, Ptr::NULL, cbdata),
            }
        })
    }

    /// Stores a value for this process alone.
    fn PMIx_Store_internal(proc: Ptr<pmix_proc_t>, key: Ptr<u8>, value: Ptr<pmix_value_t>) -> Code {
        let instance = instance()?;
        let proc = from_c::proc(&proc.read().ok_or(BAD)?)?;
        let value = from_c::value(&value.read().ok_or(BAD)?)?;
        instance.client.store_internal(&proc, &from_c::name(key)?, value).map_err(|error| error.status())
    }
}

/// A known value that only has to be copied: most gets of most programs, so nothing else is allocated on the way.
fn at_hand(client: &Native, proc: Ptr<pmix_proc_t>, key: Ptr<u8>) -> Option<Value> {
    let me = client.proc();
    let proc = proc.read();
    let (nspace, rank) = match &proc {
        Some(c) => (from_c::text_until_nul(&c.nspace)?, Rank(c.rank)),
        None => (me.nspace.as_str(), me.rank),
    };
    let nspace = if nspace.is_empty() { me.nspace.as_str() } else { nspace };
    key.with_text(|key| client.value_at_hand(nspace, rank, std::str::from_utf8(key).ok()?))?
}

/// The library itself has this node's topology as a value; servers do not send it.
fn is_own_topology(client: &Native, request: &LookupRequest) -> bool {
    request.proc == *client.proc() && request.key.as_ref().is_some_and(|key| *key == keys::TOPOLOGY2)
}

/// Without a process, or a namespace, the caller's own job; without a key, all values.
fn request(
    client: &Native,
    proc: Ptr<pmix_proc_t>,
    key: Ptr<u8>,
    info: &[Info],
) -> Result<LookupRequest, Status> {
    let mut proc = match proc.read() {
        Some(c) => from_c::proc(&c)?,
        None => client.proc().clone(),
    };
    if proc.nspace.is_none() {
        proc.nspace = client.proc().nspace.clone();
    }
    let key = if key.is_null() { None } else { Some(from_c::key(key)?) };
    Ok(LookupRequest::new(proc, key, info))
}

fn asked(answer: Result<ClientReturn, Error>) -> Result<Value, Status> {
    match answer.map_err(|error| error.status())? {
        ClientReturn::Value(value) => value,
        _ => Err(Status::ERROR),
    }
}

/// Programs do not get compressed values.
fn expanded(value: Value) -> Result<Value, Status> {
    value.expanded(MOST_EXPANDED).map_err(|_| Status::ERR_UNPACK_FAILURE)
}

const MOST_EXPANDED: usize = 1 << 30;
