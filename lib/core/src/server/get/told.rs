//! What a connection has been told of a process, and gets that wait on behalf of others.
//!
//! Clients keep what they are told, and have one get of a process under way while others wait for its answer: those of OpenPMIx
//! as well as ours. So an answer leaves out what the connection was told before, but never the value that is asked for;
//! and a get that ends without its key still brings what is there, for those who wait behind it. A client of ours says that
//! anything new will do ([`PARTIAL`]), and asks again for what is missing.

use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::cmd::get::PARTIAL;
use phalanx_wire::{Info, InfoList, Nspace, ProcId};

use crate::machine::ConnId;
use crate::server::own::OWN;
use crate::server::peer::Asker;
use crate::server::peers::Peers;

/// Whether anything new will do, and how long the asker has waited since it was last told so, if it was.
pub(super) fn take_partial(info: &mut Vec<Info>) -> Option<Option<Duration>> {
    let at = info.iter().position(|info| info.key == PARTIAL)?;
    let waited = info.remove(at).value.as_u64().filter(|millis| *millis > 0);
    Some(waited.map(Duration::from_millis))
}

/// Whether it has the data of this job.
pub(super) fn was_told(peers: &Peers, asker: &Asker, nspace: &Nspace) -> bool {
    // Our own process keeps nothing that it is told.
    asker.conn != OWN && peers.conns.peer(asker.conn).is_some_and(|peer| peer.was_told_of_job(nspace))
}

/// How new the values are that need not be told again. None: all are to be told.
pub(super) fn told_values(peers: &Peers, asker: &Asker, target: &ProcId, info: &[Info]) -> Option<u64> {
    if !is_plain(asker.conn, info) {
        return None;
    }
    peers.conns.peer(asker.conn)?.told_of(target)
}

/// Remembers that this answer brings, or completes, everything that a local process has committed for its neighbours.
pub(super) fn note_told(peers: &mut Peers, asker: &Asker, target: &ProcId, info: &[Info]) {
    if is_plain(asker.conn, info)
        && let Some(newest) = peers.jobs.client(target).map(|client| client.committed().local().newest())
        && let Some(peer) = peers.conns.peer_mut(asker.conn)
    {
        peer.note_told(target, newest);
    }
}

/// Whether the process has committed what this connection was not told. `unknown`: so it has if nobody remembers.
pub(super) fn has_news(peers: &Peers, asker: &Asker, target: &ProcId, unknown: bool) -> bool {
    let Some(newest) = peers.jobs.client(target).map(|client| client.committed().local().newest()) else {
        return false;
    };
    let told = peers.conns.peer(asker.conn).and_then(|peer| peer.told_of(target));
    told.or(unknown.then_some(0)).is_some_and(|told| told < newest)
}

/// Whether an answer brings all values that there are for neighbours, and the asker keeps them.
pub(super) fn is_plain(conn: ConnId, info: &[Info]) -> bool {
    let says = |key: &str| info.find(key).is_some();
    conn != OWN && !says(keys::DATA_SCOPE) && !says(keys::GET_REFRESH_CACHE)
}
