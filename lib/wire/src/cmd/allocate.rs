//! ALLOC and RESBLK: change what a session may use.

use phalanx_spec::AllocDirective;

use crate::info::Info;
use crate::text::Text;
use crate::value::ResourceUnit;

#[derive(Clone, Debug, PartialEq)]
pub struct Allocate {
    pub directive: AllocDirective,
    pub info: Vec<Info>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResourceBlock {
    pub directive: u8,
    pub block: Option<Text>,
    pub units: Vec<ResourceUnit>,
    pub info: Vec<Info>,
}
