//! Output of processes on its way: to the root, and from there to its readers.

use std::sync::Arc;

use crate::encoding::encoded;
use phalanx_spec::IofChannel;
use phalanx_wire::{Nspace, ProcId};

/// A piece of a process's output. Empty: the stream has ended.
#[derive(Clone, Debug)]
pub(crate) struct OutputPiece {
    pub proc: ProcId,
    pub pid: Option<u32>,
    pub channel: IofChannel,
    pub data: Arc<[u8]>,
}

/// Output on its way from the root to one reader.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    pub to: TapName,
    /// The reader's own count.
    pub piece: u64,
    pub proc: ProcId,
    pub pid: Option<u32>,
    /// The reader wants the location of the process.
    pub names_place: bool,
    pub channel: IofChannel,
    /// Empty: the stream has ended.
    pub data: Arc<[u8]>,
    /// Bytes that were dropped right before.
    pub lost: u64,
}

/// The reader of output at one daemon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TapName {
    /// A pull of its server with this handle.
    Pull(u64),
    /// The tool there that spawned this job.
    Parent(ProcId, Nspace),
}

impl TapName {
    /// Whether a process of this job reads.
    pub(crate) fn is_for(&self, nspace: &Nspace) -> bool {
        matches!(self, TapName::Parent(parent, _) if parent.nspace == *nspace)
    }

    /// Whether only this job is read.
    pub(crate) fn is_of(&self, nspace: &Nspace) -> bool {
        matches!(self, TapName::Parent(_, child) if child == nspace)
    }
}

/// How much of a stream's credit reading `bytes` at once uses up: tiny pieces cost at least their bookkeeping.
pub fn charge(bytes: usize) -> usize {
    bytes.max(LEAST_CHARGE)
}

/// A stream with less credit than this is not read.
pub const LEAST_CHARGE: usize = 256;

encoded!(struct OutputPiece { proc, pid, channel, data });
encoded!(struct Forward { to, piece, proc, pid, names_place, channel, data, lost });
encoded!(enum TapName { 0 Pull(handle), 1 Parent(parent, child) });
