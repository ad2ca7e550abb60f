//! COMMIT: what a process has put since its last commit.

use phalanx_spec::Scope;

use crate::info::Kval;

/// One bucket per scope. Values of scope GLOBAL stand in both the LOCAL and the REMOTE bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub buckets: Vec<(Scope, Vec<Kval>)>,
}
