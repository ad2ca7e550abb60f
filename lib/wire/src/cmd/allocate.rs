//! ALLOC and RESBLK: change what a session may use.

use phalanx_spec::AllocDirective;

use crate::info::Info;
use crate::text::Text;

#[derive(Clone, Debug, PartialEq)]
pub struct Allocate {
    pub directive: AllocDirective,
    pub info: Vec<Info>,
}

/// `units` are (device type, count).
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceBlock {
    pub directive: u8,
    pub block: Option<Text>,
    pub units: Vec<(u64, u64)>,
    pub info: Vec<Info>,
}
