//! LOG: hand data to a log channel of the host.

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Time, Writer};
use crate::info::Info;

/// `timestamp` is 0 unless the caller requested one.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Seconds since the epoch, 0 for none.
    pub timestamp: u64,
    pub data: Vec<Info>,
    pub directives: Vec<Info>,
}

impl Body for Log {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&Time(self.timestamp)).put_list(&self.data).put_list(&self.directives);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Log { timestamp: from.get::<Time>()?.0, data: from.get_list()?, directives: from.get_list()? })
    }
}
