//! What a connection has received of a process, and gets that wait behind another get.
//!
//! Clients keep what they receive, and send only one get per process while their other gets wait for its answer: OpenPMIx's
//! clients as well as ours. So an answer leaves out what the connection has already, except the requested value; and a get that
//! ends without its key still brings the new values, for the gets behind it. Our clients state that any new value will do
//! ([`PARTIAL`]), and ask again for what is missing.

use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::cmd::get::PARTIAL;
use phalanx_wire::{Info, InfoList, Nspace, ProcId};

use crate::machine::ConnId;
use crate::server::own::OWN;
use crate::server::peer::Asker;
use crate::server::peers::Peers;

/// Whether any new value will do, and how long the asker has waited since its last partial answer, if it had one.
pub(super) fn take_partial(info: &mut Vec<Info>) -> Option<Option<Duration>> {
    let at = info.iter().position(|info| info.key == PARTIAL)?;
    let waited = info.remove(at).value.as_u64().filter(|millis| *millis > 0);
    Some(waited.map(Duration::from_millis))
}

/// Whether the asker has the data of this job.
pub(super) fn was_told(peers: &Peers, asker: &Asker, nspace: &Nspace) -> bool {
    // Our own process does not cache.
    asker.conn != OWN && peers.conns.peer(asker.conn).is_some_and(|peer| peer.was_told_of_job(nspace))
}

/// Up to which change the asker has the values. None: send all.
pub(super) fn told_values(peers: &Peers, asker: &Asker, target: &ProcId, info: &[Info]) -> Option<u64> {
    if !is_plain(asker.conn, info) {
        return None;
    }
    peers.conns.peer(asker.conn)?.told_of(target)
}

/// Records that this answer brings, or completes, all local values that a process has committed.
pub(super) fn note_told(peers: &mut Peers, asker: &Asker, target: &ProcId, info: &[Info]) {
    if is_plain(asker.conn, info)
        && let Some(newest) = peers.jobs.client(target).map(|client| client.committed().local().newest())
        && let Some(peer) = peers.conns.peer_mut(asker.conn)
    {
        peer.note_told(target, newest);
    }
}

/// Whether the process has committed values that this connection lacks. `unknown`: whether all values count as news if nothing is recorded.
pub(super) fn has_news(peers: &Peers, asker: &Asker, target: &ProcId, unknown: bool) -> bool {
    let Some(newest) = peers.jobs.client(target).map(|client| client.committed().local().newest()) else {
        return false;
    };
    let told = peers.conns.peer(asker.conn).and_then(|peer| peer.told_of(target));
    told.or(unknown.then_some(0)).is_some_and(|told| told < newest)
}

/// Whether an answer brings all local values, and the asker keeps them.
pub(super) fn is_plain(conn: ConnId, info: &[Info]) -> bool {
    let says = |key: &str| info.find(key).is_some();
    conn != OWN && !says(keys::DATA_SCOPE) && !says(keys::GET_REFRESH_CACHE)
}
