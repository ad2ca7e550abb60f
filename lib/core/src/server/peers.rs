//! Who is there: the jobs that this server knows and the connections of their processes, of which a rank may have several. That
//! happens when a forked child calls init while its parent is connected, or when programs of a shell run at once.
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

    /// All connections of the rank that asks, or the one of a tool.
    pub(super) fn connections_of(&self, asker: &Asker) -> impl Iterator<Item = ConnId> {
        let of_rank =
            self.jobs.client(&asker.proc).into_iter().flat_map(|client| client.conns().iter().copied());
        let conn = asker.conn;
        std::iter::once(conn).chain(of_rank.filter(move |other| *other != conn))
    }

    /// How much this connection has of something of which it, or its rank with all its connections, may have `limit`. A connection
    /// whose share would not do is not compared with the others.
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
