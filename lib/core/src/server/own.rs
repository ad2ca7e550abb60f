//! The server's own process as a peer: it has no socket, need not introduce itself, and never leaves.

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::codec::Dialect;
use phalanx_wire::{Info, ProcId};

use super::peer::{Conn, Peer, Role};
use super::{Cx, Server};
use crate::host::Event;
use crate::machine::{ConnId, Time};

/// The connection of a server's own process. Shells never number one like this.
pub const OWN: ConnId = ConnId(u64::MAX);

impl Server {
    pub(crate) fn attach_own(&mut self, gid: u32, dialect: Dialect) {
        let proc = self.config.identity.clone();
        let peer = Peer::new(proc, self.config.owner_uid, gid, Role::Own, dialect, Time::default());
        self.conns.insert(OWN, Conn::Up(Box::new(peer)));
    }

    /// Hosts of other implementations learn by this event, and by nothing else, that a client has gone without a word.
    pub(super) fn tell_own_process_of_loss(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        let info = vec![Info::new(keys::EVENT_AFFECTED_PROC, proc.clone())];
        let code = Status::ERR_LOST_CONNECTION;
        let event = Event { code, source: proc.clone(), range: Range::PROC_LOCAL, info };
        self.tell_one(cx, OWN, &event);
    }
}
