//! Publish, lookup, unpublish: values that are found by key alone.

use phalanx_spec::Status;
use phalanx_wire::cmd::publish::{Publish, Published};
use pmix::{ClientCall, ClientReturn, Error, Pdata};

use super::calls::{OpCallback, done, done_then, submit};
use crate::guard::{BAD, Code, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};
use crate::release::{Release, free_array};
use crate::{cmem, from_c, to_c};

/// `pmix_lookup_cbfunc_t`
pub(crate) type LookupCallback = Option<extern "C" fn(Code, Ptr<pmix_pdata_t>, usize, Ptr<Opaque>)>;

exported! {
    fn PMIx_Publish(info: Ptr<pmix_info_t>, count: usize) -> Code {
        done(publish(info, count)?)
    }

    fn PMIx_Publish_nb(info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>) -> Code {
        done_then(publish(info, count)?, callback, cbdata)
    }

    /// The keys are in `data`; publisher and value are added to those that were found.
    fn PMIx_Lookup(data: Ptr<pmix_pdata_t>, ndata: usize, info: Ptr<pmix_info_t>, count: usize) -> Code {
        let instance = instance()?;
        if data.is_null() || ndata == 0 {
            return Err(BAD);
        }
        let wanted: Vec<_> = data.items(ndata).collect();
        let keys = wanted.iter().map(|c| from_c::pdata(&pmix_pdata_t { key: c.key, ..pmix_pdata_t::EMPTY }));
        let keys = keys.map(|pdata| pdata.map(|pdata| pdata.key)).collect::<Result<Vec<_>, _>>()?;
        let call = ClientCall::Lookup(Published { uid: 0, keys: keys.clone(), info: from_c::infos(info, count)? });
        let (status, found) = found(instance.client.perform(call));
        let mut missing = 0;
        for (place, key) in data.places(ndata).zip(&keys) {
            match found.iter().find(|pdata| pdata.key == *key) {
                Some(pdata) => place.write(to_c::pdata(pdata)?),
                None => missing += 1,
            }
        }
        match status {
            status if !status.is_success() && status != Status::ERR_PARTIAL_SUCCESS => Err(status),
            _ if missing == ndata => Err(Status::ERR_NOT_FOUND),
            _ if missing > 0 => Err(Status::ERR_PARTIAL_SUCCESS),
            _ => Ok(()),
        }
    }

    /// The callback's data is freed when it returns.
    fn PMIx_Lookup_nb(
        keys: Ptr<Ptr<u8>>, info: Ptr<pmix_info_t>, count: usize, callback: LookupCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        let callback = callback.ok_or(BAD)?;
        if keys.is_null() {
            return Err(BAD);
        }
        let call = ClientCall::Lookup(Published { uid: 0, keys: from_c::keys(keys)?, info: from_c::infos(info, count)? });
        submit(call, move |answer| {
            let (status, found) = found(answer);
            let all: Vec<_> = found.iter().filter_map(|pdata| to_c::pdata(pdata).ok()).collect();
            let array = cmem::array_of(&all);
            callback(status.0, array, all.len(), cbdata);
            free_array(array, all.len());
        })
    }

    /// No keys: everything that this process has published.
    fn PMIx_Unpublish(keys: Ptr<Ptr<u8>>, info: Ptr<pmix_info_t>, count: usize) -> Code {
        done(unpublish(keys, info, count)?)
    }

    fn PMIx_Unpublish_nb(
        keys: Ptr<Ptr<u8>>, info: Ptr<pmix_info_t>, count: usize, callback: OpCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        done_then(unpublish(keys, info, count)?, callback, cbdata)
    }
}

fn publish(info: Ptr<pmix_info_t>, count: usize) -> Result<ClientCall, Status> {
    instance()?;
    if info.is_null() || count == 0 {
        return Err(BAD);
    }
    Ok(ClientCall::Publish(Publish { uid: 0, info: from_c::infos(info, count)? }))
}

fn unpublish(keys: Ptr<Ptr<u8>>, info: Ptr<pmix_info_t>, count: usize) -> Result<ClientCall, Status> {
    instance()?;
    Ok(ClientCall::Unpublish(Published {
        uid: 0,
        keys: from_c::keys(keys)?,
        info: from_c::infos(info, count)?,
    }))
}

fn found(answer: Result<ClientReturn, Error>) -> (Status, Vec<Pdata>) {
    match answer {
        Ok(ClientReturn::Found(status, data)) => (status, data),
        Ok(_) => (Status::ERROR, Vec::new()),
        Err(error) => (error.status(), Vec::new()),
    }
}
