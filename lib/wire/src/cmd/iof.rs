//! IOF_PULL, IOF_PUSH, IOF_DEREG, and the output that a server forwards on tag 2 (RFC0025). Our own readers report on the same tag
//! which output they have taken.

use phalanx_spec::{IofChannel, Status};

use super::Body;
use crate::codec::{DecodeError, Dialect, Reader, Size, Writer};
use crate::info::Info;
use crate::name::ProcId;
use crate::text::Blob;

/// `handle` is the requester's own number for this registration; forwarded output carries it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pull {
    pub sources: Vec<ProcId>,
    pub directives: Vec<Info>,
    pub channels: IofChannel,
    pub handle: u64,
}

/// `handle` is the server's number, for deregistration. `style`: the default format of the output, sent only to readers that
/// format it themselves ([`DRESSED`]).
#[derive(Clone, Debug, PartialEq)]
pub struct PullReply {
    pub status: Status,
    pub handle: u64,
    pub style: Vec<Info>,
}

/// An empty push with `pmix.iof.stdin` or `pmix.iof.cmp` is end of file.
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

/// Forwarded output. Handle 0: the registration that every tool has by default. No bytes: the stream has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub source: ProcId,
    pub channel: IofChannel,
    pub handle: u64,
    pub info: Vec<Info>,
    pub data: Blob,
}

/// With a push (BOOL): it is answered when a target has read all of it, or, without bytes, when a target waits for input. When none reads any more, the
/// status is `ERR_NOT_FOUND`, or, as a positive number, how many bytes one has read. Ours alone.
pub const UNTIL_READ: &str = "phalanx.iof.until.read";

/// With forwarded output: how many bytes of the stream were dropped right before it (UINT64). Ours alone: others ignore
/// unknown keys.
pub const DROPPED: &str = "phalanx.iof.dropped";

/// With a pull or a spawn: the reader formats the output itself (BOOL). Ours alone.
pub const DRESSED: &str = "phalanx.iof.dressed";

/// With the new job's data, for a reader that formats the output itself: the format set before (array of INFO).
pub const STYLE: &str = "phalanx.iof.style";

/// With a host's answer to a pull: the channels that all sources forward (UINT16). Ours alone, and for the server alone.
pub const FORWARDED: &str = "phalanx.iof.forwarded";

/// With a pull: the reader reports which output it has taken, when asked to (BOOL). Ours alone.
pub const TELLS_TAKEN: &str = "phalanx.iof.tells";

/// With forwarded output: the number under which the reader should report it as taken (UINT64). Ours alone.
pub const PIECE: &str = "phalanx.iof.piece";

/// Reader to server: the pieces that its program has taken for good, as ascending spans of numbers (first and last).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub spans: Vec<(u64, u64)>,
    /// Pieces that are partly held back but should delay no one: the number of each, and how many of the last bytes of its stream,
    /// up to the end of that piece, have not been taken.
    pub held: Vec<(u64, u64)>,
}

impl Taken {
    /// Adds a piece; consecutive numbers form one span.
    pub fn add(&mut self, piece: u64) {
        match self.spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(piece) => *last = piece,
            _ => self.spans.push((piece, piece)),
        }
    }
}

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

impl Body for Taken {
    fn write(&self, to: &mut Writer, _: Dialect) {
        let numbers = |pairs: &[(u64, u64)]| -> Vec<Size> {
            pairs.iter().flat_map(|(first, second)| [Size(*first), Size(*second)]).collect()
        };
        to.put_list(&numbers(&self.spans));
        if !self.held.is_empty() {
            to.put_list(&numbers(&self.held));
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let pairs = |numbers: Vec<Size>| {
            numbers.as_chunks().0.iter().map(|[first, second]| (first.0, second.0)).collect()
        };
        let spans = pairs(from.get_list()?);
        let held = if from.is_at_end() { Vec::new() } else { pairs(from.get_list()?) };
        Ok(Taken { spans, held })
    }
}

impl Body for PullReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() {
            to.put(&Size(self.handle));
            if !self.style.is_empty() {
                to.put_list(&self.style);
            }
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let handle = if from.is_at_end() { 0 } else { from.get::<Size>()?.0 };
        let style = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(PullReply { status, handle, style })
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
