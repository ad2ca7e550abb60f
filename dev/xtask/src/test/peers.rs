//! Peers: Debian packages, listed in `dev/interop/packages.txt`, and Python's (`dev/interop/wheels.txt`).
//!
//! As root on Debian the missing packages are installed; elsewhere a missing one is a failure that names it, never a silently
//! skipped test. Wheels are installed below the target directory by everybody.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{run as execute, target};
use crate::world::is_root;

const PACKAGES: &str = "dev/interop/packages.txt";

/// Installs the wheels before tests need them. Tests that find one missing install it themselves, or fail with the reason.
pub(crate) fn install_wheels() {
    if let Err(error) = execute(&mut Command::new(target().join("debug/wheels"))) {
        eprintln!("{error:#}");
    }
}

pub(crate) fn install_packages() -> Result<()> {
    let missing = missing(&packages()?);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let hint = "hint: install them, or leave out the tests that need them with --no-peers";
    if !is_root()? {
        bail!(
            "the tests with peers need these Debian packages, and only root can install them: {names}\n{hint}"
        );
    }
    for step in [&["update"][..], &["install", "--yes", "--no-install-recommends"]] {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "Acquire::Retries=3"]).args(step);
        if step[0] == "install" {
            command.args(&missing);
        }
        execute(&mut command).with_context(|| {
            format!("installing the Debian packages that tests with peers need: {names}\n{hint}")
        })?;
    }
    Ok(())
}

/// The packages that the tests with peers need.
fn packages() -> Result<BTreeSet<String>> {
    let text =
        fs::read_to_string(crate::root().join(PACKAGES)).with_context(|| format!("reading {PACKAGES}"))?;
    Ok(names(&text))
}

/// One name per line; `#` starts a comment.
fn names(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn missing(wanted: &BTreeSet<String>) -> Vec<String> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"])
        .args(wanted)
        .stdin(Stdio::null())
        .output();
    // Without dpkg nothing counts as installed. Unknown names make it fail, too.
    let installed =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let is_there = |name: &str| installed.lines().any(|line| line.strip_suffix(" installed") == Some(name));
    wanted.iter().filter(|name| !is_there(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_lists_may_have_comments_and_blank_lines() {
        let found = names("# peers\nopenmpi-bin\n\n  mpich  # the other one\n");
        assert_eq!(found, ["mpich", "openmpi-bin"].map(str::to_owned).into());
    }
}
