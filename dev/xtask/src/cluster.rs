//! `cargo xtask cluster`: a command over several hosts that are created on this machine, and removed when it ends.
//!
//! The hosts are `dev/cluster`. `px` is built and put into the command's PATH.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, target};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let is_asked_how = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h");
    if !is_asked_how {
        cargo(&["build", "--release", "--locked", "--quiet", "--package", "phalanx-cli", "--bin", "px"])?;
    }
    cargo(&["build", "--locked", "--quiet", "--package", "phalanx-cluster", "--bin", "cluster"])?;
    let before = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([target().join("release")].into_iter().chain(env::split_paths(&before)))
        .context("putting px into PATH")?;
    // The cluster replaces this process: the terminal, signals and the exit code are the command's.
    let error = Command::new(target().join("debug/cluster")).args(args).env("PATH", path).exec();
    Err(error).context("starting the cluster")
}
