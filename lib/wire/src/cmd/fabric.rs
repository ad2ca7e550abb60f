//! FABRIC_REGISTER, FABRIC_UPDATE, COMPUTE_DEVICE_DISTANCES.

use phalanx_spec::Status;

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
