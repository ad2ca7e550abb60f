//! Read-ahead: a client that asks for one rank after the other gets the next ones before it asks.
//!
//! A process that meets all others, as every MPI process does, would ask once per rank: n² questions in a job of n. Clients
//! keep all that an answer holds, so one that asks in the order of ranks gets twice as many with each answer, and needs only
//! a handful. Any other request of the client ends the sequence, so values read ahead never predate a fence that the client
//! has taken part in since.
//!
//! A client of OpenPMIx without a shared store then asks 7 times for 63 peers.

use phalanx_spec::Rank;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{Kval, ProcId};

use super::known::{owned, to_kvals};
use crate::server::limits::MAX_BYTES_AHEAD;
use crate::server::modex::Modex;
use crate::server::peer::Asker;
use crate::server::peers::Peers;
use crate::server::sweep::after;
use crate::server::values::weight;

/// The ranks that follow `target` in its job, if the asker seems to want them next.
pub(super) fn read_ahead(peers: &mut Peers, modex: &Modex, asker: &Asker, target: &ProcId) -> Vec<OwnerData> {
    if target.nspace != asker.proc.nspace || !target.rank.is_process() {
        return Vec::new();
    }
    let Some(peer) = peers.conns.peer(asker.conn) else { return Vec::new() };
    let width = peer.sweep().width_from(target.rank);
    let mut next = after(target.rank.0, &asker.proc);
    let mut ahead = Vec::new();
    let mut bytes = 0;
    for _ in 1..width {
        let proc = ProcId::new(&target.nspace, Rank(next));
        let Some(values) = committed_by(peers, modex, &proc) else { break };
        bytes += values.iter().map(|kval| weight(&kval.value)).sum::<usize>();
        if bytes > MAX_BYTES_AHEAD {
            break;
        }
        ahead.push(owned(&proc, values));
        next = after(next, &asker.proc);
    }
    if let Some(peer) = peers.conns.peer_mut(asker.conn) {
        peer.note_sweep(width, next);
    }
    ahead
}

/// The values known here that a rank has committed for processes of this node.
fn committed_by(peers: &Peers, modex: &Modex, proc: &ProcId) -> Option<Vec<Kval>> {
    if let Some(client) = peers.jobs.client(proc) {
        return client.committed().happened().then(|| to_kvals(client.committed().local()));
    }
    modex.get(proc)
}
