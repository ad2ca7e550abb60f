//! Hosts on one machine: they are apart from each other and from the machine, and nothing of them is left.

// A test that cannot go on says why and stops.
#![allow(clippy::expect_used)]

mod apart;
mod commands;
mod ends;
mod trouble;
mod worlds;

use phalanx_cluster::{Cluster, NEEDS_ROOT, Options};

/// Worlds are made of namespaces.
fn needs_root() {
    assert!(rustix::process::geteuid().is_root(), "{NEEDS_ROOT}namespaces are made");
}

/// A cluster whose program cargo has built for these tests.
fn cluster(hosts: usize) -> Cluster {
    let program = Some(env!("CARGO_BIN_EXE_cluster").into());
    Cluster::start_with(&Options { program, ..Options::new(hosts) }).expect("a cluster")
}
