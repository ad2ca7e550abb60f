//! Log: data for the logs of the host.

use std::time::{SystemTime, UNIX_EPOCH};

use phalanx_spec::{Status, keys};
use phalanx_wire::InfoList;
use phalanx_wire::cmd::log::Log;
use pmix::ClientCall;

use super::calls::{OpCallback, done, done_then};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::pmix_info_t;
use crate::pointer::{Opaque, Ptr};

exported! {
    fn PMIx_Log(data: Ptr<pmix_info_t>, ndata: usize, directives: Ptr<pmix_info_t>, ndirs: usize) -> Code {
        done(call(data, ndata, directives, ndirs)?)
    }

    fn PMIx_Log_nb(
        data: Ptr<pmix_info_t>, ndata: usize, directives: Ptr<pmix_info_t>, ndirs: usize, callback: OpCallback,
        cbdata: Ptr<Opaque>,
    ) -> Code {
        done_then(call(data, ndata, directives, ndirs)?, callback, cbdata)
    }
}

fn call(
    data: Ptr<pmix_info_t>,
    ndata: usize,
    directives: Ptr<pmix_info_t>,
    ndirs: usize,
) -> Result<ClientCall, Status> {
    instance()?;
    if data.is_null() || ndata == 0 {
        return Err(BAD);
    }
    let directives = from_c::infos(directives, ndirs)?;
    let timestamp = match directives.is_set(keys::LOG_GENERATE_TIMESTAMP) {
        true => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        false => 0,
    };
    Ok(ClientCall::Log(Log { timestamp, data: from_c::infos(data, ndata)?, directives }))
}
