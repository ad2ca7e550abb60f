//! Programs of MPI libraries that do not reach PMIx by themselves: without a word each of their ranks would be a world of its own.
//!
//! MPICH and its descendants have PMI-1 and PMI-2 clients; whether they have a PMIx client, too, was decided when they
//! were built. A program is suspected by the name of a library that it needs, and judged by that library's file: one
//! that does not know the name `PMIx_Init` does not call it. What cannot be judged passes. Intel's opens the PMIx library that a
//! variable names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::elf::Elf;

/// How the MPI library of a program stands to PMIx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It has no PMIx client.
    WithoutPmix { program: PathBuf, library: PathBuf },
}

/// The variable that names the PMIx library to Intel's MPI library. Whether a program loads that cannot be seen from outside: an
/// interpreter does so when it runs.
pub const INTELS_VARIABLE: &str = "I_MPI_PMI_LIBRARY";

/// Whether a program that opens `libpmix.so.2` by its name finds one. `libraries` is its LD_LIBRARY_PATH.
pub fn finds_libpmix(libraries: Option<&[u8]>) -> bool {
    places([libraries, None], Path::new("/")).any(|place| place.join("libpmix.so.2").is_file())
}

/// What is to be known of `program` before it runs. `path` and `libraries` are its own PATH and LD_LIBRARY_PATH.
pub fn examine(program: &[u8], path: Option<&[u8]>, libraries: Option<&[u8]>, cwd: &Path) -> Option<Foreign> {
    let program = crate::spawn::find(program, path, Some(cwd)).ok()?;
    let program = cwd.join(OsStr::from_bytes(program.as_bytes()));
    let dynamic = Elf::open(&program)?.dynamic()?;
    let suspect = dynamic.needed.iter().find(|name| is_mpich(name))?;
    let origin = program.canonicalize().ok()?.parent()?.to_owned();
    let runpath = dynamic.runpath.as_deref();
    let mut files = places([libraries, runpath], &origin).map(|place| place.join(OsStr::from_bytes(suspect)));
    let library = files.find(|file| file.is_file())?;
    let text = std::fs::read(&library).ok()?;
    let knows = |name: &[u8]| text.windows(name.len()).any(|window| window == name);
    (!knows(PMIX_CALL)).then_some(Foreign::WithoutPmix { program, library })
}

/// Where the dynamic linker looks.
fn places(lists: [Option<&[u8]>; 2], origin: &Path) -> impl Iterator<Item = PathBuf> {
    let listed = lists.into_iter().flatten().flat_map(|list| list.split(|byte| *byte == b':'));
    let listed: Vec<PathBuf> = listed.map(|dir| expanded(dir, origin)).collect();
    let multiarch =
        ["/lib", "/usr/lib"].map(|root| format!("{root}/{}-linux-gnu", std::env::consts::ARCH).into());
    listed.into_iter().chain(multiarch).chain(STANDARD_PLACES.iter().map(PathBuf::from))
}

/// `libmpich.so.12`, or the name that MPICH's binary interface gives its libraries. Open MPI's is `libmpi.so.40`.
fn is_mpich(name: &[u8]) -> bool {
    name.starts_with(b"libmpich.so") || name == b"libmpi.so.12"
}

fn expanded(dir: &[u8], origin: &Path) -> PathBuf {
    let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"].iter().find_map(|prefix| dir.strip_prefix(*prefix));
    match rest {
        Some(rest) => origin.join(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest))),
        None => PathBuf::from(OsStr::from_bytes(dir)),
    }
}

/// As a name of its own, for the dynamic linker or for dlsym; messages about it do not count.
const PMIX_CALL: &[u8] = b"\0PMIx_Init\0";
const STANDARD_PLACES: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_programs_pass() {
        let here = Path::new("/");
        for program in [&b"/bin/sh"[..], b"sh", b"no-such-program", b"/etc/passwd", b""] {
            assert_eq!(examine(program, Some(b"/bin"), None, here), None);
        }
    }

    #[test]
    fn mpich_is_known_by_its_names() {
        assert!(is_mpich(b"libmpich.so.12") && is_mpich(b"libmpi.so.12"));
        assert!(!is_mpich(b"libmpi.so.40") && !is_mpich(b"libmpi.so.120"));
    }

    #[test]
    fn origin_is_the_directory_of_the_program() {
        let origin = Path::new("/opt/a/bin");
        assert_eq!(expanded(b"$ORIGIN/../lib", origin), Path::new("/opt/a/bin/../lib"));
        assert_eq!(expanded(b"${ORIGIN}", origin), Path::new("/opt/a/bin/"));
        assert_eq!(expanded(b"/usr/lib", origin), Path::new("/usr/lib"));
    }
}
