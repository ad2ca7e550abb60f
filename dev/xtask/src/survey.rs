//! `cargo xtask survey`: what the launchers of others do of their own accord, as a table. Nothing of it is a test of ours.
//!
//! The asking itself is `dev/interop/src/bin/survey.rs`.

use anyhow::{Result, ensure};
use phalanx_cluster::BUILD;

use crate::cargo::{cargo, run as execute, target};
use crate::world;

pub(crate) fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "survey takes no arguments");
    world::enter("survey", args)?;
    cargo(&BUILD)?;
    execute(&mut std::process::Command::new(target().join("debug/survey")))
}
