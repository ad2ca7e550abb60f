//! Committed values, as scripted servers exchange them: one line per value, with namespace, rank, key and value.
//!
//! A fence brings the same lines to every server. Servers that share their [`Shelf`] decode and keep them once.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use phalanx_wire::{Blob, ProcId};

/// All data that fences have brought to the servers of a world, for the life of the world.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Rc<RefCell<BTreeMap<Blob, Rc<Modex>>>>);

/// The values of some processes.
#[derive(Debug)]
pub(crate) struct Modex(HashMap<Vec<u8>, Blob>);

/// The lines of one process.
pub(crate) fn encode(proc: &ProcId, values: &BTreeMap<String, Vec<u8>>) -> Blob {
    let mut bytes = Vec::new();
    for (key, value) in values {
        bytes.extend_from_slice(&head(proc, key));
        bytes.extend_from_slice(value);
        bytes.push(b'\n');
    }
    bytes.into()
}

impl Shelf {
    pub(crate) fn keep(&self, lines: &Blob) -> Rc<Modex> {
        let mut kept = self.0.borrow_mut();
        match kept.get(lines) {
            Some(modex) => modex.clone(),
            None => kept.entry(lines.clone()).or_insert(Rc::new(Modex::read(lines.as_bytes()))).clone(),
        }
    }
}

impl Modex {
    fn read(lines: &[u8]) -> Modex {
        let mut values = HashMap::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let mut spaces = line.iter().enumerate().filter(|(_, byte)| **byte == b' ');
            if let Some((third, _)) = spaces.nth(2) {
                let (head, value) = line.split_at(third + 1);
                values.entry(head.to_vec()).or_insert(Blob::from(value));
            }
        }
        Modex(values)
    }

    pub(crate) fn get(&self, owner: &ProcId, key: &str) -> Option<Blob> {
        self.0.get(&head(owner, key)).cloned()
    }
}

fn head(proc: &ProcId, key: &str) -> Vec<u8> {
    format!("{} {} {key} ", proc.nspace, proc.rank.0).into_bytes()
}
