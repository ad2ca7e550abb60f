//! Output in files: which file, and writing to it exactly what the rank wrote.
//!
//! A file that belongs to one rank gets its bytes as they come. In a file of several ranks lines do not mix. A pipe or a terminal may have a
//! slow reader and is never waited for: bytes that it does not accept are queued here (`files/outlet.rs`).

mod outlet;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use phalanx_core::Time;
use phalanx_core::output::{Channel, Files, Lines, MOST_HELD, Rules, Segment, Source, Stream};
use rustix::fs::OFlags;

pub use outlet::Outlet;

/// The files of one run. Each is truncated when it is first written to.
#[derive(Debug)]
pub struct FileSet {
    names: Files,
    /// The caller polls [`FileSet::pending`] and retries.
    takes_pipes: bool,
    files: BTreeMap<PathBuf, Target>,
    open: usize,
    /// Where lines of streams that share a file are held.
    shared: BTreeMap<Stream, PathBuf>,
    /// The first error; output for that file is lost from then on.
    trouble: Option<FileTrouble>,
}

/// A file whose content is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTrouble {
    pub path: PathBuf,
    pub reason: String,
}

#[derive(Debug)]
struct Target {
    /// Closed when too many files were open; reopened to append.
    file: Option<File>,
    /// Used instead of `file` for a pipe or a device.
    outlet: Option<Outlet>,
    lines: Lines,
    broken: bool,
}

impl FileSet {
    pub fn new(names: Files) -> FileSet {
        let (files, shared) = (BTreeMap::new(), BTreeMap::new());
        FileSet { names, takes_pipes: false, files, open: 0, shared, trouble: None }
    }

    /// Accepts pipes and devices as well as files. [`FileSet::pending`] counts the bytes that their readers have not taken.
    pub fn taking_pipes(self) -> FileSet {
        FileSet { takes_pipes: true, ..self }
    }

    /// How many bytes are queued for readers of pipes.
    pub fn pending(&self) -> usize {
        self.outlets().map(Outlet::pending).sum()
    }

    /// Writes as many queued bytes as readers take now.
    pub fn retry(&mut self) {
        for (path, target) in &mut self.files {
            if let Some(outlet) = &mut target.outlet
                && let Err(error) = outlet.flush()
            {
                self.trouble.get_or_insert_with(|| cannot_write(path, &error));
            }
        }
    }

    /// Since when a reader has taken none of the bytes queued for it.
    pub fn idle_since(&self) -> Option<Instant> {
        self.outlets().filter_map(Outlet::idle_since).min()
    }

    /// Gives up on readers that have been idle since that time or longer.
    pub fn give_up(&mut self, idle_since: Instant) {
        let outlets = self.files.values_mut().filter_map(|target| target.outlet.as_mut());
        outlets.filter(|one| one.idle_since().is_some_and(|at| at <= idle_since)).for_each(Outlet::give_up);
    }

    /// How many bytes were dropped because their readers were given up.
    pub fn undelivered(&self) -> u64 {
        self.outlets().map(Outlet::undelivered).sum()
    }

    fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.files.values().filter_map(|target| target.outlet.as_ref())
    }

    pub fn data(&mut self, now: Time, source: &Source<'_>, channel: Channel, data: &[u8]) {
        self.write(source, channel, |lines, emit| lines.data(now, source.stream, data, emit));
    }

    pub fn end(&mut self, now: Time, source: &Source<'_>, channel: Channel) {
        self.write(source, channel, |lines, emit| lines.end(now, source.stream, emit));
    }

    /// How many bytes of a stream are still to be written.
    pub fn held(&self, stream: &Stream) -> usize {
        let target = self.shared.get(stream).and_then(|path| self.files.get(path));
        target.map_or(0, |target| target.lines.held(stream))
    }

    pub fn finish(&mut self) {
        for (path, target) in &mut self.files {
            let mut bytes = Vec::new();
            target.lines.finish(&mut |piece| append(&mut bytes, piece));
            if let Err(error) = target.append(path, &bytes) {
                self.trouble.get_or_insert_with(|| cannot_write(path, &error));
            }
        }
    }

    pub fn take_trouble(&mut self) -> Option<FileTrouble> {
        self.trouble.take()
    }

    fn write(
        &mut self,
        source: &Source<'_>,
        channel: Channel,
        step: impl FnOnce(&mut Lines, &mut dyn FnMut(Segment<'_>)),
    ) {
        let path = PathBuf::from(OsString::from_vec(self.names.path(source, channel)));
        if !self.files.contains_key(&path) {
            let target = Target::create(&path, self.names.one_rank_each(), self.takes_pipes);
            if let Err(error) = &target.1 {
                self.trouble.get_or_insert_with(|| cannot_write(&path, error));
            }
            self.open += 1;
            self.files.insert(path.clone(), target.0);
        }
        let Some(target) = self.files.get_mut(&path) else { return };
        if !self.names.one_rank_each() && !self.shared.contains_key(source.stream) {
            self.shared.insert(source.stream.clone(), path.clone());
        }
        let mut bytes = Vec::new();
        step(&mut target.lines, &mut |piece| append(&mut bytes, piece));
        let was_closed = target.file.is_none();
        if let Err(error) = target.append(&path, &bytes) {
            self.trouble.get_or_insert_with(|| cannot_write(&path, &error));
        }
        self.open += usize::from(was_closed && target.file.is_some());
        if self.open > MOST_OPEN {
            self.files.values_mut().for_each(|target| target.file = None);
            self.open = 0;
        }
    }
}

impl Target {
    fn create(path: &Path, solo: bool, takes_pipes: bool) -> (Target, io::Result<()>) {
        let rules = Rules { solo, opens: true, prompt_after: None, patience: PATIENCE, most_held: MOST_HELD };
        let mut target = Target { file: None, outlet: None, lines: Lines::new(rules), broken: false };
        let made = target.open_first(path, takes_pipes);
        target.broken = made.is_err();
        (target, made)
    }

    fn open_first(&mut self, path: &Path, takes_pipes: bool) -> io::Result<()> {
        if takes_pipes && let Some(outlet) = Outlet::open(path)? {
            self.outlet = Some(outlet);
            return Ok(());
        }
        let made = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => std::fs::create_dir_all(parent),
            _ => Ok(()),
        };
        made?;
        self.file = Some(open(path, File::options().create(true).write(true).truncate(true))?);
        Ok(())
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.broken || bytes.is_empty() {
            return Ok(());
        }
        if let Some(outlet) = &mut self.outlet {
            return outlet.write(bytes);
        }
        let result = match &mut self.file {
            Some(file) => file.write_all(bytes),
            closed => {
                open(path, File::options().append(true)).and_then(|file| closed.insert(file).write_all(bytes))
            }
        };
        self.broken = result.is_err();
        result
    }
}

/// The writing thread serves others as well, so no file may block it. A pipe would sooner or later.
fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = how.custom_flags(flags.bits().cast_signed()).open(path);
    // Opening a pipe fails while it has no reader.
    let is_pipe = match &opened {
        Ok(file) => file.metadata()?.file_type().is_fifo(),
        Err(_) => std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()),
    };
    match is_pipe {
        true => {
            Err(io::Error::other("it is a pipe, whose reader could stop px; standard output can go to one"))
        }
        false => opened,
    }
}

fn append(bytes: &mut Vec<u8>, piece: Segment<'_>) {
    match piece {
        Segment::Text { bytes: text, .. } => bytes.extend_from_slice(text),
        Segment::Break { .. } => bytes.push(b'\n'),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> FileTrouble {
    FileTrouble { path: path.to_owned(), reason: error.to_string() }
}

impl fmt::Display for FileTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write output to '{}': {}", self.path.display(), self.reason)
    }
}

const MOST_OPEN: usize = 256;
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
