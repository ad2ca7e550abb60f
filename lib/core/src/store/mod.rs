//! The values that a client has: job data, committed values of its peers, and those it has put itself.
//!
//! One writer (the machine, on the progress thread) and many readers (the program's threads, in the middle of a get), so
//! each namespace has its own locks and a lookup holds one of them for reading at a time. Values are decoded before a lock
//! is taken. Nothing here talks to a server: a lookup that finds nothing returns whether one should be asked.

pub(crate) mod collected;
mod load;
mod lookup;
mod qualified;
mod space;
mod stage;
mod values;

pub use collected::OpenCollected;
pub(crate) use lookup::ATTRIBUTES as LOOKUP_ATTRIBUTES;
pub use lookup::{Lookup, LookupRequest, Realm};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use phalanx_spec::{Rank, keys};
use phalanx_wire::{Kval, Nspace, ProcId, Value};

use space::{Owned, Pool, Space};
use stage::Stage;

/// All values of one client, for all namespaces.
#[derive(Debug)]
pub struct Store {
    me: ProcId,
    spaces: RwLock<BTreeMap<Nspace, Arc<Space>>>,
    stage: Mutex<Stage>,
    pool: Mutex<Pool>,
    /// None: no server names files.
    files: Option<Arc<dyn OpenCollected>>,
}

impl Store {
    /// The store of the process `me`, which so far holds nothing but its rank.
    pub fn new(me: ProcId) -> Store {
        let store = Store {
            me: me.clone(),
            spaces: RwLock::default(),
            stage: Mutex::default(),
            pool: Mutex::default(),
            files: None,
        };
        let identity = [
            Kval::new(keys::NSPACE, me.nspace.as_str()),
            Kval::new(keys::RANK, me.rank),
            Kval::new(keys::PROCID, me.clone()),
        ];
        let mine = Owned { upto: collected::ALWAYS, ..Owned::default() };
        write(&store.space_or_new(&me.nspace).ranks).insert(me.rank.0, mine);
        store.insert_rank(&me.nspace, me.rank, identity);
        store
    }

    /// The same, with a way to open the server's collected data.
    pub fn reading(me: ProcId, files: Option<Arc<dyn OpenCollected>>) -> Store {
        Store { files, ..Store::new(me) }
    }

    /// The process that this store belongs to.
    pub fn me(&self) -> &ProcId {
        &self.me
    }

    fn space(&self, nspace: &str) -> Option<Arc<Space>> {
        read(&self.spaces).get(nspace).cloned()
    }

    fn space_or_new(&self, nspace: &Nspace) -> Arc<Space> {
        if let Some(space) = self.space(nspace.as_str()) {
            return space;
        }
        write(&self.spaces).entry(nspace.clone()).or_default().clone()
    }

    /// Puts `values` over the known ones of one rank.
    fn insert_rank(&self, nspace: &Nspace, rank: Rank, values: impl IntoIterator<Item = Kval>) {
        let values = self.pooled(values);
        let space = self.space_or_new(nspace);
        let values = space.without_qualified(rank, values);
        write(&space.ranks).entry(rank.0).or_default().take(values, 0);
    }

    // A job of n ranks brings each key n times: all share one allocation. Compressed values are expanded once, here.
    fn pooled(&self, values: impl IntoIterator<Item = Kval>) -> Vec<(phalanx_wire::Key, Value)> {
        let expanded = values.into_iter().filter_map(|kval| match kval.value.expanded(LONGEST_VALUE) {
            Ok(value) => Some((kval.key, value)),
            Err(error) => {
                tracing::warn!(key = %kval.key, %error, "a compressed value is left out");
                None
            }
        });
        let expanded: Vec<_> = expanded.collect();
        let mut pool = lock(&self.pool);
        expanded.into_iter().map(|(key, value)| (pool.shared(key), value)).collect()
    }
}

/// Maximum length of a decompressed value, in bytes.
const LONGEST_VALUE: usize = 64 << 20;

// A poisoned lock only means that a reader panicked; the data behind it is whole, since writers insert finished values.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
