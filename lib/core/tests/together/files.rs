//! The files of a server, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

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
        assert!(self.0.lock().unwrap().insert(path, bytes.into()).is_none());
    }

    pub(crate) fn remove(&self, path: &str) {
        assert!(self.0.lock().unwrap().remove(path).is_some());
    }
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Box<dyn ReadAt>> {
        Some(Box::new(Open(self.0.lock().unwrap().get(file.as_str()?)?.clone())))
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
