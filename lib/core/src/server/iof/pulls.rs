//! Pulls: which connection reads which streams.

use std::collections::BTreeMap;

use phalanx_spec::IofChannel;
use phalanx_wire::ProcId;

use super::format::Formatting;
use super::lane::Drops;
use crate::machine::ConnId;

/// By number.
pub(super) type Pulls = BTreeMap<u64, Pulled>;

#[derive(Debug)]
pub(super) struct Pulled {
    pub(super) conn: ConnId,
    pub(super) by: ProcId,
    pub(super) sources: Vec<ProcId>,
    pub(super) channels: IofChannel,
    /// The peer's own number for it; 0 for output that it gets without asking.
    pub(super) handle: u64,
    /// The registration with the host that serves it. None: the host was not asked.
    pub(super) feed: Option<u64>,
    /// None: nothing may be lost, and the source waits.
    pub(super) drops: Option<Drops>,
    /// It was stopped; output from before still arrives.
    pub(super) stopping: bool,
    /// Other readers get what it has not taken when it dies.
    pub(super) instead: bool,
    /// It reads instead of others and reports what it has taken: until then a piece is not delivered.
    pub(super) tells: bool,
    /// How its output is formatted; `None`: unformatted.
    pub(super) format: Option<Box<Formatting>>,
}

impl Pulled {
    /// Whether another reader gets what it has not taken.
    pub(super) fn is_owed(&self) -> bool {
        self.instead && self.drops.is_none()
    }

    /// Queued bytes have gone to the transport.
    pub(super) fn left(&mut self, channel: IofChannel, bytes: usize) {
        if let Some(drops) = &mut self.drops {
            drops.left(channel, bytes);
        }
    }
}
