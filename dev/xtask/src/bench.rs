//! `cargo xtask bench`: `px` compared with other launchers, and our library with another.
//!
//! The measurements are in `dev/interop/src/bin/bench`.
//!
//! Our binaries are built for release and passed by path, so that the numbers are those of an installed `px`.

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
