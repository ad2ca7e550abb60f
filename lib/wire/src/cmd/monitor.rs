//! MONITOR: watch processes and raise an event when they fall silent (RFC0015).

use phalanx_spec::Status;

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;

/// In an alert: how many milliseconds there was no sign of life.
pub const SILENT: &str = "phalanx.silent";

#[derive(Clone, Debug, PartialEq)]
pub struct Monitor {
    pub what: Info,
    /// The event to raise.
    pub error: Status,
    pub directives: Vec<Info>,
}

impl Body for Monitor {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.what).put(&self.error).put_list(&self.directives);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Monitor { what: from.get()?, error: from.get()?, directives: from.get_list()? })
    }
}
