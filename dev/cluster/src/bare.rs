//! Runs a command as on a machine without foreign PMIx, MPI or hwloc installations.
//!
//! Their files are removed rather than covered, as if they had never been installed: opening one fails with ENOENT.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{MountFlags, mount};

use crate::debian::debian_file;
use crate::roles::BARE;

/// Prefixes of the names to hide.
const HIDDEN: [&str; 23] = [
    "hwloc",
    "hydra",
    "libhwloc",
    "libmca",
    "libmpi",
    "libmunge",
    "libompi",
    "libopen-pal",
    "libopen-rte",
    "liboshmem",
    "libpmi",
    "mpi",
    "munge",
    "ompi",
    "openmpi",
    "orte",
    "oshmem",
    "pmix",
    "prte",
    "sbatch",
    "shmem",
    "slurm",
    "srun",
];

/// All packages install below it.
const PLACE: &str = "/usr";

/// A command for which these files do not exist. Its first argument is a program. `player` plays the roles ([`crate::run_role`]).
pub fn bare(player: &Path) -> Result<Command> {
    let mut command = Command::new(debian_file("/usr/bin/unshare", "util-linux")?);
    command.args(["--mount", "--"]).arg(player).arg(BARE);
    Ok(command)
}

/// Arguments: a program, its arguments.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let (program, rest) = arguments.split_first().context("no program was named")?;
    hide().context("cannot hide the software of others")?;
    let error = Command::new(program).args(rest).exec();
    Err(anyhow!(error).context(format!("cannot run {}", program.display())))
}

/// Mounts an overlay on [`PLACE`] in which whiteouts hide these files.
fn hide() -> Result<()> {
    let layer = std::env::temp_dir().join(format!("bare-{}", std::process::id()));
    fs::create_dir(&layer).with_context(|| format!("making {}", layer.display()))?;
    mount("layer", &layer, "tmpfs", MountFlags::NOSUID, c"mode=755").context("making room for the layer")?;
    let [upper, work] = ["upper", "work"].map(|name| layer.join(name));
    fs::create_dir(&work).context("making the layer")?;
    for directory in directories() {
        let above = upper.join(&directory);
        fs::create_dir_all(&above).with_context(|| format!("making {}", above.display()))?;
        for name in hidden(&Path::new(PLACE).join(&directory)) {
            mknodat(CWD, above.join(&name), FileType::CharacterDevice, Mode::empty(), 0)
                .with_context(|| format!("hiding {} in {}", name.display(), directory.display()))?;
        }
    }
    let options = format!("lowerdir={PLACE},upperdir={},workdir={}", upper.display(), work.display());
    let options = std::ffi::CString::new(options).context("options of a mount")?;
    mount("bare", PLACE, "overlay", MountFlags::empty(), options.as_c_str())
        .with_context(|| format!("laying a file system over {PLACE}"))
}

/// The directories of libraries, headers and programs, relative to [`PLACE`].
fn directories() -> Vec<PathBuf> {
    let here = format!("{}-linux-gnu", std::env::consts::ARCH);
    let all = ["bin", "sbin", "lib", "include", "local/bin", "local/lib", "local/include"];
    let here = ["lib", "include"].map(|directory| Path::new(directory).join(&here));
    let all = all.into_iter().map(PathBuf::from).chain(here);
    all.filter(|directory| Path::new(PLACE).join(directory).is_dir()).collect()
}

/// The names to hide in a directory.
fn hidden(place: &Path) -> Vec<OsString> {
    let names = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| is_hidden(name)).collect()
}

fn is_hidden(name: &OsStr) -> bool {
    HIDDEN.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_of_others_is_hidden_and_the_compiler_is_not() {
        for name in
            ["libhwloc.so.15", "libpmix.so.2", "mpicc.openmpi", "mpirun", "openmpi", "hwloc.h", "pmix2"]
        {
            assert!(is_hidden(name.as_ref()), "{name}");
        }
        for name in ["libc.so.6", "gcc", "ld", "python3", "libm.so", "stdio.h"] {
            assert!(!is_hidden(name.as_ref()), "{name}");
        }
    }
}
