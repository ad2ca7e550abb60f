//! Data that fences collected, in a file of the server, read per rank when a value of that rank is first wanted.
//!
//! A rank is read at most once per file, and overrides what was known before; values that the server has sent since are newer
//! than the file, and stay. A file is valid until this process can know that others have gone on: then the server names
//! another, or none ([`Store::outdate_collected`]), and is asked as before. The same holds if a file cannot be opened or read.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use phalanx_spec::Rank;
use phalanx_wire::cmd::fence::Collected;
use phalanx_wire::collected::{Collection, ReadAt};
use phalanx_wire::{Kval, Nspace, Text, Value};

use super::space::{Owned, Space};
use super::{Store, read, write};

/// Opens the files that a server names; implemented by the shell.
pub trait OpenCollected: fmt::Debug + Send + Sync {
    /// None: it does not exist, or we may not read it.
    fn open(&self, file: &Text) -> Option<Arc<dyn ReadAt>>;
}

/// The collection of one namespace.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// The number of the valid collection; 0: none. Each rank records the last one that it was read from.
    good: AtomicU32,
    shelved: RwLock<Shelved>,
}

#[derive(Debug, Default)]
struct Shelved {
    /// The number of the latest collection.
    last: u32,
    state: LatestFile,
    /// The last opened file: the next collection may be appended to it.
    file: Option<(Text, Arc<dyn ReadAt>)>,
}

#[derive(Clone, Debug, Default)]
enum LatestFile {
    #[default]
    Nothing,
    Named(Text, u64),
    Open(Arc<Opened>),
}

type Opened = Collection<Arc<dyn ReadAt>>;

impl Shelf {
    pub(super) fn good(&self) -> u32 {
        self.good.load(Ordering::Acquire)
    }

    fn set(&self, named: Option<&Collected>) {
        let mut shelved = write(&self.shelved);
        let named = named.filter(|_| shelved.last < LAST);
        shelved.last += u32::from(named.is_some());
        shelved.state =
            named.map_or(LatestFile::Nothing, |named| LatestFile::Named(named.file.clone(), named.at));
        self.good.store(if named.is_some() { shelved.last } else { 0 }, Ordering::Release);
    }

    /// The result of opening the collection of this number.
    fn opened(&self, number: u32, collection: Option<&Arc<Opened>>) {
        let mut shelved = write(&self.shelved);
        if shelved.last != number || !matches!(shelved.state, LatestFile::Named(..)) {
            return;
        }
        match collection {
            Some(collection) => shelved.state = LatestFile::Open(collection.clone()),
            None => {
                shelved.state = LatestFile::Nothing;
                self.good.store(0, Ordering::Release);
            }
        }
    }
}

impl Store {
    /// From now on these collections are valid for their namespaces, and no others.
    pub fn set_collected(&self, named: &[Collected]) {
        for (nspace, space) in read(&self.spaces).iter() {
            let named = named.iter().find(|named| named.nspace == *nspace);
            if named.is_some() || space.shelf.good() != 0 {
                space.shelf.set(named);
            }
        }
        for named in named.iter().filter(|named| self.space(named.nspace.as_str()).is_none()) {
            self.space_or_new(&named.nspace).shelf.set(Some(named));
        }
    }

    /// Others may have committed more, and this process may know it.
    pub fn outdate_collected(&self) {
        self.set_collected(&[]);
    }

    /// A rank's value, after its part of the valid file has been read.
    pub(super) fn collected_value(
        &self,
        space: &Space,
        nspace: &str,
        rank: Rank,
        key: &str,
    ) -> Option<Value> {
        if let Some(known) = read(&space.ranks).get(&rank.0)
            && known.upto >= space.shelf.good()
        {
            return known.values.get(key).cloned();
        }
        self.catch_up(space, nspace, rank);
        space.rank_value(rank, key)
    }

    /// Reads a rank's part of the valid file, unless that is done.
    pub(super) fn catch_up(&self, space: &Space, nspace: &str, rank: Rank) {
        let good = space.shelf.good();
        let is_done = |known: &Owned| known.upto >= good;
        if good == 0 || !rank.is_process() || read(&space.ranks).get(&rank.0).is_some_and(is_done) {
            return;
        }
        let values = self.collected_values(space, nspace, rank, good).unwrap_or_default();
        let values = space.without_qualified(rank, self.pooled(values));
        let mut ranks = write(&space.ranks);
        // The server has answered meanwhile, or another thread was faster.
        if space.shelf.good() == good && !ranks.get(&rank.0).is_some_and(is_done) {
            ranks.entry(rank.0).or_default().take(values, good);
        }
    }

    fn collected_values(&self, space: &Space, nspace: &str, rank: Rank, good: u32) -> Option<Vec<Kval>> {
        let collection = self.open_collection(space, nspace, good)?;
        match collection.values_of(rank) {
            Ok(values) => values,
            Err(error) => {
                tracing::warn!(%nspace, %rank, %error, "what a fence has collected cannot be read: asking the server");
                None
            }
        }
    }

    fn open_collection(&self, space: &Space, nspace: &str, good: u32) -> Option<Arc<Opened>> {
        let (file, at, known) = match &*read(&space.shelf.shelved) {
            Shelved { last, .. } if *last != good => return None,
            Shelved { state: LatestFile::Open(collection), .. } => return Some(collection.clone()),
            Shelved { state: LatestFile::Named(file, at), file: known, .. } => {
                (file.clone(), *at, known.clone())
            }
            Shelved { state: LatestFile::Nothing, .. } => return None,
        };
        let pages = match known {
            Some((name, pages)) if name == file => Some(pages),
            _ => self.files.as_ref().and_then(|files| files.open(&file)),
        };
        let opened = pages.and_then(|pages| {
            let nspace = Nspace::new(nspace).ok()?;
            write(&space.shelf.shelved).file = Some((file, pages.clone()));
            Collection::open(pages, at, &nspace)
                .inspect_err(
                    |error| tracing::warn!(%nspace, %error, "a file of the server is not what it should be"),
                )
                .ok()
        });
        let opened = opened.map(Arc::new);
        space.shelf.opened(good, opened.as_ref());
        opened
    }
}

/// A number that no file has: this process's own values are always up to date.
pub(super) const ALWAYS: u32 = u32::MAX;
/// Maximum number of files; later ones are not read.
const LAST: u32 = ALWAYS - 1;

#[cfg(test)]
pub(crate) mod tests;
