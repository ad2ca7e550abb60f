//! Several connections of one rank: a forked child that calls init while its parent is connected, programs of a shell that run
//! at once.
//!
//! Any process of the rank's user may be the rank, as that user can be nobody else anyway; the kernel's word on the user is the
//! proof for each connection. To everybody else there is one rank, connected from its first connection to the end of its last:
//!
//! * It has one set of values. Its commits add to it, and the latest value of a key counts.
//! * Each call of a collective is one participation of the rank, whichever connection makes it, unless it says
//!   `pmix.clone.part`: then all connections of the rank that have not finalized make one participation together.
//! * Answers, events, output that was pulled, and monitors are the connection's; how many there may be is counted for all together.
//! * It has finalized when no connection goes on and one of them has finalized. A connection that breaks while another goes on, or
//!   when one has finalized, is not the loss of the rank. The host hears of the rank's loss or finalize, once.

use phalanx_wire::ProcId;
use tracing::warn;

use super::host::Then;
use super::limits::MAX_CLONES;
use super::peer::{Asker, Peer};
use super::registry::Stage;
use super::{Cx, Server};
use crate::host::HostOp;
use crate::machine::{CloseReason, ConnId};

impl Server {
    /// Whether a rank has another connection that has not finalized.
    pub(super) fn goes_on_without(&self, proc: &ProcId, conn: ConnId) -> bool {
        self.live_connections(proc).any(|other| other != conn)
    }

    /// The connections of a rank that have not finalized.
    pub(super) fn live_connections(&self, proc: &ProcId) -> impl Iterator<Item = ConnId> {
        let all = self.client(proc).into_iter().flat_map(|client| client.conns.iter().copied());
        all.filter(|conn| self.conns.peer(*conn).is_some_and(|peer| !peer.finalized))
    }

    /// All connections of the rank that asks, or the one of a tool.
    pub(super) fn connections_of(&self, asker: &Asker) -> impl Iterator<Item = ConnId> {
        let of_rank = self.client(&asker.proc).into_iter().flat_map(|client| client.conns.iter().copied());
        let conn = asker.conn;
        std::iter::once(conn).chain(of_rank.filter(move |other| *other != conn))
    }

    /// How much this connection has of something of which it, or its rank with all its connections, may have `limit`. A connection
    /// whose share would not do is not compared with the others.
    pub(super) fn together(&self, conn: ConnId, limit: usize, of: fn(&Peer) -> usize) -> usize {
        let Some(peer) = self.conns.peer(conn) else { return 0 };
        let own = of(peer);
        match self.client(&peer.proc) {
            Some(client) if own > limit / MAX_CLONES => {
                client.conns.iter().filter_map(|conn| self.conns.peer(*conn)).map(of).sum()
            }
            _ => own,
        }
    }

    /// A connection of a rank has broken before it finalized.
    pub(super) fn on_rank_connection_lost(
        &mut self,
        cx: &mut Cx<'_>,
        proc: ProcId,
        conn: ConnId,
        reason: CloseReason,
    ) {
        if self.goes_on_without(&proc, conn) {
            return warn!(%proc, ?reason, "connection lost before finalize: another of the rank goes on");
        }
        let Some(client) = self.client_mut(&proc).filter(|client| client.stage == Stage::Connected) else {
            return;
        };
        if !client.has_finalized {
            client.stage = Stage::Leaving;
            return self.report_loss(cx, proc, reason);
        }
        client.stage = Stage::Finalized;
        warn!(%proc, ?reason, "connection lost before finalize: another of the rank has finalized");
        let op = HostOp::ClientFinalized { proc: proc.clone(), others: false };
        self.call_host(cx, None, op, Then::Nothing);
        self.retry_gets_of(cx, &proc);
    }
}
