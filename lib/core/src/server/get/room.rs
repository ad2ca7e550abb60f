//! Limits an answer to the length that the asker can take, with the requested value first.
//!
//! OpenPMIx 6 closes the connection when a message is longer than 32 MiB, and its programs die of that. It asks by key for
//! values that were left out.

use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{Key, Kval, ProcId};

use crate::server::peer::Asker;
use crate::server::peers::Peers;
use crate::server::values::weight;

/// Leaves out values that the asker has no room for.
pub(super) fn cut_to_room(
    peers: &Peers,
    asker: Option<&Asker>,
    target: &ProcId,
    key: Option<&Key>,
    data: Vec<OwnerData>,
) -> Vec<OwnerData> {
    let longest = asker.and_then(|asker| peers.conns.peer(asker.conn)).map(|peer| peer.longest_message());
    let (Some(longest), Some(key)) = (longest, key) else { return data };
    let size = |kval: &Kval| kval.key.as_str().len() + weight(&kval.value);
    // The encoding adds less to each value than what a value weighs here.
    let room = longest - longest / 8;
    if data.iter().flat_map(|owner| &owner.values).map(size).sum::<usize>() <= room {
        return data;
    }
    let (mut asked, mut rest): (Vec<OwnerData>, Vec<OwnerData>) =
        data.into_iter().partition(|owner| owner.owner == *target);
    for owner in &mut asked {
        // The requested value comes first, whatever its length: if it alone is too long, the answer is an error.
        owner.values.sort_by_key(|kval| kval.key != *key);
    }
    asked.append(&mut rest);
    let mut used = 0;
    for owner in &mut asked {
        owner.values.retain(|kval| {
            used += size(kval);
            kval.key == *key || used <= room
        });
    }
    asked.retain(|owner| !owner.values.is_empty());
    asked
}
