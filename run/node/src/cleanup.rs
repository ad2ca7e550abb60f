//! Files that processes have asked to be removed behind them, wherever those are.
//!
//! MPI libraries put shared memory into /dev/shm and rely on their runtime to remove it when a rank does not. What was
//! asked for is also written to a journal in the session directory, which the [warden](crate::warden) and later
//! launchers carry out if we cannot. Nothing is removed that belongs to somebody else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use phalanx_dvm::Cleanup;
use phalanx_wire::{Nspace, ProcId, Text};
use rustix::process::geteuid;

/// Everything that is still to be removed.
#[derive(Debug, Default)]
pub(crate) struct Cleanups {
    by_proc: BTreeMap<ProcId, Vec<Item>>,
    by_job: BTreeMap<Nspace, Vec<Item>>,
    journal: Option<File>,
    journaled: usize,
}

/// One path, and what of it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    path: PathBuf,
    extent: Extent,
    ignore: Vec<Text>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    dir: bool,
    recursive: bool,
    only_empty: bool,
    leave_top: bool,
}

impl Cleanups {
    /// Takes note, here and in the journal of the session whose directory is `dir` and exists.
    pub(crate) fn register(&mut self, dir: &Path, proc: &ProcId, what: &Cleanup) {
        let Cleanup { recursive, only_empty, leave_top, .. } = *what;
        let item = |path: &Text, extent| Item {
            path: PathBuf::from(OsStr::from_bytes(path.as_bytes())),
            extent,
            ignore: what.ignore.clone(),
        };
        let files: Vec<Item> = what.files.iter().map(|path| item(path, Extent::default())).collect();
        let extent = Extent { dir: true, recursive, only_empty, leave_top };
        let dirs: Vec<Item> = what.dirs.iter().map(|path| item(path, extent)).collect();
        for (item, by_job) in
            files.into_iter().map(|item| (item, what.by_job)).chain(dirs.into_iter().map(|item| (item, true)))
        {
            // What lies in the session directory goes with it.
            if item.path.starts_with(dir) || !item.is_sensible() {
                continue;
            }
            let known = if by_job {
                self.by_job.entry(proc.nspace.clone()).or_default()
            } else {
                self.by_proc.entry(proc.clone()).or_default()
            };
            if known.contains(&item) {
                continue;
            }
            let line = item.line();
            known.push(item);
            if let Err(e) = self.write(dir, &line) {
                tracing::warn!("cannot note what is to be removed in {}: {e}", dir.display());
            }
        }
    }

    pub(crate) fn proc_ended(&mut self, proc: &ProcId) {
        self.by_proc.remove(proc).into_iter().flatten().for_each(|item| item.remove());
    }

    pub(crate) fn job_ended(&mut self, nspace: &Nspace) {
        let left = self.by_proc.extract_if(.., |proc, _| proc.nspace == *nspace);
        left.flat_map(|(_, items)| items).for_each(|item| item.remove());
        self.by_job.remove(nspace).into_iter().flatten().for_each(|item| item.remove());
    }

    fn write(&mut self, dir: &Path, line: &[u8]) -> io::Result<()> {
        if self.journaled + line.len() > JOURNAL_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => {
                let file =
                    OpenOptions::new().append(true).create_new(true).mode(0o600).open(dir.join(JOURNAL))?;
                self.journal.insert(file)
            }
        };
        self.journaled += line.len();
        journal.write_all(line)
    }
}

/// Removes what the journal of a session says that is over.
pub(crate) fn carry_out_journal(dir: &Path) {
    let Ok(journal) = fs::read(dir.join(JOURNAL)) else { return };
    for line in journal.split(|b| *b == b'\n') {
        if let Some(item) = Item::from_line(line) {
            item.remove();
        }
    }
}

impl Item {
    /// Absolute, below something, and without detours. A mistake in a program shall not cost its user's files.
    fn is_sensible(&self) -> bool {
        let mut components = self.path.components();
        components.next() == Some(Component::RootDir)
            && components.clone().count() >= 2
            && components.all(|component| matches!(component, Component::Normal(_)))
    }

    fn remove(&self) {
        if let Err(e) = self.try_remove()
            && e.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}, as a process had asked: {e}", self.path.display());
        }
    }

    fn try_remove(&self) -> io::Result<()> {
        let metadata = self.path.symlink_metadata()?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match (self.extent.dir, metadata.is_dir()) {
            (false, false) => fs::remove_file(&self.path),
            (true, true) => self.remove_dir(&self.path, true),
            (true, false) => Err(io::ErrorKind::NotADirectory.into()),
            (false, true) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Never follows a symbolic link: such an entry is no directory here.
    fn remove_dir(&self, dir: &Path, top: bool) -> io::Result<()> {
        let mut left = false;
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let ignored = self.ignore.iter().any(|name| name.as_bytes() == entry.file_name().as_bytes());
            let done = match entry.file_type()?.is_dir() {
                _ if ignored => Ok(false),
                true if self.extent.recursive => self.remove_dir(&entry.path(), false).map(|()| true),
                false if !self.extent.only_empty => fs::remove_file(entry.path()).map(|()| true),
                _ => Ok(false),
            };
            left |= !done.unwrap_or(false);
        }
        if left || (top && self.extent.leave_top) {
            return Ok(());
        }
        match fs::remove_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            done => done,
        }
    }

    /// `FLAGS IGNORED PATH`, with everything escaped that could be taken for something else.
    fn line(&self) -> Vec<u8> {
        let Extent { dir, recursive, only_empty, leave_top } = self.extent;
        let flags = [(dir, b'd'), (recursive, b'r'), (only_empty, b'e'), (leave_top, b't')];
        let mut line: Vec<u8> = flags.into_iter().filter_map(|(on, letter)| on.then_some(letter)).collect();
        line.push(b' ');
        for name in &self.ignore {
            line.extend(escaped(name.as_bytes()));
            line.push(b',');
        }
        line.push(b' ');
        line.extend(escaped(self.path.as_os_str().as_bytes()));
        line.push(b'\n');
        line
    }

    fn from_line(line: &[u8]) -> Option<Item> {
        let mut fields = line.splitn(3, |b| *b == b' ');
        let (flags, ignore, path) = (fields.next()?, fields.next()?, fields.next()?);
        let has = |letter| flags.contains(&letter);
        let names = ignore.split(|b| *b == b',').filter(|name| !name.is_empty());
        let item = Item {
            path: PathBuf::from(OsStr::from_bytes(&unescaped(path)?)),
            extent: Extent {
                dir: has(b'd'),
                recursive: has(b'r'),
                only_empty: has(b'e'),
                leave_top: has(b't'),
            },
            ignore: names
                .map(|name| unescaped(name).map(|name| Text::from_bytes(&name)))
                .collect::<Option<_>>()?,
        };
        item.is_sensible().then_some(item)
    }
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | b' ' | b',' | b'\n' => out.extend(format!("%{byte:02x}").into_bytes()),
            byte => out.push(*byte),
        }
    }
    out
}

fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (code, after) = after.split_at_checked(2)?;
            out.push(u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?);
            rest = after;
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}

const JOURNAL: &str = "cleanup";
/// Some ten thousand names.
const JOURNAL_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use phalanx_spec::Rank;

    use super::*;

    fn proc(rank: u32) -> ProcId {
        ProcId::new(&Nspace::new("job").unwrap(), Rank(rank))
    }

    fn text(path: &Path) -> Text {
        Text::from_bytes(path.as_os_str().as_bytes())
    }

    #[test]
    fn lines_read_back() {
        let item = Item {
            path: "/a b/c,d\n%/e".into(),
            extent: Extent { dir: true, leave_top: true, ..Extent::default() },
            ignore: vec!["x y".into(), ",".into()],
        };
        let line = item.line();
        assert_eq!(Item::from_line(line.strip_suffix(b"\n").unwrap()), Some(item));
        for bad in ["", "d", "d  relative/path", "d  /", "d  /top", "d  /a/../b", "  /a/%zz"] {
            assert_eq!(Item::from_line(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn files_go_with_their_process_and_directories_with_the_job() {
        let session = tempfile::tempdir().unwrap();
        let place = tempfile::tempdir().unwrap();
        let (file, shared, dir) = (place.path().join("a"), place.path().join("b"), place.path().join("c"));
        fs::write(&file, "").unwrap();
        fs::write(&shared, "").unwrap();
        fs::create_dir_all(dir.join("deep")).unwrap();
        fs::write(dir.join("deep/file"), "").unwrap();
        let mut cleanups = Cleanups::default();
        let what = Cleanup { files: vec![text(&file)], ..Cleanup::default() };
        cleanups.register(session.path(), &proc(0), &what);
        let what = Cleanup { files: vec![text(&shared)], by_job: true, ..Cleanup::default() };
        cleanups.register(session.path(), &proc(0), &what);
        let what = Cleanup { dirs: vec![text(&dir)], recursive: true, ..Cleanup::default() };
        cleanups.register(session.path(), &proc(0), &what);
        cleanups.register(session.path(), &proc(1), &what);

        cleanups.proc_ended(&proc(0));
        assert!(!file.exists() && shared.exists() && dir.exists());
        cleanups.job_ended(&proc(0).nspace);
        assert!(!shared.exists() && !dir.exists());
    }

    #[test]
    fn directories_go_as_far_as_was_asked() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        let lay = || {
            let _ = fs::remove_dir_all(&top);
            fs::create_dir_all(top.join("empty/empty")).unwrap();
            fs::create_dir_all(top.join("full")).unwrap();
            fs::write(top.join("full/keep"), "").unwrap();
            fs::write(top.join("full/file"), "").unwrap();
            std::os::unix::fs::symlink("/tmp", top.join("link")).unwrap();
        };
        let remove = |extent: Extent, ignore: &[&str]| {
            lay();
            let ignore = ignore.iter().map(|name| Text::from(*name)).collect();
            Item { path: top.clone(), extent, ignore }.try_remove().unwrap();
        };
        let all = Extent { dir: true, recursive: true, ..Extent::default() };
        remove(all, &[]);
        assert!(!top.exists() && Path::new("/tmp").exists());
        remove(Extent { leave_top: true, ..all }, &[]);
        assert_eq!(fs::read_dir(&top).unwrap().count(), 0);
        remove(Extent { only_empty: true, ..all }, &[]);
        assert!(!top.join("empty").exists() && top.join("full/file").exists());
        remove(all, &["keep"]);
        assert!(top.join("full/keep").exists() && !top.join("full/file").exists());
        remove(Extent { recursive: false, ..all }, &[]);
        assert!(top.join("empty/empty").exists() && top.join("link").symlink_metadata().is_err());
    }

    #[test]
    fn a_journal_is_carried_out_later() {
        let session = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut cleanups = Cleanups::default();
        let files = vec![text(file.path()), Text::from("relative"), Text::from("/")];
        cleanups.register(session.path(), &proc(3), &Cleanup { files, ..Cleanup::default() });
        drop(cleanups);
        carry_out_journal(session.path());
        assert!(!file.path().exists());
    }
}
