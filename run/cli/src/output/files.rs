//! Ranks' output in files: which file, and writing to it exactly what the rank wrote.
//!
//! A file that belongs to one rank gets its bytes as they come. In a file of several ranks lines do not mix.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::output::lines::{Lines, Piece, Rules};
use crate::output::{Channel, Source};

/// How files are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// `PATH.RANK.out` and `PATH.RANK.err`
    PerStream(PathBuf),
    /// `PATH/rank.RANK/stdout` and `stderr`
    Directory(PathBuf),
    Pattern(Vec<Part>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(String),
    Nspace,
    Rank,
    PaddedRank,
    Host,
    Channel,
}

impl Files {
    /// Reads a pattern with `%n`, `%r`, `%R`, `%h`, `%s`, `%%`.
    pub(crate) fn pattern(path: &Path) -> Result<Files, Failure> {
        let Some(text) = path.to_str() else {
            return Err(Failure::usage(format!("'{}' is not UTF-8", path.display())));
        };
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                literal.push(letter);
                continue;
            }
            let part = match letters.next() {
                Some('%') => {
                    literal.push('%');
                    continue;
                }
                Some('n') => Part::Nspace,
                Some('r') => Part::Rank,
                Some('R') => Part::PaddedRank,
                Some('h') => Part::Host,
                Some('s') => Part::Channel,
                other => {
                    let found = other.map_or("a '%' at its end".to_owned(), |c| format!("'%{c}'"));
                    return Err(Failure::usage(format!("the pattern '{text}' holds {found}"))
                        .hint("known are %n (job), %r (rank), %R (rank, padded), %h (host), %s (stdout or stderr), %%"));
                }
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Files::Pattern(parts))
    }

    /// The file for what `source` writes on `channel`.
    pub(crate) fn path(&self, source: &Source<'_>, channel: Channel) -> PathBuf {
        let rank = source.stream.proc.rank.0;
        match self {
            Files::PerStream(path) => {
                let ending = if channel == Channel::Stdout { "out" } else { "err" };
                let mut name = path.clone().into_os_string();
                name.push(format!(".{rank}.{ending}"));
                name.into()
            }
            Files::Directory(path) => path.join(format!("rank.{rank}")).join(channel.name()),
            Files::Pattern(parts) => {
                let mut name = String::new();
                for part in parts {
                    match part {
                        Part::Literal(text) => name.push_str(text),
                        Part::Nspace => name.push_str(source.stream.proc.nspace.as_str()),
                        Part::Rank => name.push_str(&rank.to_string()),
                        Part::PaddedRank => {
                            name.push_str(&format!("{rank:0width$}", width = source.rank_width))
                        }
                        Part::Host => name.push_str(source.host.unwrap_or("unknown")),
                        Part::Channel => name.push_str(channel.name()),
                    }
                }
                name.into()
            }
        }
    }

    /// Whether no file is written by two ranks.
    fn one_rank_each(&self) -> bool {
        match self {
            Files::PerStream(_) | Files::Directory(_) => true,
            Files::Pattern(parts) => parts.iter().any(|p| matches!(p, Part::Rank | Part::PaddedRank)),
        }
    }
}

/// The files of one run. Each is emptied when it is first written to.
#[derive(Debug)]
pub(crate) struct FileSet {
    names: Files,
    files: BTreeMap<PathBuf, Target>,
    open: usize,
    /// The first thing that went wrong; what belongs into that file is lost from then on.
    trouble: Option<Failure>,
}

#[derive(Debug)]
struct Target {
    /// Closed when too many were open; opened again to append.
    file: Option<File>,
    lines: Lines,
    broken: bool,
}

impl FileSet {
    pub(crate) fn new(names: Files) -> FileSet {
        FileSet { names, files: BTreeMap::new(), open: 0, trouble: None }
    }

    pub(crate) fn data(&mut self, now: Instant, source: &Source<'_>, channel: Channel, data: &[u8]) {
        self.write(source, channel, |lines, emit| lines.data(now, source.stream, data, emit));
    }

    pub(crate) fn end(&mut self, now: Instant, source: &Source<'_>, channel: Channel) {
        self.write(source, channel, |lines, emit| lines.end(now, source.stream, emit));
    }

    pub(crate) fn finish(&mut self) {
        for (path, target) in &mut self.files {
            let mut bytes = Vec::new();
            target.lines.finish(&mut |piece| append(&mut bytes, piece));
            if let Err(error) = target.append(path, &bytes) {
                self.trouble.get_or_insert_with(|| cannot_write(path, &error));
            }
        }
    }

    pub(crate) fn take_trouble(&mut self) -> Option<Failure> {
        self.trouble.take()
    }

    fn write(
        &mut self,
        source: &Source<'_>,
        channel: Channel,
        step: impl FnOnce(&mut Lines, &mut dyn FnMut(Piece<'_>)),
    ) {
        let path = self.names.path(source, channel);
        if !self.files.contains_key(&path) {
            let target = Target::create(&path, self.names.one_rank_each());
            if let Err(error) = &target.1 {
                self.trouble.get_or_insert_with(|| cannot_write(&path, error));
            }
            self.open += 1;
            self.files.insert(path.clone(), target.0);
        }
        let Some(target) = self.files.get_mut(&path) else { return };
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
        let file = made.and_then(|()| File::create(path));
        let rules = Rules { solo, opens: true, prompt_after: None, patience: PATIENCE };
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
            closed => OpenOptions::new()
                .append(true)
                .open(path)
                .and_then(|file| closed.insert(file).write_all(bytes)),
        };
        self.broken = result.is_err();
        result
    }
}

fn append(bytes: &mut Vec<u8>, piece: Piece<'_>) {
    match piece {
        Piece::Text { bytes: text, .. } => bytes.extend_from_slice(text),
        Piece::Break => bytes.push(b'\n'),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write output to '{}'", path.display())).because(error)
}

const MOST_OPEN: usize = 256;
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
