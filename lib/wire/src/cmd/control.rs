//! JOB_CONTROL: directives for running processes (RFC0015).

use phalanx_spec::{Command, functions};

use super::Body;
use super::host::ForHost;
use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::name::ProcId;

/// Empty `targets` means every process of the caller's job.
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

impl ForHost for JobControl {
    const COMMAND: Command = Command::JOB_CONTROL;
    const FUNCTION: &'static str = functions::JOB_CONTROL;
    const OPERATION: &'static str = "job control";

    fn subject(&self) -> String {
        let wanted: Vec<&str> =
            self.directives.iter().take(MOST_SHOWN).map(|info| info.key.as_str()).collect();
        wanted.join(" ")
    }

    fn directives(&self) -> &[Info] {
        &self.directives
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.directives)
    }
}

/// Most directives that a message shows.
const MOST_SHOWN: usize = 8;
