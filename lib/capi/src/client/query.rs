//! Query: what the server and its host know.

use phalanx_spec::Status;
use pmix::ClientCall;

use super::calls::{InfoCallback, infos, infos_then};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    fn PMIx_Query_info(
        queries: Ptr<pmix_query_t>, nqueries: usize, results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        infos(call(queries, nqueries)?, results, nresults)
    }

    fn PMIx_Query_info_nb(
        queries: Ptr<pmix_query_t>, nqueries: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        infos_then(call(queries, nqueries)?, callback, cbdata)
    }
}

fn call(queries: Ptr<pmix_query_t>, count: usize) -> Result<ClientCall, Status> {
    instance()?;
    if queries.is_null() || count == 0 {
        return Err(BAD);
    }
    let queries = queries.items(count).map(|c| from_c::query(&c)).collect::<Result<Vec<_>, _>>()?;
    if queries.iter().any(|query| query.keys.is_empty()) {
        return Err(BAD);
    }
    Ok(ClientCall::Query { queries })
}
