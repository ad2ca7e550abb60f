//! The sources of answers to gets, and the result of looking there.

use phalanx_spec::Status;
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{Kval, ProcId};

use crate::server::job_data::Describer;
use crate::server::modex::Modex;
use crate::server::values::Values;

/// All that is known here besides the commits of local processes.
#[derive(Debug)]
pub(in crate::server) struct Known {
    pub(in crate::server) describer: Describer,
    pub(in crate::server) modex: Modex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Commit,
    Key,
    /// `named`: the host was asked for this get's own key.
    Host {
        named: bool,
    },
}

/// The result of looking in the tables.
pub(super) enum Look {
    Found(Vec<OwnerData>),
    Never(Status),
    Wait(Waits),
}

pub(super) fn to_kvals(values: &Values) -> Vec<Kval> {
    values.kvals().collect()
}

pub(super) fn owned(owner: &ProcId, values: Vec<Kval>) -> OwnerData {
    OwnerData { owner: owner.clone(), values }
}
