//! Reading ahead: who asks for one rank after the other is told of the next ones before it asks.
//!
//! A process that meets all others, as every MPI process does, would ask once per rank: n² questions in a job of n. Clients
//! keep whatever an answer holds, so one that asks in the order of ranks gets twice as many with each answer, and is
//! through after a handful. Nothing is told ahead across any other request of that client: what changed before a fence
//! that it took part in is told as it was after it.

use phalanx_spec::Rank;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{Kval, ProcId};

use super::super::Server;
use super::super::commit::weight;
use super::super::limits::{MAX_BYTES_AHEAD, MAX_RANKS_AHEAD};
use super::super::peer::Asker;
use super::{owned, to_kvals};

/// How far a peer has come on its way through the ranks of its job.
#[derive(Debug, Default)]
pub(in super::super) struct Sweep {
    /// The rank that it asks for next if it goes on.
    next: u32,
    /// How many ranks its last answer was meant to hold.
    width: u32,
}

impl Server {
    /// What follows `target` in its job, if the asker seems to want that next.
    pub(super) fn read_ahead(&mut self, asker: &Asker, target: &ProcId) -> Vec<OwnerData> {
        if target.nspace != asker.proc.nspace || !target.rank.is_process() {
            return Vec::new();
        }
        let Some(sweep) = self.conns.peer(asker.conn).map(|peer| &peer.sweep) else { return Vec::new() };
        // Nobody asks for its own values.
        let after = |rank: u32| {
            if rank.saturating_add(1) == asker.proc.rank.0 { rank + 2 } else { rank.saturating_add(1) }
        };
        let goes_on = sweep.width > 0 && target.rank.0 == sweep.next;
        let width = if goes_on { (sweep.width * 2).min(MAX_RANKS_AHEAD) } else { 1 };
        let mut next = after(target.rank.0);
        let mut ahead = Vec::new();
        let mut bytes = 0;
        for _ in 1..width {
            let proc = ProcId::new(&target.nspace, Rank(next));
            let Some(values) = self.committed_by(&proc) else { break };
            bytes += values.iter().map(|kval| weight(&kval.value)).sum::<usize>();
            if bytes > MAX_BYTES_AHEAD {
                break;
            }
            ahead.push(owned(&proc, values));
            next = after(next);
        }
        if let Some(peer) = self.conns.peer_mut(asker.conn) {
            peer.sweep = Sweep { next, width };
        }
        ahead
    }

    /// What is here of the values that a rank has committed for processes of this node.
    fn committed_by(&self, proc: &ProcId) -> Option<Vec<Kval>> {
        if let Some(client) = self.client(proc) {
            return client.committed.happened.then(|| to_kvals(&client.committed.local));
        }
        self.modex.get(proc)
    }
}
