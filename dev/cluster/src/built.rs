//! The build products of this workspace.
//!
//! The test runner and every test that needs a program build it in the same way, so that crates have the features of the
//! whole workspace. Building a part would rebuild much of it with other features.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, ensure};

/// Arguments for cargo: programs, libraries, examples and tests of all crates.
pub const BUILD: [&str; 4] = ["build", "--workspace", "--all-targets", "--locked"];

/// The directory of the programs, libraries and examples of this workspace, built on first use.
pub fn built() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut built = BUILT.lock().map_err(|_| anyhow!("building the workspace has failed before"))?;
    if let Some(directory) = &*built {
        return Ok(directory.clone());
    }
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let status = build.args(BUILD).arg("--quiet").current_dir(workspace()).status();
    ensure!(status.context("cannot run cargo")?.success(), "cannot build the workspace");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let directory = workspace().join(target).join("debug");
    *built = Some(directory.clone());
    Ok(directory)
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/"))
}
