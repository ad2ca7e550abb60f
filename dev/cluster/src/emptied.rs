//! Runs a command for which some directories are empty, whatever other processes see there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::debian::debian_file;
use crate::roles::EMPTIED;

/// Separates lists of arguments.
const END: &str = "--";

/// A command that sees `places` empty, except for the directories of `kept` inside them. Its first argument is a program. `player` plays
/// the roles ([`crate::run_role`]).
pub fn emptied(player: &Path, places: &[&str], kept: &[PathBuf]) -> Result<Command> {
    let mut command = Command::new(debian_file("/usr/bin/unshare", "util-linux")?);
    command.args(["--mount", END]).arg(player).args(words(places, kept));
    Ok(command)
}

/// The role and its first arguments.
pub(crate) fn words(places: &[&str], kept: &[PathBuf]) -> Vec<OsString> {
    let places = places.iter().map(|place| OsString::from(*place));
    let kept = kept.iter().map(|path| OsString::from(path.as_os_str()));
    [EMPTIED.into()].into_iter().chain(places).chain([END.into()]).chain(kept).chain([END.into()]).collect()
}

/// Arguments: the places, `--`, the directories to keep, `--`, a program, its arguments.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let mut lists = arguments.splitn(3, |word| word == END);
    let (places, kept) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
    let (program, rest) = lists.next().and_then(<[_]>::split_first).context("no program was named")?;
    let directory = std::env::current_dir().context("finding the current directory")?;
    hide(places, kept)?;
    // The current directory may have been covered and kept: its path now leads to it again.
    let _ = std::env::set_current_dir(directory);
    let error = Command::new(program).args(rest).exec();
    Err(anyhow!(error).context(format!("cannot run {}", program.display())))
}

fn hide(places: &[OsString], kept: &[OsString]) -> Result<()> {
    let places: Vec<PathBuf> = places.iter().filter_map(|place| fs::canonicalize(place).ok()).collect();
    let inside = |path: &PathBuf| places.iter().any(|place| path.starts_with(place) && path != place);
    let kept = outermost(kept.iter().filter_map(|path| fs::canonicalize(path).ok()).filter(inside));
    let open = |path: PathBuf| {
        let file = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        Ok((path, file))
    };
    let kept: Vec<(PathBuf, File)> = kept.into_iter().map(open).collect::<Result<_>>()?;
    for place in &places {
        let mode = fs::metadata(place).map(|found| found.permissions());
        mount("emptied", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")
            .with_context(|| format!("mounting a file system in memory at {}", place.display()))?;
        mode.and_then(|mode| fs::set_permissions(place, mode))
            .with_context(|| format!("setting the mode of {}", place.display()))?;
    }
    for (path, file) in kept {
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        let made = match file.metadata().context("looking at what is kept")?.is_dir() {
            true => fs::create_dir_all(&path),
            false => path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, "")),
        };
        made.with_context(|| format!("making {}", path.display()))?;
        mount_bind_recursive(from, &path).with_context(|| format!("keeping {}", path.display()))?;
    }
    Ok(())
}

/// Drops paths inside of others, as those come with them.
fn outermost(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = paths.collect();
    all.sort();
    all.dedup_by(|path, before| path.starts_with(before));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_a_kept_directory_are_kept_with_it() {
        let paths = ["/a/b/c", "/a/b", "/a/b-c", "/a/b/d/e", "/f", "/f"].map(PathBuf::from);
        assert_eq!(outermost(paths.into_iter()), ["/a/b", "/a/b-c", "/f"].map(PathBuf::from));
    }
}
