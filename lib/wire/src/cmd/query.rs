//! QUERY: questions to the server and its host. Answered by an [`InfoReply`](super::InfoReply).

use crate::value::Query;

#[derive(Clone, Debug, PartialEq)]
pub struct QueryRequest {
    pub queries: Vec<Query>,
}
