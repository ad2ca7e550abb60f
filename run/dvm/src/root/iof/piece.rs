//! A piece of output on its way to a reader at a daemon's server.

use std::sync::Arc;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

/// A piece of output for a tap.
#[derive(Clone, Debug)]
pub(super) struct TapPiece {
    pub(super) proc: ProcId,
    pub(super) pid: Option<u32>,
    pub(super) channel: IofChannel,
    pub(super) data: Arc<[u8]>,
    /// Bytes dropped right before.
    pub(super) lost: u64,
    /// None: from the cache or logged, so it holds up no chunk.
    pub(super) number: Option<u64>,
    /// The reader gets it instead of the user.
    pub(super) instead: bool,
}
