//! `cargo xtask abi`: which systems can load our binaries, by the symbol versions that they require.
//!
//! A loader refuses a file that requires a version which the system's library does not have. The build machine sets the floor:
//! the linker takes the newest version of each symbol that it finds there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;

/// The minimum for a system. glibc 2.34 is that of Debian 12, Ubuntu 22.04 and RHEL 9: it is the first with threads and
/// `dlopen` in `libc.so.6`, so anything linked on a newer system requires it. An older floor needs an older build system.
pub(crate) const FLOORS: &[Floor] = &[("GLIBC", &[2, 34]), ("GCC", &[4, 2, 0])];

/// For an unoptimized build, which with some linkers also requires functions of libgcc 12 that are never called.
pub(crate) const FLOORS_OF_DEV: &[Floor] = &[("GLIBC", &[2, 34]), ("GCC", &[12, 0, 0])];

/// A family of versions, and the newest that may be required.
type Floor = (&'static str, &'static [u32]);

/// The libraries that may be required at all.
const LIBRARIES: &[&str] =
    &["libc.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let files: Vec<PathBuf> =
        if args.is_empty() { vec![cargo::library()?] } else { args.iter().map(PathBuf::from).collect() };
    files.iter().try_for_each(|file| check(file, FLOORS))
}

/// Prints what a file requires, and fails if that is too much.
pub(crate) fn check(file: &Path, floors: &[Floor]) -> Result<()> {
    let symbols = Imports::of(&objdump("-T", file)?);
    let newest: Vec<String> =
        symbols.newest().iter().map(|(family, version)| format!("{family}_{}", dotted(version))).collect();
    eprintln!("{}: wants {}", file.display(), newest.join(", "));
    ensure!(!newest.is_empty(), "{}: no versions of symbols were found", file.display());
    let headers = objdump("-p", file)?;
    let libraries = headers.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    if let Some(other) = libraries.map(str::trim).find(|library| !LIBRARIES.contains(library)) {
        bail!("{} needs {other}, which not every system has", file.display());
    }
    let newer = symbols.above(floors);
    ensure!(
        newer.is_empty(),
        "{} wants symbols that are newer than its floor:\n  {}\nhint: FLOORS in dev/xtask/src/abi.rs says what is promised",
        file.display(),
        newer.join("\n  ")
    );
    Ok(())
}

fn objdump(what: &str, file: &Path) -> Result<String> {
    let output = Command::new("objdump").arg(what).arg(file).output();
    let output = output.context("running objdump\nhint: it is in the package binutils")?;
    ensure!(
        output.status.success(),
        "objdump {what} {}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("reading what objdump says")
}

/// Imported symbols, with their versions.
struct Imports(Vec<(String, String, Vec<u32>)>);

impl Imports {
    /// From lines like `0000000000000000  DF *UND*  0000000000000000 (GLIBC_2.34) dlopen`.
    fn of(listing: &str) -> Imports {
        let symbols = listing.lines().filter(|line| line.contains("*UND*")).filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let name = words.next()?;
            let version = words.next()?.trim_matches(['(', ')']);
            let (family, numbers) = version.rsplit_once('_')?;
            let numbers = numbers.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
            Some((name.to_owned(), family.to_owned(), numbers))
        });
        Imports(symbols.collect())
    }

    fn newest(&self) -> BTreeMap<&str, &[u32]> {
        let mut newest: BTreeMap<&str, &[u32]> = BTreeMap::new();
        for (_, family, version) in &self.0 {
            let known = newest.entry(family).or_default();
            *known = (*known).max(version);
        }
        newest
    }

    /// The symbols above their family's floor; a family without a floor is not allowed at all.
    fn above(&self, floors: &[Floor]) -> Vec<String> {
        let floor = |family: &str| {
            floors.iter().find(|(name, _)| *name == family).map_or(&[][..], |(_, floor)| floor)
        };
        let above = self.0.iter().filter(|(_, family, version)| version.as_slice() > floor(family));
        above.map(|(name, family, version)| format!("{name} of {family}_{}", dotted(version))).collect()
    }
}

fn dotted(version: &[u32]) -> String {
    version.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) malloc
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.34) dlopen
0000000000000000  w   DF *UND*\t0000000000000000 (GLIBC_2.36) arc4random
0000000000000000      DF *UND*\t0000000000000000 (GCC_12.0.0) __truncsfhf2
0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__
00000000000a0b10 g    DF .text\t0000000000000040  Base        PMIx_Init
";

    #[test]
    fn symbols_newer_than_the_floor_are_named() {
        let wanted = Imports::of(LISTING);
        assert_eq!(wanted.newest(), BTreeMap::from([("GCC", &[12, 0, 0][..]), ("GLIBC", &[2, 36])]));
        assert_eq!(wanted.above(FLOORS), ["arc4random of GLIBC_2.36", "__truncsfhf2 of GCC_12.0.0"]);
    }
}
