//! IOF_PULL, IOF_PUSH, IOF_DEREG, and the output that a server forwards on tag 2 (RFC0025).

use phalanx_spec::{IofChannel, Status};

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Size, Writer};
use crate::info::Info;
use crate::name::ProcId;
use crate::text::Blob;

/// `handle` is the asker's own number for this registration; forwarded output carries it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pull {
    pub sources: Vec<ProcId>,
    pub directives: Vec<Info>,
    pub channels: IofChannel,
    pub handle: u64,
}

/// `handle` is the server's number, for deregistration.
#[derive(Clone, Debug, PartialEq)]
pub struct PullReply {
    pub status: Status,
    pub handle: u64,
}

/// No bytes together with `pmix.iof.stdin` or `pmix.iof.cmp` is end of file.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    pub targets: Vec<ProcId>,
    pub directives: Vec<Info>,
    pub data: Blob,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Deregister {
    pub directives: Vec<Info>,
    pub handle: u64,
}

/// Forwarded output. Handle 0: the registration that every tool has without asking. No bytes: the stream has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub source: ProcId,
    pub channel: IofChannel,
    pub handle: u64,
    pub info: Vec<Info>,
    pub data: Blob,
}

/// Says with forwarded output how many bytes of the stream were dropped right before these (UINT64). Ours alone: others skip
/// what they do not know.
pub const DROPPED: &str = "phalanx.iof.dropped";

/// Says with a pull that the reader gives the output its form itself (BOOL). Ours alone.
pub const DRESSED: &str = "phalanx.iof.dressed";

impl Body for Pull {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.sources).put_list(&self.directives).put(&self.channels).put(&Size(self.handle));
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Pull {
            sources: from.get_list()?,
            directives: from.get_list()?,
            channels: from.get()?,
            handle: from.get::<Size>()?.0,
        })
    }
}

impl Body for PullReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put(&Size(self.handle));
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let handle = if from.is_at_end() { 0 } else { from.get::<Size>()?.0 };
        Ok(PullReply { status, handle })
    }
}

impl Body for Push {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.targets).put_list(&self.directives).put(&self.data);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Push { targets: from.get_list()?, directives: from.get_list()?, data: from.get()? })
    }
}

impl Body for Deregister {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put_list(&self.directives).put(&Size(self.handle));
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Deregister { directives: from.get_list()?, handle: from.get::<Size>()?.0 })
    }
}

impl Body for Output {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.source).put(&self.channel).put(&Size(self.handle)).put_list(&self.info).put(&self.data);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        Ok(Output {
            source: from.get()?,
            channel: from.get()?,
            handle: from.get::<Size>()?.0,
            info: from.get_list()?,
            data: from.get()?,
        })
    }
}
