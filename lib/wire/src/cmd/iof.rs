//! IOF_PULL, IOF_PUSH, IOF_DEREG, and the output that a server forwards on tag 2 (RFC0025).

use phalanx_spec::{IofChannel, Status};

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
