//! The journal of what is to be removed if the launcher is killed: a file in its session directory.
//!
//! Lines of words; bytes that would end a word are escaped. The first line names the place where the paths are valid: this mount namespace, since
//! this boot. Other machines and containers may share the file system of a session directory, and a launcher that finds the journal there must not
//! remove its own files of the same paths.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use phalanx_dvm::{Cleanup, DirectoryRules};
use phalanx_wire::{Nspace, Text};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat, renameat};
use rustix::process::geteuid;

use super::Job;
use crate::session::PrivateDir;

/// One line after the first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Record<'a> {
    Registered {
        nspace: &'a Nspace,
        path: &'a Text,
        what: Cleanup,
    },
    /// The path was removed.
    Done {
        nspace: &'a Nspace,
        path: &'a Text,
    },
    /// All paths of the job were removed.
    Over {
        nspace: &'a Nspace,
    },
}

#[derive(Debug)]
pub(super) struct Journal {
    /// The session's directory.
    dir: OwnedFd,
    file: File,
    bytes: usize,
    /// The size at which it is written anew.
    most_bytes: usize,
}

impl Journal {
    pub(super) fn begin(session: &PrivateDir, first: &[Record<'_>]) -> io::Result<Journal> {
        let dir = session.fd().try_clone()?;
        let mut journal = Journal { file: create(&dir, NAME)?, dir, bytes: 0, most_bytes: LONG };
        let mut text = header()?;
        first.iter().for_each(|record| record.put(&mut text));
        journal.append(&text)?;
        Ok(journal)
    }

    pub(super) fn write(&mut self, records: &[Record<'_>]) -> io::Result<()> {
        let mut text = Vec::new();
        records.iter().for_each(|record| record.put(&mut text));
        self.append(&text)
    }

    pub(super) fn is_long(&self) -> bool {
        self.bytes > self.most_bytes
    }

    /// Replaces the whole file by what is still to be done and these records.
    pub(super) fn write_anew(
        &mut self,
        jobs: &BTreeMap<Nspace, Job>,
        records: &[Record<'_>],
    ) -> io::Result<()> {
        let mut text = header()?;
        for (nspace, job) in jobs {
            for path in &job.ignored {
                Record::Registered { nspace, path, what: Cleanup::Ignored }.put(&mut text);
            }
            for (path, what) in &job.paths {
                Record::Registered { nspace, path, what: *what }.put(&mut text);
            }
        }
        records.iter().for_each(|record| record.put(&mut text));
        let file = create(&self.dir, NEW)?;
        (&file).write_all(&text)?;
        renameat(&self.dir, NEW, &self.dir, NAME)?;
        (self.file, self.bytes) = (file, text.len());
        self.most_bytes = LONG.max(2 * self.bytes);
        Ok(())
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.bytes += text.len();
        Ok(())
    }
}

/// What the journal of a session wants removed. Nothing if it was written elsewhere, or if another user can have written it.
pub(super) fn read(session: &PrivateDir) -> BTreeMap<Nspace, Job> {
    let mut jobs: BTreeMap<Nspace, Job> = BTreeMap::new();
    let (Ok(text), Ok(header)) = (read_ours(session), header()) else { return jobs };
    let Some(records) = text.strip_prefix(header.as_slice()) else { return jobs };
    // A last line without a newline was not written completely.
    for line in records.split_inclusive(|b| *b == b'\n').filter_map(|line| line.strip_suffix(b"\n")) {
        take_in(&mut jobs, line);
    }
    jobs
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?.into())
}

fn read_ours(session: &PrivateDir) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let dir = session.fd();
    let file = openat(dir, NAME, flags, Mode::empty())?;
    if !is_only_ours(dir, FileType::Directory)? || !is_only_ours(&file, FileType::RegularFile)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut text = Vec::new();
    File::from(file).take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

fn is_only_ours(fd: &OwnedFd, kind: FileType) -> io::Result<bool> {
    let stat = fstat(fd)?;
    let ours = stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o022 == 0;
    Ok(ours && FileType::from_raw_mode(stat.st_mode) == kind)
}

fn take_in(jobs: &mut BTreeMap<Nspace, Job>, line: &[u8]) -> Option<()> {
    let mut words = line.split(|b| *b == b' ');
    let mut word = || unescaped(words.next()?);
    let kind = word()?;
    let nspace = Nspace::new(std::str::from_utf8(&word()?).ok()?).ok()?;
    match kind.as_slice() {
        b"over" => drop(jobs.remove(&nspace)),
        b"done" => drop(jobs.get_mut(&nspace)?.paths.remove(&Text::from_bytes(&word()?))),
        kind => {
            let what = match kind {
                b"file" => Cleanup::File,
                b"ignored" => Cleanup::Ignored,
                b"dir" => Cleanup::Directory(rules(&word()?)),
                _ => return None,
            };
            jobs.entry(nspace).or_default().enter(Text::from_bytes(&word()?), what);
        }
    }
    Some(())
}

impl Record<'_> {
    fn put(&self, to: &mut Vec<u8>) {
        let mut words: Vec<&[u8]> = Vec::new();
        let flags;
        match self {
            Record::Registered { nspace, path, what } => {
                match what {
                    Cleanup::File => words.extend([b"file".as_slice(), nspace.as_str().as_bytes()]),
                    Cleanup::Ignored => words.extend([b"ignored".as_slice(), nspace.as_str().as_bytes()]),
                    Cleanup::Directory(rules) => {
                        flags = letters(*rules);
                        words.extend([b"dir".as_slice(), nspace.as_str().as_bytes(), flags.as_slice()]);
                    }
                }
                words.push(path.as_bytes());
            }
            Record::Done { nspace, path } => {
                words.extend([b"done".as_slice(), nspace.as_str().as_bytes(), path.as_bytes()]);
            }
            Record::Over { nspace } => words.extend([b"over".as_slice(), nspace.as_str().as_bytes()]),
        }
        put_line(to, &words);
    }
}

fn letters(rules: DirectoryRules) -> Vec<u8> {
    let DirectoryRules { recursive, only_empty, leave_top } = rules;
    let letters = [(true, b'-'), (recursive, b'r'), (only_empty, b'e'), (leave_top, b't')];
    letters.into_iter().filter_map(|(on, letter)| on.then_some(letter)).collect()
}

fn rules(letters: &[u8]) -> DirectoryRules {
    let has = |letter| letters.contains(&letter);
    DirectoryRules { recursive: has(b'r'), only_empty: has(b'e'), leave_top: has(b't') }
}

/// Names this boot of this machine, and the mount namespace that we see.
fn header() -> io::Result<Vec<u8>> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    let mounts = fs::read_link("/proc/self/ns/mnt")?;
    let mut line = Vec::new();
    put_line(&mut line, &[b"cleanup", boot.trim_ascii(), mounts.as_os_str().as_bytes()]);
    Ok(line)
}

fn put_line(to: &mut Vec<u8>, words: &[&[u8]]) {
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            to.push(b' ');
        }
        for byte in *word {
            match byte {
                b'%' | b' ' | b'\n' => to.extend_from_slice(format!("%{byte:02x}").as_bytes()),
                byte => to.push(*byte),
            }
        }
    }
    to.push(b'\n');
}

fn unescaped(word: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
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

const NAME: &str = "cleanup";
const NEW: &str = "cleanup.new";
const LONG: usize = 1 << 20;
/// Longer than any journal that was rewritten in time.
const LONGEST: u64 = 64 << 20;
