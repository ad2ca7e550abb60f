//! Which bytes of a file of kept output are from which rank, so that the output of single ranks can be found.
//!
//! Beside the file lies another one with a record for each piece: where it begins, its length, and the rank that has written it. A record is written
//! before its piece; bytes without a record are px's own messages.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use phalanx_dvm::Ranges;

/// Records the ranks of bytes on their way into a file.
#[derive(Debug)]
pub(crate) struct Noted {
    file: File,
    /// Pieces that are not in the file yet; their places are those in the buffer.
    waiting: Vec<Extent>,
    /// The rank of the last bytes.
    last: u32,
}

/// Bytes of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    at: u64,
    length: u32,
    rank: u32,
}

impl Noted {
    pub(super) fn new(file: File) -> Noted {
        Noted { file, waiting: Vec::new(), last: NOBODY }
    }

    /// The buffer holds bytes of this rank from `at` to `end`. No rank: of another job.
    pub(crate) fn add(&mut self, rank: Option<u32>, at: usize, end: usize) {
        self.last = rank.unwrap_or(NOBODY);
        self.add_more(at, end);
    }

    /// The same for the rank of the bytes before.
    pub(crate) fn add_more(&mut self, at: usize, end: usize) {
        let (at, rank) = (at as u64, self.last);
        let length = (end as u64).saturating_sub(at) as u32;
        match self.waiting.last_mut() {
            Some(last) if last.rank == rank && last.end() == at => last.length += length,
            _ if length == 0 => {}
            _ => self.waiting.push(Extent { at, length, rank }),
        }
    }

    /// Writes the records of a buffer that is about to be written; `first` returns the file offset of the buffer's first byte.
    pub(crate) fn write(&mut self, first: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let first = first()?;
        let mut records = Vec::with_capacity(self.waiting.len() * RECORD);
        for piece in self.waiting.drain(..) {
            records.extend_from_slice(&Extent { at: first + piece.at, ..piece }.to_bytes());
        }
        self.file.write_all(&records)
    }
}

/// Reads a file of kept output, or certain ranks' parts of it.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    at: u64,
    /// The wanted ranks, and the file of records.
    only: Option<(Ranges, File)>,
    /// The number of records that lie behind us.
    passed: u64,
}

/// Why no more can be copied.
#[derive(Debug)]
pub(super) enum Uncopied {
    Unread(io::Error),
    Unwritten(io::Error),
}

impl From<io::Error> for Uncopied {
    fn from(error: io::Error) -> Uncopied {
        Uncopied::Unread(error)
    }
}

impl Reader {
    pub(super) fn new(file: File, only: Option<(Ranges, File)>) -> Reader {
        Reader { file, at: 0, only, passed: 0 }
    }

    /// Skips the output so far.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        self.at = self.file.metadata()?.len();
        let Some((_, records)) = &self.only else { return Ok(()) };
        let (mut low, mut high) = (0, records.metadata()?.len() / RECORD as u64);
        while low < high {
            let middle = low.midpoint(high);
            match record(records, middle)? {
                Some(piece) if piece.end() <= self.at => low = middle + 1,
                _ => high = middle,
            }
        }
        self.passed = low;
        Ok(())
    }

    /// Writes what has been added since. `false`: nothing.
    pub(super) fn copy(&mut self, to: &mut impl Write) -> Result<bool, Uncopied> {
        // In this order: the record is written before its bytes.
        let end = self.file.metadata()?.len();
        let (began, mut buffer) = (self.at, vec![0; PIECE]);
        while self.at < end {
            let (until, is_wanted) = self.next(end)?;
            while is_wanted && self.at < until {
                let most = usize::try_from(until - self.at).unwrap_or(PIECE).min(PIECE);
                let room = buffer.get_mut(..most).unwrap_or_default();
                let count = self.file.read_at(room, self.at)?;
                if count == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                to.write_all(room.get(..count).unwrap_or_default()).map_err(Uncopied::Unwritten)?;
                self.at += count as u64;
            }
            self.at = until;
        }
        to.flush().map_err(Uncopied::Unwritten)?;
        Ok(self.at > began)
    }

    /// How far the bytes from here on are all from one rank, or px's own, and whether they are wanted.
    fn next(&mut self, end: u64) -> io::Result<(u64, bool)> {
        let Some((ranks, records)) = &self.only else { return Ok((end, true)) };
        loop {
            match record(records, self.passed)? {
                Some(piece) if piece.end() <= self.at => self.passed += 1,
                Some(piece) if piece.at <= self.at => {
                    return Ok((piece.end().min(end), piece.rank != NOBODY && ranks.contains(piece.rank)));
                }
                Some(piece) => return Ok((piece.at.min(end), true)),
                None => return Ok((end, true)),
            }
        }
    }
}

impl Extent {
    fn end(&self) -> u64 {
        self.at.saturating_add(u64::from(self.length))
    }

    fn to_bytes(self) -> [u8; RECORD] {
        let packed = u128::from(self.at) | u128::from(self.length) << 64 | u128::from(self.rank) << 96;
        packed.to_le_bytes()
    }

    fn of_bytes(bytes: [u8; RECORD]) -> Extent {
        let packed = u128::from_le_bytes(bytes);
        Extent { at: packed as u64, length: (packed >> 64) as u32, rank: (packed >> 96) as u32 }
    }
}

/// `None`: the record is missing or incomplete.
fn record(file: &File, number: u64) -> io::Result<Option<Extent>> {
    let mut bytes = [0; RECORD];
    match file.read_exact_at(&mut bytes, number.saturating_mul(RECORD as u64)) {
        Ok(()) => Ok(Some(Extent::of_bytes(bytes))),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

const RECORD: usize = 16;
/// Marks bytes of other jobs than the detached one.
const NOBODY: u32 = u32::MAX;
const PIECE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        kept: File,
        records: File,
    }

    impl Files {
        fn new() -> Files {
            let file = || tempfile::tempfile().expect("a file");
            Files { kept: file(), records: file() }
        }

        /// Fills and writes one buffer.
        fn write(&self, pieces: &[(Option<u32>, &str)]) {
            let mut noted = Noted::new(self.records.try_clone().expect("a descriptor"));
            let mut buffer = String::new();
            for (rank, text) in pieces {
                let at = buffer.len();
                buffer.push_str(text);
                noted.add(*rank, at, buffer.len());
            }
            noted.write(|| Ok(self.kept.metadata()?.len())).expect("room");
            (&self.kept).write_all(buffer.as_bytes()).expect("room");
        }

        fn reader(&self, ranks: &[u32]) -> Reader {
            let mut only = Ranges::new();
            ranks.iter().for_each(|rank| only.insert(*rank));
            let clone = |file: &File| file.try_clone().expect("a descriptor");
            Reader::new(clone(&self.kept), Some((only, clone(&self.records))))
        }
    }

    fn read(reader: &mut Reader) -> String {
        let mut text = Vec::new();
        while reader.copy(&mut text).expect("readable") {}
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn single_ranks_are_found_among_others_and_among_words_of_px() {
        let files = Files::new();
        files.write(&[(Some(0), "a0\n"), (Some(0), "b0\n"), (Some(1), "a1\n"), (None, "of another job\n")]);
        (&files.kept).write_all(b"px: a word\n").expect("room");
        files.write(&[(Some(1), "b1\n"), (Some(2), ""), (Some(0), "c0\n")]);
        assert_eq!(files.records.metadata().expect("a length").len(), 5 * RECORD as u64);
        assert_eq!(read(&mut files.reader(&[0])), "a0\nb0\npx: a word\nc0\n");
        assert_eq!(read(&mut files.reader(&[1, 2])), "a1\npx: a word\nb1\n");
        assert_eq!(read(&mut files.reader(&[3])), "px: a word\n");
        let clone = files.kept.try_clone().expect("a descriptor");
        assert_eq!(read(&mut Reader::new(clone, None)).lines().count(), 7);
    }

    #[test]
    fn later_output_is_read_later_and_earlier_can_be_skipped() {
        let files = Files::new();
        let mut first = files.reader(&[1]);
        assert_eq!(read(&mut first), "");
        files.write(&[(Some(0), "a0\n"), (Some(1), "a1\n")]);
        let mut second = files.reader(&[1]);
        second.skip().expect("readable");
        assert_eq!((read(&mut first).as_str(), read(&mut second).as_str()), ("a1\n", ""));
        files.write(&[(Some(1), "b1\n"), (Some(0), "b0\n")]);
        assert_eq!((read(&mut first).as_str(), read(&mut second).as_str()), ("b1\n", "b1\n"));
    }

    #[test]
    fn a_record_without_its_bytes_hurts_nobody() {
        let files = Files::new();
        files.write(&[(Some(1), "here\n"), (Some(2), "lost with its launcher\n")]);
        files.kept.set_len(9).expect("cutting");
        assert_eq!(read(&mut files.reader(&[2])), "lost");
        (&files.records).write_all(&[1, 2, 3]).expect("room");
        assert_eq!(read(&mut files.reader(&[1])), "here\n");
    }
}
