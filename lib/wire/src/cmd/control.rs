//! JOB_CONTROL: directives for running processes (RFC0015).

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::name::ProcId;

/// `targets` empty means every process of the asker's job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobControl {
    pub targets: Vec<ProcId>,
    pub directives: Vec<Info>,
}

impl Body for JobControl {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.targets).put_list(&self.directives);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(JobControl { targets: from.get_list()?, directives: from.get_list()? })
    }
}
