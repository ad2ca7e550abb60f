//! What a fence has collected in one namespace, as a server of ours stores it in a file for the clients of its node.
//!
//! A collection is a header, an index of ranks in ascending order, and one block per rank: its name, then key and value pairs. A
//! file holds one collection after another, so that later fences need no further file. A collection is written once and read in pieces:
//! a reader holds one block at a time, whatever the size of the job. Its content is checked like a peer's message.
//! The shell opens the files, see [`ReadAt`].

use std::fmt;
use std::sync::Arc;

use phalanx_spec::{MAX_NSLEN, Rank};

use crate::codec::{DecodeError, Format, Generation, Reader, Writer};
use crate::info::Kval;
use crate::name::{Nspace, ProcId};
use crate::text::Blob;

/// How blocks are packed.
pub const FORMAT: Format = Format { generation: Generation::V41, described: false };

/// Something that can be read at any offset.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// The current length in bytes. It may grow.
    fn length(&self) -> u64;
    /// Fills all of `into`; false if there are not enough bytes.
    fn read_at(&self, at: u64, into: &mut [u8]) -> bool;
}

/// The values that one process has committed, as a block.
pub fn block(owner: &ProcId, values: impl Iterator<Item = Kval>) -> Blob {
    let mut writer = Writer::new(FORMAT);
    writer.put(owner);
    for kval in values {
        writer.put(&kval);
    }
    writer.into_bytes().into()
}

/// A whole collection. Each rank occurs once, in ascending order.
pub fn collection<'a>(nspace: &Nspace, blocks: impl Iterator<Item = (Rank, &'a Blob)> + Clone) -> Vec<u8> {
    let name = nspace.as_str().as_bytes();
    let count = blocks.clone().count();
    let head = HEADER + name.len() + count * ENTRY;
    let length = head + blocks.clone().map(|(_, block)| block.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(length as u64).to_be_bytes());
    bytes.extend_from_slice(&short(count).to_be_bytes());
    bytes.extend_from_slice(&short(name.len()).to_be_bytes());
    bytes.extend_from_slice(name);
    let mut at = head as u64;
    for (rank, block) in blocks.clone() {
        bytes.extend_from_slice(&rank.0.to_be_bytes());
        bytes.extend_from_slice(&short(block.len()).to_be_bytes());
        bytes.extend_from_slice(&at.to_be_bytes());
        at += block.len() as u64;
    }
    blocks.for_each(|(_, block)| bytes.extend_from_slice(block.as_bytes()));
    bytes
}

/// A collection in an open file.
#[derive(Debug)]
pub struct Collection<R> {
    pages: R,
    begin: u64,
    nspace: Nspace,
    count: u64,
    index: u64,
    length: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    rank: Rank,
    length: u32,
    at: u64,
}

impl<R: ReadAt> Collection<R> {
    /// Reads the header at `begin`. The collection must be complete, and belong to this namespace.
    pub fn open(pages: R, begin: u64, nspace: &Nspace) -> Result<Collection<R>, DecodeError> {
        let rest = pages.length().saturating_sub(begin);
        let mut head = vec![0; usize::try_from(rest).unwrap_or(usize::MAX).min(HEADER + MAX_NSLEN)];
        read(&pages, begin, &mut head)?;
        let mut fields = Fields(&head);
        let [magic, claimed, count, name_length] =
            [fields.take(8), fields.take(8), fields.take(4), fields.take(4)];
        if magic != Some(MAGIC) {
            return Err(DecodeError::Malformed { what: "the beginning of a collection" });
        }
        let (length, count, name_length) = (number(claimed)?, number(count)?, number(name_length)?);
        if length > rest {
            return Err(DecodeError::TooLong { what: "a collection", claimed: length, limit: rest });
        }
        let name = fields.take(usize::try_from(name_length).unwrap_or(usize::MAX));
        if name != Some(nspace.as_str().as_bytes()) {
            return Err(DecodeError::Malformed { what: "the namespace of a collection" });
        }
        let index = HEADER as u64 + name_length;
        let limit = length.saturating_sub(index) / ENTRY as u64;
        if count > limit {
            return Err(DecodeError::TooLong { what: "the index of a collection", claimed: count, limit });
        }
        Ok(Collection { pages, begin, nspace: nspace.clone(), count, index, length })
    }

    /// The values that this rank has committed; `None` if it is not in the collection.
    pub fn values_of(&self, rank: Rank) -> Result<Option<Vec<Kval>>, DecodeError> {
        let Some(entry) = self.find(rank)? else { return Ok(None) };
        let end = entry.at.checked_add(u64::from(entry.length));
        if end.is_none_or(|end| end > self.length) {
            let (claimed, limit) = (u64::from(entry.length), self.length);
            return Err(DecodeError::TooLong { what: "a block of a collection", claimed, limit });
        }
        let mut block = vec![0; entry.length as usize];
        read(&self.pages, self.begin + entry.at, &mut block)?;
        let mut reader = Reader::new(FORMAT, &block);
        let owner: ProcId = reader.get()?;
        if owner.rank != rank || owner.nspace != self.nspace {
            return Err(DecodeError::Malformed { what: "the owner of a block of a collection" });
        }
        reader.get_rest().map(Some)
    }

    /// Binary search in the index; the first probe is right if all ranks are present.
    fn find(&self, rank: Rank) -> Result<Option<Entry>, DecodeError> {
        let (mut from, mut to) = (0, self.count);
        let mut probe = u64::from(rank.0).min(self.count.saturating_sub(1));
        while from < to {
            let entry = self.entry(probe)?;
            match entry.rank.cmp(&rank) {
                std::cmp::Ordering::Equal => return Ok(Some(entry)),
                std::cmp::Ordering::Less => from = probe + 1,
                std::cmp::Ordering::Greater => to = probe,
            }
            probe = from + (to.saturating_sub(from)) / 2;
        }
        Ok(None)
    }

    fn entry(&self, number_of: u64) -> Result<Entry, DecodeError> {
        let mut bytes = [0; ENTRY];
        read(&self.pages, self.begin + self.index + number_of * ENTRY as u64, &mut bytes)?;
        let mut fields = Fields(&bytes);
        let mut next = |width| number(fields.take(width));
        let (rank, length, at) = (next(4)?, next(4)?, next(8)?);
        Ok(Entry { rank: Rank(narrow(rank)), length: narrow(length), at })
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Arc<R> {
    fn length(&self) -> u64 {
        (**self).length()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        (**self).read_at(at, into)
    }
}

impl ReadAt for &[u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..into.len()));
        from.is_some_and(|from| {
            into.copy_from_slice(from);
            true
        })
    }
}

fn read(pages: &impl ReadAt, at: u64, into: &mut [u8]) -> Result<(), DecodeError> {
    if pages.read_at(at, into) { Ok(()) } else { Err(DecodeError::Truncated { what: "a collection" }) }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, width: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(width)?;
        self.0 = left;
        Some(taken)
    }
}

fn number(bytes: Option<&[u8]>) -> Result<u64, DecodeError> {
    let bytes = bytes.ok_or(DecodeError::Truncated { what: "the header of a collection" })?;
    Ok(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// For a field of four bytes.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Servers write less than 4 GiB.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The last byte is the version.
const MAGIC: &[u8] = b"phalanx\x01";
/// Magic, total length, number of ranks, length of the namespace name that follows.
const HEADER: usize = 8 + 8 + 4 + 4;
/// Rank, length of its block, offset in the collection.
const ENTRY: usize = 4 + 4 + 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Key;
    use crate::value::Value;

    fn nspace() -> Nspace {
        Nspace::new("job@1").unwrap()
    }

    fn kval(rank: u32) -> Kval {
        Kval { key: Key::new("k").unwrap(), value: Value::from(rank) }
    }

    fn of_ranks(ranks: &[u32]) -> Vec<u8> {
        let one = |rank: &u32| {
            let owner = ProcId::new(&nspace(), Rank(*rank));
            (owner.rank, block(&owner, std::iter::once(kval(*rank))))
        };
        let blocks: Vec<(Rank, Blob)> = ranks.iter().map(one).collect();
        collection(&nspace(), blocks.iter().map(|(rank, block)| (*rank, block)))
    }

    #[test]
    fn every_rank_is_found_and_no_other() {
        let sets: [&[u32]; 6] =
            [&[], &[0], &[7], &[0, 1, 2, 3, 4], &[1, 2, 5, 9, 1_000_000], &[3, 4, 5, 6, 7, 8, 9, 10]];
        for ranks in sets {
            let bytes = of_ranks(ranks);
            let collection = Collection::open(bytes.as_slice(), 0, &nspace()).unwrap();
            for rank in (0..20).chain([999_999, 1_000_000, 1_000_001, Rank::VALID.0]) {
                let expected = ranks.contains(&rank).then(|| vec![kval(rank)]);
                assert_eq!(collection.values_of(Rank(rank)), Ok(expected), "{rank} of {ranks:?}");
            }
        }
    }

    #[test]
    fn collections_stand_behind_each_other() {
        let (first, second) = (of_ranks(&[0, 1]), of_ranks(&[1, 2]));
        let bytes = [first.as_slice(), &second].concat();
        let at = |begin: usize| Collection::open(bytes.as_slice(), begin as u64, &nspace()).unwrap();
        assert_eq!(at(0).values_of(Rank(2)), Ok(None));
        assert_eq!(at(first.len()).values_of(Rank(2)), Ok(Some(vec![kval(2)])));
        assert_eq!(at(first.len()).values_of(Rank(0)), Ok(None));
    }

    #[test]
    fn truncated_or_foreign_collections_are_refused() {
        let bytes = of_ranks(&[0, 1, 2]);
        for end in 0..bytes.len() {
            assert!(Collection::open(&bytes[..end], 0, &nspace()).is_err(), "{end}");
        }
        let other = Nspace::new("job@2").unwrap();
        assert!(Collection::open(bytes.as_slice(), 0, &other).is_err());
        for begin in [1, bytes.len() as u64, u64::MAX] {
            assert!(Collection::open(bytes.as_slice(), begin, &nspace()).is_err());
        }
    }

    #[test]
    fn a_block_belongs_to_the_rank_that_the_index_names() {
        let mut bytes = of_ranks(&[0, 1]);
        let index = HEADER + nspace().as_str().len();
        let (first, second) = (index + 8..index + ENTRY, index + ENTRY + 8..index + 2 * ENTRY);
        let of_second = bytes[second].to_vec();
        bytes[first].copy_from_slice(&of_second);
        let collection = Collection::open(bytes.as_slice(), 0, &nspace()).unwrap();
        assert!(collection.values_of(Rank(0)).is_err());
        assert_eq!(collection.values_of(Rank(1)), Ok(Some(vec![kval(1)])));
    }
}
