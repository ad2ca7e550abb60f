//! Hosts on one machine are separate from each other and from the machine, and leave nothing behind.

// A test that cannot continue prints why and stops.
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

/// A cluster that uses the program cargo has built for these tests.
fn cluster(hosts: usize) -> Cluster {
    let program = Some(env!("CARGO_BIN_EXE_cluster").into());
    Cluster::start_with(&Options { program, ..Options::new(hosts) }).expect("a cluster")
}
