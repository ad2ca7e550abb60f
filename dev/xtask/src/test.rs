//! `cargo xtask test`: our own tests, those of the C interface among them, then those that need programs of others (peers).
//!
//! Peers are Debian packages, named in `dev/interop/packages.txt`. As root on Debian the missing ones are installed; elsewhere
//! their absence is a failure that names them, never a test passed over in silence. `--no-peers` leaves these tests out.

use std::collections::BTreeSet;
use std::fs;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, run as execute, watched};
use crate::slowest::Slowest;
use crate::step::step;

const PACKAGES: &str = "dev/interop/packages.txt";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut peers = true;
    let mut filters = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--no-peers" => peers = false,
            option if option.starts_with('-') => {
                bail!("unknown option {option}\nusage: test [--no-peers] [FILTER..]")
            }
            filter => filters.push(filter),
        }
    }
    let own = ["--workspace", "--exclude", "phalanx-interop", "--exclude", "phalanx-cluster"];
    step("building our own tests", || build(&own))?;
    step("our own tests", || cargo_test(&own, &filters))?;
    let in_c = ["--package", "phalanx-interop", "--test", "alone"];
    step("building the tests of the C interface", || {
        cargo(&["build", "--locked", "--package", "phalanx-cli", "--package", "phalanx-libpmix"])?;
        build(&in_c)
    })?;
    step("tests of the C interface", || cargo_test(&in_c, &filters))?;
    if peers {
        let with_peers = ["--package", "phalanx-interop", "--bins", "--lib", "--test", "interop"];
        let hosts = ["--package", "phalanx-cluster"];
        step("installing peers", || install(&missing(&packages()?)?))?;
        step("building the tests of the test hosts", || build(&hosts))?;
        step("tests of the test hosts", || cargo_test(&hosts, &filters))?;
        step("building the tests with peers", || build(&with_peers))?;
        step("tests with peers", || cargo_test(&with_peers, &filters))?;
    }
    Ok(())
}

/// Builds tests without running them, so that the log tells how long either takes.
fn build(which: &[&str]) -> Result<()> {
    cargo(&[&["test", "--locked", "--no-run", "--quiet"], which].concat())
}

fn cargo_test(which: &[&str], filters: &[&str]) -> Result<()> {
    let (slowest, outcome) = watched(&[&["test", "--locked"], which, &["--"], filters].concat(), |stdout| {
        Slowest::watch(BufReader::new(stdout), std::io::stdout())
    })?;
    eprintln!("the slowest of these tests:");
    slowest.lines().iter().for_each(|line| eprintln!("{line}"));
    outcome
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

fn missing(wanted: &BTreeSet<String>) -> Result<Vec<String>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"])
        .args(wanted)
        .stdin(Stdio::null())
        .output();
    // Without dpkg nothing is installed that we could name. Names that it does not know make it fail, too.
    let installed =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    Ok(wanted
        .iter()
        .filter(|name| !installed.lines().any(|line| line.strip_suffix(" installed") == Some(name)))
        .cloned()
        .collect())
}

fn install(missing: &[String]) -> Result<()> {
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
            command.args(missing);
        }
        execute(&mut command).with_context(|| {
            format!("installing the Debian packages that tests with peers need: {names}\n{hint}")
        })?;
    }
    Ok(())
}

fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("asking who we are")?.uid() == 0)
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
