//! SESSION_CTRL (6.1).

use phalanx_spec::{Command, functions};

use super::Body;
use super::host::ForHost;
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

impl ForHost for SessionControl {
    const COMMAND: Command = Command::SESSION_CTRL;
    const FUNCTION: &'static str = functions::SESSION_CONTROL;
    const OPERATION: &'static str = "session control";

    fn subject(&self) -> String {
        self.session.to_string()
    }

    fn directives(&self) -> &[Info] {
        &self.directives
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.directives)
    }
}
