//! The files of a server, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

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
        let file = self.0.lock().unwrap().entry(path).or_default().clone();
        assert_eq!(file.length(), at, "each collection goes behind the one before");
        file.0.lock().unwrap().extend_from_slice(bytes);
    }

    pub(crate) fn remove(&self, path: &str) {
        assert!(self.0.lock().unwrap().remove(path).is_some());
    }
}

impl OpenCollected for Files {
    fn open(&self, file: &Text) -> Option<Arc<dyn ReadAt>> {
        Some(self.0.lock().unwrap().get(file.as_str()?)?.clone())
    }
}

impl ReadAt for File {
    fn length(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> bool {
        self.0.lock().unwrap().as_slice().read_at(at, into)
    }
}
