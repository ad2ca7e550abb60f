//! Query: asks the server and its host.

use phalanx_spec::Status;
use phalanx_wire::cmd::query::Queries;
use pmix::{ClientCall, ClientReturn, Error, Info, Query};

use super::calls::{InfoCallback, found, give, hand_over, infos, infos_then, submit};
use crate::from_c;
use crate::guard::{BAD, exported};
use crate::instance::instance;
use crate::layout::*;
use crate::pointer::{Opaque, Ptr};

exported! {
    fn PMIx_Query_info(
        queries: Ptr<pmix_query_t>, nqueries: usize, results: Ptr<Ptr<pmix_info_t>>, nresults: Ptr<usize>,
    ) -> Code {
        let (known, rest) = questions(queries, nqueries)?;
        if known.is_empty() {
            return infos(ClientCall::Query(Queries { queries: rest }), results, nresults);
        }
        if rest.is_empty() {
            return give(Status::SUCCESS, &known, results, nresults);
        }
        let (status, all) = with_known(known, &rest, instance()?.client.perform(call(&rest)));
        give(status, &all, results, nresults)
    }

    fn PMIx_Query_info_nb(
        queries: Ptr<pmix_query_t>, nqueries: usize, callback: InfoCallback, cbdata: Ptr<Opaque>,
    ) -> Code {
        instance()?;
        let (known, rest) = questions(queries, nqueries)?;
        if known.is_empty() {
            return infos_then(ClientCall::Query(Queries { queries: rest }), callback, cbdata);
        }
        submit(call(&rest), move |answer| {
            let Some(callback) = callback else { return };
            let (status, all) = with_known(known, &rest, answer);
            hand_over(callback, status, &all, cbdata);
        })
    }
}

/// The query to the server. If no questions are left, the call fails, and the failure is ignored.
fn call(rest: &[Query]) -> ClientCall {
    ClientCall::Query(Queries { queries: rest.to_vec() })
}

/// The server's answer combined with the answers known here.
fn with_known(known: Vec<Info>, rest: &[Query], answer: Result<ClientReturn, Error>) -> (Status, Vec<Info>) {
    let (status, more) = found(answer);
    match (rest.is_empty(), status.is_success()) {
        (true, _) => (Status::SUCCESS, known),
        (false, true) => (status, known.into_iter().chain(more).collect()),
        (false, false) => (Status::QUERY_PARTIAL_SUCCESS, known.into_iter().chain(more).collect()),
    }
}

/// The questions, and the answers that are known here: the servers on this machine, and properties of this library. Programs
/// may ask for the latter before they have a client.
fn questions(queries: Ptr<pmix_query_t>, count: usize) -> Result<(Vec<Info>, Vec<Query>), Status> {
    let queries = queries.items(count).map(|c| from_c::query(&c)).collect::<Result<Vec<_>, _>>()?;
    if queries.is_empty() || queries.iter().any(|query| query.keys.is_empty()) {
        instance()?;
        return Err(BAD);
    }
    let (known, rest) = pmix::tool::answer_here(queries);
    if known.is_empty() || !rest.is_empty() {
        instance()?;
    }
    Ok((known, rest))
}
