//! Files in which a server stores the data that fences have collected, for the clients of its node: writing and reading them.
//!
//! Only their owner can read them, and only files that the same user has written are read. Nothing here waits. A failure is harmless:
//! the clients concerned ask the server instead.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx_core::OpenCollected;
use phalanx_wire::Text;
use phalanx_wire::collected::ReadAt;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, unlinkat};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// Common prefix of the paths of a server's files in this directory, unique to the server. None: the path is not UTF-8, which
/// PMIx cannot pass to clients, or there is no randomness.
pub fn beginning(dir: &Path) -> Option<String> {
    let mut random = [0; 8];
    let got = getrandom(&mut random, GetRandomFlags::NONBLOCK).ok()?;
    let name = format!("phalanx-{:016x}", u64::from_ne_bytes(random));
    let path = std::path::absolute(dir).ok()?.join(name);
    (got == random.len()).then(|| path.to_str().map(str::to_owned)).flatten()
}

/// A server's files. Dropping this removes them, in the process that created it.
#[derive(Debug)]
pub struct Written {
    /// Each file with the directory that it was created in.
    files: BTreeMap<PathBuf, Arc<OwnedFd>>,
    /// The directory of the last file.
    dir: Option<(PathBuf, Arc<OwnedFd>)>,
    pid: u32,
}

impl Default for Written {
    fn default() -> Written {
        Written { files: BTreeMap::new(), dir: None, pid: std::process::id() }
    }
}

impl Written {
    /// Writes to a file, all or nothing. At 0 it creates the file; elsewhere it appends to one of its own that ends there.
    pub fn write(&mut self, path: String, at: u64, bytes: &[u8]) {
        let path = PathBuf::from(path);
        let written = match at {
            0 => self.make(&path, bytes),
            _ => match self.files.get(&path) {
                Some(dir) => go_on(dir, &path, at, bytes),
                // The file could not be created.
                None => return,
            },
        };
        if let Err(error) = written {
            tracing::debug!(path = %path.display(), %error, "cannot write what was collected: clients ask for it");
        }
    }

    pub fn remove(&mut self, path: &str) {
        if let Some(dir) = self.files.remove(Path::new(path)) {
            remove(&dir, Path::new(path));
        }
    }

    fn make(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let dir = self.dir_of(path)?;
        make(&dir, path, bytes)?;
        self.files.insert(path.to_owned(), dir);
        Ok(())
    }

    /// All files of a server are in one directory.
    fn dir_of(&mut self, path: &Path) -> io::Result<Arc<OwnedFd>> {
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if let Some((known, dir)) = &self.dir
            && known == parent
        {
            return Ok(dir.clone());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = Arc::new(open(parent, flags, Mode::empty())?);
        self.dir = Some((parent.to_owned(), dir.clone()));
        Ok(dir)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            for (path, dir) in &self.files {
                remove(dir, path);
            }
        }
    }
}

fn remove(dir: &OwnedFd, path: &Path) {
    let _ = unlinkat(dir, path.file_name().unwrap_or_default(), AtFlags::empty());
}

fn make(dir: &OwnedFd, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = path.file_name().unwrap_or_default();
    let mut file = File::from(openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(bytes);
    if written.is_err() {
        remove(dir, path);
    }
    written
}

fn go_on(dir: &OwnedFd, path: &Path, at: u64, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(dir, path.file_name().unwrap_or_default(), flags, Mode::empty())?);
    if file.metadata()?.len() != at {
        return Err(io::Error::other("it is not as it was left"));
    }
    let written = file.write_all_at(bytes, at);
    if written.is_err() {
        let _ = file.set_len(at);
    }
    written
}

/// Opens files that a server has written.
#[derive(Debug)]
pub struct Files;

#[derive(Debug)]
struct Pages {
    file: File,
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Arc<dyn ReadAt>> {
        let path = Path::new(file.as_str()?);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = open(path, flags, Mode::empty()).inspect_err(
            |error| tracing::debug!(path = %path.display(), %error, "cannot read what was collected"),
        );
        let file = File::from(opened.ok()?);
        let stat = fstat(&file).ok()?;
        let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == geteuid().as_raw()
            && stat.st_mode & 0o022 == 0;
        is_ours.then(|| Arc::new(Pages { file }) as Arc<dyn ReadAt>)
    }
}

impl ReadAt for Pages {
    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn text(path: &Path) -> Text {
        Text::from(path.to_str().unwrap())
    }

    #[test]
    fn collected_files_are_readable_until_the_server_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = beginning(dir.path()).unwrap();
        assert_ne!(beginning(dir.path()), Some(path.clone()));
        let mut written = Written::default();
        written.write(format!("{path}.1"), 0, b"one");
        written.write(format!("{path}.2"), 0, b"two");
        assert_eq!(fs::metadata(format!("{path}.1")).unwrap().permissions().mode() & 0o777, 0o600);
        let pages = Files.open(&Text::from(format!("{path}.2"))).unwrap();
        let mut bytes = [0; 2];
        assert!(pages.length() == 3 && pages.read_at(1, &mut bytes) && bytes == *b"wo");
        assert!(!pages.read_at(2, &mut bytes));
        written.write(format!("{path}.2"), 3, b", three");
        written.write(format!("{path}.2"), 4, b"not where it ends");
        written.remove(&format!("{path}.2"));
        assert!(pages.length() == 10 && pages.read_at(8, &mut bytes) && bytes == *b"ee");
        drop(written);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_that_is_there_is_overwritten_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "theirs").unwrap();
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).unwrap();
        let mut written = Written::default();
        for path in [&file, &link, &dir.path().join("absent/file")] {
            written.write(path.to_str().unwrap().to_owned(), 0, b"ours");
            written.write(path.to_str().unwrap().to_owned(), 6, b"ours");
            written.remove(path.to_str().unwrap());
        }
        drop(written);
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
        assert!(link.is_symlink() && !dir.path().join("nowhere").exists());
    }

    #[test]
    fn only_files_that_nobody_else_can_have_written_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(Files.open(&text(&file)).is_none());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Files.open(&text(&file)).is_some());
        assert!(Files.open(&text(&link)).is_none() && Files.open(&text(dir.path())).is_none());
        assert!(Files.open(&text(&dir.path().join("absent"))).is_none());
    }
}
