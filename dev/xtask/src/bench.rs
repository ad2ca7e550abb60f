//! `cargo xtask bench`: `px` measured beside other launchers, and our library beside another.
//!
//! The measuring itself is `dev/interop/src/bin/bench`.
//!
//! Ours is built for release and handed over by name, so that the numbers are of what a user runs.

use anyhow::Result;

use crate::cargo::{cargo, library, run as execute, target};

pub(crate) fn run(args: &[String]) -> Result<()> {
    cargo(&["build", "--release", "--locked", "--package", "phalanx-cli", "--bin", "px"])?;
    let library = library()?;
    cargo(&["build", "--release", "--locked", "--package", "phalanx-interop", "--bin", "bench"])?;
    let target = target().join("release");
    let ours = [("PHALANX_PX", target.join("px")), ("PHALANX_LIBPMIX", library)];
    execute(std::process::Command::new(target.join("bench")).args(args).envs(ours))
}
