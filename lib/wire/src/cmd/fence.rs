//! FENCE: meet, with or without data. Answered by a status alone; collected data is fetched with GET.

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::name::ProcId;

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
