//! FENCE: synchronize, with or without data. The reply is only a status; collected data is fetched with GET. For clients of ours
//! the reply also names the files that hold the data.

use phalanx_spec::Status;

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::name::{Nspace, ProcId};
use crate::text::Text;

#[derive(Clone, Debug, PartialEq)]
pub struct Fence {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

impl Body for Fence {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.procs).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Fence { procs: from.get_list()?, info: from.get_list()? })
    }
}

/// The reply to a client that has announced that it reads files ([`crate::hello::COLLECTED`]); any other gets a
/// [`super::StatusReply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    /// At most one per namespace.
    pub collected: Vec<Collected>,
}

/// Where to read everything that the server knows to have been committed in a namespace ([`crate::collected`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Collected {
    pub nspace: Nspace,
    pub file: Text,
    /// Offset of its first byte.
    pub at: u64,
}

impl Body for Reply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        for Collected { nspace, file, at } in &self.collected {
            to.put(nspace).put(file).put(at);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let mut collected = Vec::new();
        while !from.is_at_end() {
            collected.push(Collected { nspace: from.get()?, file: from.get()?, at: from.get()? });
        }
        Ok(Reply { status, collected })
    }
}
