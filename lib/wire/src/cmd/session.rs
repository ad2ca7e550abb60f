//! SESSION_CTRL (6.1).

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;

#[derive(Clone, Debug, PartialEq)]
pub struct SessionControl {
    pub session: u32,
    pub directives: Vec<Info>,
}

impl Body for SessionControl {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.session).put_list(&self.directives);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(SessionControl { session: from.get()?, directives: from.get_list()? })
    }
}
