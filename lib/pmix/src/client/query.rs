//! Query: questions to the server and its host.

use phalanx_core::{ClientCall, ClientReturn};
use phalanx_spec::Status;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::{Info, Query};

use super::Client;
use crate::error::Error;

impl Client {
    /// Asks the server and its host (`PMIx_Query_info`). If only some questions have an answer, returns those.
    pub fn query(&self, queries: &[Query]) -> Result<Vec<Info>, Error> {
        match self.call(ClientCall::Query(Queries { queries: queries.to_vec() }))? {
            ClientReturn::Infos(status, info)
                if status.is_success()
                    || [Status::QUERY_PARTIAL_SUCCESS, Status::ERR_PARTIAL_SUCCESS].contains(&status) =>
            {
                Ok(info)
            }
            other => super::infos(other, || "query".into()),
        }
    }
}
