//! The answer to REQ: what a process must know of its job, in hash form.
//!
//! Arrays (`pmix.node.arr`, `pmix.app.arr`, `pmix.ssn.arr`) are values; the data of each rank travels as a
//! `pmix.pblob` byte object, which [`JobData`] holds unpacked in `procs`.

use phalanx_spec::Rank;

use crate::info::Kval;
use crate::name::Nspace;

#[derive(Clone, Debug, PartialEq)]
pub struct JobData {
    pub nspace: Nspace,
    /// Job-level values and the node, app and session arrays.
    pub values: Vec<Kval>,
    /// Values of single ranks.
    pub procs: Vec<(Rank, Vec<Kval>)>,
}
