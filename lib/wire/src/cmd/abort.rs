//! ABORT: end processes immediately.

use phalanx_spec::Status;

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::name::ProcId;
use crate::text::Text;

/// Empty `procs` means the whole job of the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The exit status that the caller wants reported.
    pub status: Status,
    pub message: Option<Text>,
    pub procs: Vec<ProcId>,
}

impl Body for Abort {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status).put(&self.message).put_list(&self.procs);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Abort { status: from.get()?, message: from.get()?, procs: from.get_list()? })
    }
}
