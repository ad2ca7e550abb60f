//! The places where ranks are to stop for a debugger: each rank gets its own stops only.
//!
//! OpenPMIx's libraries before 6.1 stop in init if the key is among the job's data, whatever its value, and so do programs that
//! follow its examples; init of 6.1 fails if the value is a list. So a rank that is not to stop finds no stop, and no rank finds a list.

use phalanx_spec::keys;
use phalanx_wire::{Kval, ProcId};

use super::registry::Job;
use crate::stop::as_told_to;

const STOPS: [&str; 2] = [keys::DEBUG_STOP_IN_INIT, keys::DEBUG_STOP_IN_APP];

pub(super) fn is_stop(key: &str) -> bool {
    STOPS.contains(&key)
}

/// The stops of a job as this process gets them; processes of other jobs get the host's statement.
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
