//! Programs of MPI libraries that do not reach PMIx by themselves: without a warning, each rank would run alone, as rank 0 of 1.
//!
//! MPICH and its descendants have PMI-1 and PMI-2 clients; whether they have a PMIx client, too, depends on how they were built. A program is
//! suspected by the name of a library that it needs or has loaded, and judged by that library's file: one that does not contain the name `PMIx_Init`
//! does not call it. A library that cannot be judged passes. Intel MPI opens the PMIx library that a variable names.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_dvm::MpiLibrary;

use crate::elf::Elf;

/// A program and the MPI library that it is linked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    pub program: PathBuf,
    /// For Open MPI only a name: its file is not searched for.
    pub library: MpiLibrary,
}

/// The variable that names the PMIx library to Intel MPI. Whether a program loads Intel MPI cannot be seen from outside: an interpreter does so at
/// run time.
pub const INTELS_VARIABLE: &str = "I_MPI_PMI_LIBRARY";

/// Whether a program that opens `libpmix.so.2` by its name finds one. `libraries` is its LD_LIBRARY_PATH.
pub fn finds_libpmix(libraries: Option<&[u8]>) -> bool {
    places([libraries, None], Path::new("/")).any(|place| place.join("libpmix.so.2").is_file())
}

/// What can be known about `program` before it runs. `path` and `libraries` are its own PATH and LD_LIBRARY_PATH.
pub fn examine(program: &[u8], path: Option<&[u8]>, libraries: Option<&[u8]>, cwd: &Path) -> Option<Linked> {
    let program = crate::spawn::find(program, path, Some(cwd)).ok()?;
    let program = cwd.join(OsStr::from_bytes(program.as_bytes()));
    let dynamic = Elf::open(&program)?.dynamic()?;
    let name = dynamic.needed.iter().find(|name| is_mpi(name))?;
    let judged = |file, has_pmix| MpiLibrary { file, has_pmix, below: false };
    let passes = || judged(String::from_utf8_lossy(name).into_owned(), true);
    if !is_mpich(name) {
        return Some(Linked { program, library: passes() });
    }
    let origin = program.canonicalize().ok()?.parent()?.to_owned();
    let runpath = dynamic.runpath.as_deref();
    let mut files = places([libraries, runpath], &origin).map(|place| place.join(OsStr::from_bytes(name)));
    let library = match files.find(|file| file.is_file()) {
        Some(file) => judged(file.display().to_string(), has_pmix(&file)),
        None => passes(),
    };
    Some(Linked { program, library })
}

/// The MPI library that is currently loaded in a process of ours or in one of its descendants.
pub(crate) fn loaded(pid: u32, nspace: &str) -> Option<MpiLibrary> {
    if let Some(library) = loaded_by(pid) {
        return Some(library);
    }
    let mut below: VecDeque<u32> = children(pid).collect();
    for _ in 0..MOST_BELOW {
        let pid = below.pop_front()?;
        if !is_as_started(pid, nspace) {
            continue;
        }
        if let Some(library) = loaded_by(pid) {
            return Some(MpiLibrary { below: true, ..library });
        }
        below.extend(children(pid));
    }
    None
}

/// The children that the first thread of a process has started. Not every kernel lists them.
fn children(pid: u32) -> impl Iterator<Item = u32> {
    let mut told = String::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/task/{pid}/children")) {
        let _ = file.take(MOST_CHILDREN).read_to_string(&mut told);
    }
    told.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>().into_iter()
}

/// Whether a process has the environment of a rank of this job, and not that of another launcher's rank.
fn is_as_started(pid: u32, nspace: &str) -> bool {
    let mut env = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ"));
    if file.and_then(|file| file.take(MOST_ENVIRONMENT).read_to_end(&mut env)).is_err() {
        return false;
    }
    let mut entries = env.split(|byte| *byte == 0);
    let own = format!("PMIX_NAMESPACE={nspace}");
    entries.clone().any(|entry| entry == own.as_bytes())
        && !entries.any(|entry| OF_HYDRA.iter().any(|name| entry.starts_with(name)))
}

fn loaded_by(pid: u32) -> Option<MpiLibrary> {
    let maps = File::open(format!("/proc/{pid}/maps")).ok()?;
    let mut maps = BufReader::with_capacity(MAPS_READ, maps.take(MOST_MAPS));
    let mut line = Vec::new();
    while maps.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if let Some(file) = mapped(&line)
            && let Some(name) = file.rsplit(|byte| *byte == b'/').next().filter(|name| is_mpi(name))
        {
            // A container's files have other paths for us.
            let seen = [&format!("/proc/{pid}/root").into_bytes(), file].concat();
            let has_pmix = !is_mpich(name) || has_pmix(Path::new(OsStr::from_bytes(&seen)));
            return Some(MpiLibrary {
                file: String::from_utf8_lossy(file).into_owned(),
                has_pmix,
                below: false,
            });
        }
        line.clear();
    }
    None
}

/// The file of a line of /proc/PID/maps.
fn mapped(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|byte| *byte == b'/')?;
    Some(line.get(at..)?.trim_ascii_end())
}

/// Whether the file of a library suggests that it calls PMIx. One that cannot be read passes.
fn has_pmix(library: &Path) -> bool {
    File::open(library).and_then(|file| mentions(file, PMIX_CALL)).unwrap_or(true)
}

/// Whether the input contains these bytes.
fn mentions(mut from: impl Read, wanted: &[u8]) -> std::io::Result<bool> {
    let mut piece = vec![0; PIECE];
    let mut kept = 0;
    loop {
        let read = from.read(piece.get_mut(kept..).unwrap_or_default())?;
        if read == 0 {
            return Ok(false);
        }
        let filled = kept + read;
        let text = piece.get(..filled).unwrap_or_default();
        if holds(text, wanted) {
            return Ok(true);
        }
        // A match may begin at the end of this piece.
        kept = filled.min(wanted.len() - 1);
        piece.copy_within(filled - kept..filled, 0);
    }
}

/// Compares where a match may end, and skips as far as the byte there allows: libraries are large, and other tasks wait.
fn holds(text: &[u8], wanted: &[u8]) -> bool {
    let Some((last, before)) = wanted.split_last() else { return true };
    let mut at = before.len();
    while let Some(byte) = text.get(at) {
        if byte == last && text.get(at - before.len()..at) == Some(before) {
            return true;
        }
        at += before.iter().rev().position(|other| other == byte).map_or(wanted.len(), |back| back + 1);
    }
    false
}

/// The directories that the dynamic linker searches.
fn places(lists: [Option<&[u8]>; 2], origin: &Path) -> impl Iterator<Item = PathBuf> {
    let listed = lists.into_iter().flatten().flat_map(|list| list.split(|byte| *byte == b':'));
    let listed: Vec<PathBuf> = listed.map(|dir| expanded(dir, origin)).collect();
    let multiarch =
        ["/lib", "/usr/lib"].map(|root| format!("{root}/{}-linux-gnu", std::env::consts::ARCH).into());
    listed.into_iter().chain(multiarch).chain(STANDARD_PLACES.iter().map(PathBuf::from))
}

/// Names of Open MPI, MPICH and their descendants, and of MPI's standard ABI. Bindings of other languages load these.
fn is_mpi(name: &[u8]) -> bool {
    let prefixes = [&b"libmpi.so."[..], b"libmpich.so.", b"libmpi_abi.so."];
    let version = prefixes.iter().find_map(|prefix| name.strip_prefix(*prefix));
    version.is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

/// `libmpich.so.12`, or the name by MPICH's ABI. Open MPI's is `libmpi.so.40`.
fn is_mpich(name: &[u8]) -> bool {
    name.starts_with(b"libmpich.so.") || name == b"libmpi.so.12" || name.starts_with(b"libmpi.so.12.")
}

fn expanded(dir: &[u8], origin: &Path) -> PathBuf {
    let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"].iter().find_map(|prefix| dir.strip_prefix(*prefix));
    match rest {
        Some(rest) => origin.join(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest))),
        None => PathBuf::from(OsStr::from_bytes(dir)),
    }
}

/// As a whole string, for the dynamic linker or for dlsym; messages that mention it do not count.
const PMIX_CALL: &[u8] = b"\0PMIx_Init\0";
/// Enough of /proc/PID/maps for a process that maps little more than libraries.
const MOST_MAPS: u64 = 4 << 20;
/// How many processes below a rank are examined, and how much is read of the kernel's list of each.
const MOST_BELOW: usize = 16;
const MOST_CHILDREN: u64 = 4 << 10;
const MOST_ENVIRONMENT: u64 = 1 << 20;
/// Variables that MPICH's own launcher sets for its ranks.
const OF_HYDRA: [&[u8]; 3] = [b"PMI_FD=", b"PMI_PORT=", b"PMI_RANK="];
/// The kernel returns no more at once.
const MAPS_READ: usize = 4 << 10;
/// How much of a library is read at once.
const PIECE: usize = 64 << 10;
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
        assert!(is_mpich(b"libmpich.so.12") && is_mpich(b"libmpi.so.12") && is_mpich(b"libmpi.so.12.0.0"));
        assert!(!is_mpich(b"libmpi.so.40") && !is_mpich(b"libmpi.so.120"));
        assert!(is_mpi(b"libmpi.so.40") && is_mpi(b"libmpich.so.12") && is_mpi(b"libmpi_abi.so.1"));
        assert!(!is_mpi(b"libmpi_cxx.so.40") && !is_mpi(b"libmpi.so.txt.py") && !is_mpi(b"libmpit.so.1"));
    }

    #[test]
    fn files_are_read_from_lines_of_maps() {
        let line = b"7f0c2a000000-7f0c2a1fe000 r-xp 00028000 fe:01 1234    /opt/my mpi/libmpi.so.40\n";
        assert_eq!(mapped(line), Some(&b"/opt/my mpi/libmpi.so.40"[..]));
        assert_eq!(mapped(b"7ffc5a000000-7ffc5a021000 rw-p 00000000 00:00 0    [stack]\n"), None);
        assert_eq!(mapped(b"7ffc5a000000-7ffc5a021000 rw-p 00000000 00:00 0\n"), None);
    }

    #[test]
    fn this_process_has_loaded_no_mpi() {
        assert_eq!(loaded(std::process::id(), "a@1"), None);
        assert_eq!(loaded(0, "a@1"), None);
    }

    #[test]
    fn bytes_across_two_pieces_are_found() {
        let wanted = PMIX_CALL;
        for at in [0, 5, PIECE - wanted.len(), PIECE - 3, PIECE - 1, PIECE, 3 * PIECE - 7] {
            let mut text = vec![b'x'; at];
            text.extend_from_slice(wanted);
            assert!(mentions(&text[..], wanted).unwrap(), "at {at}");
            text.extend_from_slice(b"Init\0");
            assert!(mentions(&text[..], wanted).unwrap(), "at {at}, with more behind it");
            text.truncate(at + wanted.len() - 1);
            assert!(!mentions(&text[..], wanted).unwrap(), "without its end, at {at}");
        }
    }

    #[test]
    fn origin_is_the_directory_of_the_program() {
        let origin = Path::new("/opt/a/bin");
        assert_eq!(expanded(b"$ORIGIN/../lib", origin), Path::new("/opt/a/bin/../lib"));
        assert_eq!(expanded(b"${ORIGIN}", origin), Path::new("/opt/a/bin/"));
        assert_eq!(expanded(b"/usr/lib", origin), Path::new("/usr/lib"));
    }
}
