//! IOF_PULL, IOF_PUSH, IOF_DEREG, and the output that a server forwards on tag 2 (RFC0025). On the same tag our own readers say
//! what they have taken of it.

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

/// `handle` is the server's number, for deregistration. `style`: how the output looks unless the reader says otherwise, for
/// readers that give it that form themselves ([`DRESSED`]); to others nothing is sent of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PullReply {
    pub status: Status,
    pub handle: u64,
    pub style: Vec<Info>,
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

/// Says with a pull, or with a spawn, that the reader gives the output its form itself (BOOL). Ours alone.
pub const DRESSED: &str = "phalanx.iof.dressed";

/// With the new job's data, for a reader that gives the output its form itself: what was said of it before (array of INFO).
pub const STYLE: &str = "phalanx.iof.style";

/// Says with a pull that the reader tells what it has taken, where it is asked to (BOOL). Ours alone.
pub const TELLS_TAKEN: &str = "phalanx.iof.tells";

/// With forwarded output: the number by which the server wants to hear that it was taken (UINT64). Ours alone.
pub const PIECE: &str = "phalanx.iof.piece";

/// Reader to server: what its program has taken for good, as spans of numbers (first and last), ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub spans: Vec<(u64, u64)>,
    /// Pieces of which something is held back, but which nobody is to wait for: so many of the last bytes of their stream, up to
    /// the end of that piece, have not been taken.
    pub held: Vec<(u64, u64)>,
}

impl Taken {
    /// One more piece; those that follow each other are one span.
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
