//! The jobs that this server knows and the connections of their processes. A rank may have several connections: a forked child
//! calls init while its parent is connected, or programs of a shell run at once.
//!
//! Any process of the rank's user may act as the rank, since that user has no other identity; the kernel's report of the user
//! proves it for each connection. To all other processes there is one rank, connected from its first connection to the end of its
//! last:
//!
//! * It has one set of values. Its commits add to it, and the latest value of a key counts.
//! * Each call of a collective, from any connection, is one participation of the rank, unless it carries `pmix.clone.part`: then
//!   all connections of the rank that have not finalized make one participation together.
//! * Answers, events, pulled output and monitors belong to the connection; their limits apply to all connections of the rank
//!   together.
//! * It has finalized when no connection goes on and one of them has finalized. A connection that breaks while another goes on, or
//!   after one has finalized, is not the loss of the rank. The host gets the rank's loss or finalize, once.

use phalanx_wire::ProcId;

use super::limits::MAX_CLONES;
use super::peer::{Asker, Connections, Peer};
use super::registry::Jobs;
use crate::machine::ConnId;

#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) conns: Connections,
    pub(super) jobs: Jobs,
}

impl Peers {
    /// Whether a rank has another connection that has not finalized.
    pub(super) fn goes_on_without(&self, proc: &ProcId, conn: ConnId) -> bool {
        self.live_connections(proc).any(|other| other != conn)
    }

    /// The connections of a rank that have not finalized.
    pub(super) fn live_connections(&self, proc: &ProcId) -> impl Iterator<Item = ConnId> {
        let all = self.jobs.client(proc).into_iter().flat_map(|client| client.conns().iter().copied());
        all.filter(|conn| self.conns.peer(*conn).is_some_and(|peer| !peer.has_finalized()))
    }

    /// All connections of the asking rank, or the one of a tool.
    pub(super) fn connections_of(&self, asker: &Asker) -> impl Iterator<Item = ConnId> {
        let of_rank =
            self.jobs.client(&asker.proc).into_iter().flat_map(|client| client.conns().iter().copied());
        let conn = asker.conn;
        std::iter::once(conn).chain(of_rank.filter(move |other| *other != conn))
    }

    /// How much of a limited resource this connection, or its rank with all its connections, uses. The other connections are not
    /// counted if this one is below its share.
    pub(super) fn together(&self, conn: ConnId, limit: usize, of: fn(&Peer) -> usize) -> usize {
        let Some(peer) = self.conns.peer(conn) else { return 0 };
        let own = of(peer);
        if own <= limit / MAX_CLONES {
            return own;
        }
        match self.jobs.client(peer.proc()) {
            Some(client) => client.conns().iter().filter_map(|conn| self.conns.peer(*conn)).map(of).sum(),
            None => own,
        }
    }
}
