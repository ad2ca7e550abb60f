//! ALLOC and RESBLK: change what a session may use.

use phalanx_spec::AllocDirective;

use super::Body;
use crate::codec::{BlockDirective, DecodeError, Dialect, Reader, Writer};
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

impl Body for Allocate {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.directive).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Allocate { directive: from.get()?, info: from.get_list()? })
    }
}

impl Body for ResourceBlock {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&BlockDirective(self.directive)).put(&self.block).put_list(&self.units).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let BlockDirective(directive) = from.get()?;
        Ok(ResourceBlock { directive, block: from.get()?, units: from.get_list()?, info: from.get_list()? })
    }
}
