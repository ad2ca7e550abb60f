//! FABRIC_REGISTER, FABRIC_UPDATE, COMPUTE_DEVICE_DISTANCES.

use phalanx_spec::{Command, Status, functions};

use super::Body;
use super::host::ForHost;
use crate::codec::{Cpuset, DecodeError, Dialect, Reader, Size, Writer};
use crate::info::Info;
use crate::text::Text;
use crate::value::{DeviceDistance, TopologyBlob};

#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    pub directives: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub index: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDistances {
    pub topology: TopologyBlob,
    pub cpuset: Option<Text>,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DistancesReply {
    pub status: Status,
    pub distances: Vec<DeviceDistance>,
}

impl Body for Register {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.directives);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Register { directives: from.get_list()? })
    }
}

impl Body for Update {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&Size(self.index));
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Update { index: from.get::<Size>()?.0 })
    }
}

impl Body for DeviceDistances {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.topology).put(&Cpuset(self.cpuset.clone())).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(DeviceDistances { topology: from.get()?, cpuset: from.get::<Cpuset>()?.0, info: from.get_list()? })
    }
}

impl Body for DistancesReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put_list(&self.distances);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let distances = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(DistancesReply { status, distances })
    }
}

impl ForHost for Register {
    const COMMAND: Command = Command::FABRIC_REGISTER;
    const FUNCTION: &'static str = functions::FABRIC_REGISTER;
    const OPERATION: &'static str = "fabric registration";

    fn directives(&self) -> &[Info] {
        &self.directives
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.directives)
    }
}

impl ForHost for Update {
    const COMMAND: Command = Command::FABRIC_UPDATE;
    const FUNCTION: &'static str = functions::FABRIC_UPDATE;
    const OPERATION: &'static str = "fabric update";
    const TAKES_DIRECTIVES: bool = false;

    fn subject(&self) -> String {
        self.index.to_string()
    }

    fn directives(&self) -> &[Info] {
        &[]
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        None
    }
}
