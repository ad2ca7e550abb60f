//! ALLOC and RESBLK: change the resources of a session.

use phalanx_spec::{AllocDirective, Command, ResourceBlockDirective, functions};

use super::Body;
use super::host::{AnswerBody, ForHost};
use crate::codec::{BlockDirective, DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::text::Text;
use crate::value::ResourceUnit;

#[derive(Clone, Debug, PartialEq)]
pub struct Allocate {
    pub directive: AllocDirective,
    pub info: Vec<Info>,
}

/// Makes, changes or ends a named block of resources. Servers before 6.1 have no such command.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceBlock {
    pub directive: ResourceBlockDirective,
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
        to.put(&BlockDirective(self.directive.0)).put(&self.block).put_list(&self.units).put_list(&self.info);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let BlockDirective(directive) = from.get()?;
        let directive = ResourceBlockDirective(directive);
        Ok(ResourceBlock { directive, block: from.get()?, units: from.get_list()?, info: from.get_list()? })
    }
}

impl ForHost for Allocate {
    const COMMAND: Command = Command::ALLOC;
    const FUNCTION: &'static str = functions::ALLOCATION_REQUEST;
    const OPERATION: &'static str = "allocation request";

    fn subject(&self) -> String {
        self.directive.to_string()
    }

    fn directives(&self) -> &[Info] {
        &self.info
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.info)
    }
}

impl ForHost for ResourceBlock {
    const COMMAND: Command = Command::RESBLK;
    const FUNCTION: &'static str = functions::RESOURCE_BLOCK;
    const OPERATION: &'static str = "resource block";
    const ANSWER: AnswerBody = AnswerBody::Nothing;

    fn subject(&self) -> String {
        self.block.as_ref().map_or_else(String::new, Text::to_string_lossy)
    }

    fn directives(&self) -> &[Info] {
        &self.info
    }

    fn directives_mut(&mut self) -> Option<&mut Vec<Info>> {
        Some(&mut self.info)
    }

    fn is_complete(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.as_str().is_some())
    }
}
