//! Which file a program's name means, and why a file cannot be executed.
//!
//! Names are looked up in the rank's own PATH and relative to the rank's own directory, as by a shell there.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use phalanx_dvm::{SpawnFailure, SpawnStep};
use phalanx_wire::Text;
use rustix::fs::{Access, access};

use crate::elf::Elf;

/// The file that `program` means. A name with a slash is used as it is; others are looked up in `path`, then in the working directory, as other
/// launchers do. The launcher's own name is found even if neither has it.
pub(crate) fn find(program: &[u8], path: Option<&[u8]>, cwd: Option<&Path>) -> Result<CString, SpawnFailure> {
    let failure = |errno| SpawnFailure { step: SpawnStep::Find, subject: shown(program), errno };
    let c_string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| failure(libc::ENOENT));
    if program.is_empty() {
        return Err(failure(libc::ENOENT));
    }
    if program.contains(&b'/') {
        return c_string(program.to_vec());
    }
    let mut denied = false;
    for dir in path.unwrap_or(DEFAULT_PATH).split(|b| *b == b':').chain([&b"."[..]]) {
        // An empty entry is the current directory.
        let dir = Path::new(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir }));
        let candidate = dir.join(OsStr::from_bytes(program));
        match executable(&in_directory(&candidate, cwd)) {
            Some(true) => return c_string(candidate.into_os_string().into_vec()),
            Some(false) => denied = true,
            None => {}
        }
    }
    if program == OWN_NAME
        && let Ok(own) = std::env::current_exe()
    {
        return c_string(own.into_os_string().into_vec());
    }
    Err(failure(if denied { libc::EACCES } else { libc::ENOENT }))
}

/// The path from the root directory of a file that was found by [`find`].
pub(super) fn from_root(file: &[u8], cwd: Option<&Path>) -> Text {
    let file = in_directory(Path::new(OsStr::from_bytes(file)), cwd);
    // A current directory that was removed has no path.
    let whole = std::path::absolute(&file).unwrap_or(file);
    Text::from_bytes(whole.as_os_str().as_bytes())
}

/// Explains what is wrong with a file better than the errno of `execve`.
pub(super) fn explain_exec(path: &[u8], cwd: Option<&Path>, errno: i32) -> SpawnFailure {
    let file = in_directory(Path::new(OsStr::from_bytes(path)), cwd);
    let failure = |subject, errno| SpawnFailure { step: SpawnStep::Exec, subject, errno };
    if file.is_dir() {
        return failure(shown(path), libc::EISDIR);
    }
    // The file exists and yet "no such file": its interpreter is missing.
    if errno == libc::ENOENT
        && let Some(interpreter) = interpreter(&file)
    {
        let of = match interpreter.strip_suffix(b"\r") {
            Some(name) => format!(
                "{}\\r (interpreter of {}, whose first line ends with a carriage return, as on Windows)",
                shown(name),
                shown(path)
            ),
            None => format!("{} (interpreter of {})", shown(&interpreter), shown(path)),
        };
        return failure(of, errno);
    }
    failure(shown(path), errno)
}

/// `None`: there is no such file.
fn executable(file: &Path) -> Option<bool> {
    let metadata = file.metadata().ok()?;
    metadata.is_file().then(|| access(file, Access::EXEC_OK).is_ok())
}

fn in_directory(file: &Path, cwd: Option<&Path>) -> PathBuf {
    cwd.map_or_else(|| file.to_owned(), |cwd| cwd.join(file))
}

/// The interpreter that a script or a dynamically linked program names.
fn interpreter(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        // The kernel parts words at blanks alone, so a carriage return belongs to the name.
        let mut words = line.split(|b| *b == b'\n').next()?.split(|b| matches!(b, b' ' | b'\t'));
        return words.find(|word| !word.is_empty()).map(<[u8]>::to_vec);
    }
    Elf::open(path)?.interpreter()
}

pub(super) fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const OWN_NAME: &[u8] = b"px";
/// What `execvp` uses where PATH is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";
/// As much of a script's first line as the kernel reads.
const HEAD_BYTES: u64 = 256;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn names_are_found_in_path_and_by_directory() {
        assert_eq!(find(b"sh", Some(b"/nowhere:/bin"), None).unwrap().as_bytes(), b"/bin/sh");
        assert_eq!(find(b"sh", Some(b"bin"), Some(Path::new("/"))).unwrap().as_bytes(), b"bin/sh");
        assert_eq!(find(b"sh", Some(b"/nowhere:"), Some(Path::new("/bin"))).unwrap().as_bytes(), b"./sh");
        assert_eq!(find(b"sh", Some(b"/nowhere"), Some(Path::new("/bin"))).unwrap().as_bytes(), b"./sh");
        assert_eq!(find(b"./none", None, None).unwrap().as_bytes(), b"./none");
        let missing = find(b"no-such-program", Some(b"/bin"), None).unwrap_err();
        assert_eq!((missing.step, missing.errno), (SpawnStep::Find, libc::ENOENT));
        assert_eq!(missing.subject, "no-such-program");
        assert_eq!(find(b"", None, None).unwrap_err().errno, libc::ENOENT);
    }

    #[test]
    fn paths_are_given_from_the_root_directory() {
        let shown = |file: &str, cwd| from_root(file.as_bytes(), Some(Path::new(cwd))).to_string_lossy();
        assert_eq!(shown("/bin/sh", "/home"), "/bin/sh");
        assert_eq!(shown("./sh", "/bin"), "/bin/sh");
        assert_eq!(shown("bin/./sh", "/"), "/bin/sh");
        let here = std::env::current_dir().unwrap();
        assert_eq!(Path::new(&shown("sh", "bin")), here.join("bin/sh"));
    }

    #[test]
    fn our_own_name_is_always_found() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(find(b"px", Some(b"/nowhere"), None).unwrap().as_bytes(), own.as_os_str().as_bytes());
    }

    #[test]
    fn a_file_without_execute_permission_is_not_called_missing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain"), "x").unwrap();
        let path = dir.path().as_os_str().as_bytes();
        assert_eq!(find(b"plain", Some(path), None).unwrap_err().errno, libc::EACCES);
    }

    #[test]
    fn missing_interpreters_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#! /no/such/interpreter -x\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let failure = explain_exec(b"script", Some(dir.path()), libc::ENOENT);
        assert_eq!(failure.subject, "/no/such/interpreter (interpreter of script)");
        std::fs::write(&script, "#!/bin/sh\r\necho\r\n").unwrap();
        let failure = explain_exec(b"script", Some(dir.path()), libc::ENOENT);
        assert!(failure.subject.starts_with("/bin/sh\\r (interpreter of script, whose first line ends with"));
        let failure = explain_exec(b"absent", Some(dir.path()), libc::ENOENT);
        assert_eq!(failure.subject, "absent");
        assert_eq!(explain_exec(b"/tmp", None, libc::EACCES).errno, libc::EISDIR);
    }
}
