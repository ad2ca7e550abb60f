//! What ranks find of the places where they are to stop for a debugger: each only what concerns itself.
//!
//! OpenPMIx's libraries before 6.1 stop in init if the key is among their job's data, whatever its value, and so do programs that
//! follow its examples; those of 6.1 fail in init at a list. Whoever is not to stop finds nothing, and who is finds no list.

use phalanx_spec::keys;
use phalanx_wire::{Kval, ProcId};

use super::registry::Job;
use crate::stop::as_told_to;

const STOPS: [&str; 2] = [keys::DEBUG_STOP_IN_INIT, keys::DEBUG_STOP_IN_APP];

pub(super) fn is_stop(key: &str) -> bool {
    STOPS.contains(&key)
}

/// The stops of a job for whoever asks: others than its ranks are told what the host has stated.
pub(super) fn stops_of(job: &Job, asker: Option<&ProcId>) -> Vec<Kval> {
    let stated = job.info().job.iter().filter(|kval| is_stop(kval.key.as_str()));
    match asker.filter(|asker| asker.nspace == job.info().nspace) {
        None => stated.cloned().collect(),
        Some(rank) => stated
            .filter_map(|kval| {
                Some(Kval { key: kval.key.clone(), value: as_told_to(&kval.value, rank.rank)? })
            })
            .collect(),
    }
}
