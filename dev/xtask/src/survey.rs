//! `cargo xtask survey`: the behaviour of other launchers, as a table. None of it is a test of ours.
//!
//! The questions are in `dev/interop/src/bin/survey.rs`.

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
