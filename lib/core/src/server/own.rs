//! The server's own process as a peer: it has no socket, sends no hello, and never leaves.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::{Info, ProcId};

use crate::host::Event;
use crate::machine::ConnId;

/// The connection of a server's own process. Shells never use this number.
pub const OWN: ConnId = ConnId(u64::MAX);

/// Hosts of other implementations learn only by this event that a client left without finalize.
pub(super) fn loss_of(proc: &ProcId) -> Event {
    let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc.clone())];
    Event { code: Status::ERR_LOST_CONNECTION, source: proc.clone(), range: Range::PROC_LOCAL, info }
}
