//! QUERY: questions to the server and its host. Answered by an [`InfoReply`](super::InfoReply).

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::value::Query;

#[derive(Clone, Debug, PartialEq)]
pub struct Queries {
    pub queries: Vec<Query>,
}

impl Body for Queries {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.queries);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Queries { queries: from.get_list()? })
    }
}
