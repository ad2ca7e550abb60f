//! The files of a simulated node's server, which its processes read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use phalanx_core::OpenCollected;
use phalanx_wire::Text;
use phalanx_wire::collected::ReadAt;

/// All who have a clone share the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>);

#[derive(Debug)]
struct Open(Arc<[u8]>);

impl Files {
    pub(crate) fn write(&self, path: String, bytes: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, bytes.into());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Box<dyn ReadAt>> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Box::new(Open(files.get(file.as_str()?)?.clone())))
    }
}

impl ReadAt for Open {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        (&*self.0).read_at(at, into)
    }
}
