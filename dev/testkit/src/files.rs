//! The files of a simulated node's server, which its processes read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phalanx_core::OpenCollected;
use phalanx_wire::Text;
use phalanx_wire::collected::ReadAt;

/// All clones share the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Arc<Mutex<BTreeMap<String, Arc<File>>>>);

#[derive(Debug, Default)]
struct File(Mutex<Vec<u8>>);

impl Files {
    pub(crate) fn write(&self, path: String, at: u64, bytes: &[u8]) {
        let file = lock(&self.0).entry(path).or_default().clone();
        if file.length() == at {
            lock(&file.0).extend_from_slice(bytes);
        }
    }

    pub(crate) fn remove(&self, path: &str) {
        lock(&self.0).remove(path);
    }
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Arc<dyn ReadAt>> {
        Some(lock(&self.0).get(file.as_str()?)?.clone())
    }
}

impl ReadAt for File {
    fn length(&self) -> u64 {
        lock(&self.0).len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        lock(&self.0).as_slice().read_at(at, into)
    }
}

fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
