//! GET and REFRESH_CACHE: values of another process, or of a job.

use phalanx_spec::{Rank, Status};

use crate::info::{Info, Kval};
use crate::name::{Key, Nspace, ProcId};

/// Without a key: everything that the rank has.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    pub nspace: Nspace,
    pub rank: Rank,
    pub info: Vec<Info>,
    pub key: Option<Key>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RefreshCache {
    pub nspace: Nspace,
    pub rank: Rank,
}

/// The values of one owner. Rank WILDCARD owns job-level data; rank UNDEF stands for the receiver itself.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerData {
    pub owner: ProcId,
    pub values: Vec<Kval>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: Status,
    pub data: Vec<OwnerData>,
}

/// The answer to REFRESH_CACHE. 5.0.11 sends garbage as its status.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshReply {
    pub status: Status,
    pub values: Vec<Kval>,
}
