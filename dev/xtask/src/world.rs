//! The environment in which tests run, the same on every machine.
//!
//! As root that is a separate world (`dev/cluster`): tests see neither the activity nor the leftovers of other programs, and nothing of theirs
//! remains. Other users get a separate directory, in which every search for servers looks. Users' settings for launchers and MPI libraries
//! are not passed on, nor is their language.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use phalanx_cluster::{PRIVATE, alone};

use crate::cargo::{default_signals, target};

/// Set when a chore runs in its world.
const INSIDE: &str = "PHALANX_TEST_WORLD";
const OWN: &str = "own";

/// Prefixes of variables that would expose the user's own environment to launchers, libraries or the shell.
const FOREIGN: [&str; 15] = [
    "DBUS_",
    "I_MPI_",
    "LC_",
    "LSB_",
    "MPIEXEC_",
    "OMPI_",
    "PBS_",
    "PHALANX_",
    "PMIX_",
    "PMI_",
    "PRRTE_",
    "PRTE_",
    "SLURM_",
    "TMP",
    "XDG_RUNTIME_DIR",
];
/// These are meant for the tests.
const OURS: [&str; 3] = ["PHALANX_LIBPMIX", "PHALANX_LOADS", "PHALANX_PX"];

/// Runs this chore again in its world, unless it already is; then this process ends with the chore.
pub(crate) fn enter(chore: &str, arguments: &[String]) -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let myself = std::env::current_exe().context("finding our own program")?;
    let status = if can_be_alone()? {
        let mut command = alone(&myself, &kept())?;
        command.env(INSIDE, OWN);
        run(command, &myself, chore, arguments)?
    } else {
        let place =
            tempfile::Builder::new().prefix("phalanx-tests-").tempdir().context("making a directory")?;
        eprintln!("temporary files are in {}", place.path().display());
        let mut command = Command::new("env");
        // Libraries of release 4.2.2 search for a server by its pid below the system's directory only.
        let temporary = place.path().join("tmp");
        std::fs::create_dir(&temporary).context("making a directory")?;
        command.env("PMIX_SYSTEM_TMPDIR", place.path()).env("TMPDIR", temporary);
        command.env(INSIDE, "shared");
        run(command, &myself, chore, arguments)?
    };
    // Errors have been reported inside.
    std::process::exit(status.code().unwrap_or(1))
}

/// Whether the tests run in a world of their own, not only in a directory.
pub(crate) fn is_own() -> bool {
    std::env::var_os(INSIDE).is_some_and(|inside| inside == OWN)
}

fn run(mut command: Command, program: &Path, chore: &str, arguments: &[String]) -> Result<ExitStatus> {
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(is_foreign) {
        if !command.get_envs().any(|(set, value)| set == name && value.is_some()) {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
    let program = default_signals(program.as_os_str());
    command.arg(program.get_program()).args(program.get_args()).arg(chore).args(arguments);
    command
        .current_dir(crate::root())
        .stdin(Stdio::null())
        .status()
        .context("running the tests in a world of their own")
}

fn is_foreign(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    FOREIGN.iter().any(|start| name.starts_with(start)) && !OURS.contains(&name)
}

/// Whether we may create namespaces. Root in a container may not be allowed to.
fn can_be_alone() -> Result<bool> {
    if !is_root()? {
        return Ok(false);
    }
    let unshare = Command::new("unshare")
        .args(["--mount", "--ipc", "--pid", "--fork", "true"])
        .stdin(Stdio::null())
        .output();
    let made = unshare.as_ref().is_ok_and(|output| output.status.success());
    if !made {
        let why = unshare.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        );
        eprintln!(
            "the tests see what other programs leave on this machine, and those without peers find the peers: no namespaces can be made ({why})"
        );
    }
    Ok(made)
}

pub(crate) fn is_root() -> Result<bool> {
    Ok(std::fs::metadata("/proc/self").context("asking who we are")?.uid() == 0)
}

/// Directories that tests need even inside a private place.
fn kept() -> Vec<PathBuf> {
    let mut all: BTreeSet<PathBuf> = [crate::root().to_owned(), target()].into();
    all.extend(std::env::current_exe().ok());
    all.extend(
        ["CARGO_HOME", "RUSTUP_HOME", "PHALANX_PX", "PHALANX_LIBPMIX"].into_iter().filter_map(variable),
    );
    for list in ["PATH", "LD_LIBRARY_PATH"].into_iter().filter_map(std::env::var_os) {
        all.extend(std::env::split_paths(&list));
    }
    // That directory is needed to look up names of other machines.
    let resolver = std::fs::canonicalize("/etc/resolv.conf").ok();
    all.extend(resolver.and_then(|file| Some(file.parent()?.to_owned())));
    let inside =
        |path: &PathBuf| PRIVATE.iter().any(|place| path.starts_with(place) && path != Path::new(place));
    let real = all.into_iter().filter_map(|path| std::fs::canonicalize(path).ok());
    real.filter(inside).collect()
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_for_launchers_are_not_passed_on() {
        for name in [
            "PMIX_NAMESPACE",
            "OMPI_MCA_btl",
            "SLURM_JOB_ID",
            "TMPDIR",
            "TMP",
            "LC_MESSAGES",
            "PHALANX_SESSION",
        ] {
            assert!(is_foreign(&name.into()), "{name}");
        }
        for name in ["PATH", "HOME", "CARGO_HOME", "PHALANX_LOADS", "LANG"] {
            assert!(!is_foreign(&name.into()), "{name}");
        }
    }
}
