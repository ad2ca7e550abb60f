//! Output in files: which file, and writing to it exactly what the rank wrote.
//!
//! A file that belongs to one rank gets its bytes as they come. In a file of several ranks lines do not mix.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_core::Time;
use phalanx_core::output::{Channel, Files, Lines, MOST_HELD, Rules, Segment, Source, Stream};
use rustix::fs::OFlags;

/// The files of one run. Each is emptied when it is first written to.
#[derive(Debug)]
pub struct FileSet {
    names: Files,
    files: BTreeMap<PathBuf, Target>,
    open: usize,
    /// Where lines of streams that share a file are held.
    shared: BTreeMap<Stream, PathBuf>,
    /// The first thing that went wrong; what belongs into that file is lost from then on.
    trouble: Option<FileTrouble>,
}

/// A file that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTrouble {
    pub path: PathBuf,
    pub reason: String,
}

#[derive(Debug)]
struct Target {
    /// Closed when too many were open; opened again to append.
    file: Option<File>,
    lines: Lines,
    broken: bool,
}

impl FileSet {
    pub fn new(names: Files) -> FileSet {
        FileSet { names, files: BTreeMap::new(), open: 0, shared: BTreeMap::new(), trouble: None }
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
            let target = Target::create(&path, self.names.one_rank_each());
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
    fn create(path: &Path, solo: bool) -> (Target, io::Result<()>) {
        let made = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => std::fs::create_dir_all(parent),
            _ => Ok(()),
        };
        let file = made.and_then(|()| open(path, File::options().create(true).write(true).truncate(true)));
        let rules = Rules { solo, opens: true, prompt_after: None, patience: PATIENCE, most_held: MOST_HELD };
        let (file, result) = match file {
            Ok(file) => (Some(file), Ok(())),
            Err(error) => (None, Err(error)),
        };
        (Target { broken: file.is_none(), file, lines: Lines::new(rules) }, result)
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.broken || bytes.is_empty() {
            return Ok(());
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

/// Whoever writes serves others meanwhile, so nothing that is written to may make it wait. A pipe without a reader would at once, any
/// other sooner or later.
fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = how.custom_flags(flags.bits().cast_signed()).open(path);
    // Without a reader it cannot be opened.
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
