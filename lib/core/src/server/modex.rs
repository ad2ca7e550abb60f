//! What processes of other nodes have committed, and the blobs in which servers tell each other of it.
//!
//! In our own form a blob is one packed byte object per process: who, then key and value pairs. Blobs of several servers are
//! simply put behind each other. They are kept as they came: of a job of a million ranks a node's processes ask for few.

pub(super) mod openpmix;

use std::collections::BTreeMap;

use phalanx_spec::Rank;
use phalanx_wire::codec::{DecodeError, Format, Reader, Writer};
use phalanx_wire::collected::{self, block};
use phalanx_wire::{Blob, Key, Kval, Nspace, ProcId};

use super::commit::Values;

/// How servers pack for each other: what they keep are blocks of the files that clients read.
const FORMAT: Format = collected::FORMAT;

/// In which form servers tell each other what their processes have committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModexForm {
    /// Our own: all servers of a job are ours.
    Compact,
    /// That of OpenPMIx 4.2 and 5.0: the host may have servers of either kind.
    OpenPmix,
}

#[derive(Debug, Default)]
pub(super) struct Modex {
    jobs: BTreeMap<Nspace, BTreeMap<Rank, Blob>>,
}

/// Builds what this server contributes.
#[derive(Debug)]
pub(super) struct Contribution {
    writer: Writer,
}

impl Contribution {
    pub(super) fn new() -> Contribution {
        Contribution { writer: Writer::new(FORMAT) }
    }

    pub(super) fn add(&mut self, proc: &ProcId, values: &Values) {
        self.writer.put(&block(proc, values.kvals()));
    }

    pub(super) fn into_blob(self) -> Blob {
        self.writer.into_bytes().into()
    }
}

impl Modex {
    /// Stores what other servers contributed, and says for whom there was something.
    pub(super) fn store(&mut self, blob: &Blob) -> Result<Vec<ProcId>, DecodeError> {
        let mut reader = Reader::new(FORMAT, blob.as_bytes());
        let mut procs = Vec::new();
        while !reader.is_at_end() {
            let one: Blob = reader.get()?;
            let proc: ProcId = Reader::new(FORMAT, one.as_bytes()).get()?;
            self.jobs.entry(proc.nspace.clone()).or_default().insert(proc.rank, one);
            procs.push(proc);
        }
        Ok(procs)
    }

    /// Stores what one process has committed.
    pub(super) fn insert(&mut self, proc: &ProcId, values: Vec<Kval>) {
        self.jobs.entry(proc.nspace.clone()).or_default().insert(proc.rank, block(proc, values.into_iter()));
    }

    /// What a process has committed, as far as it was told here.
    pub(super) fn get(&self, proc: &ProcId) -> Option<Vec<Kval>> {
        self.jobs.get(&proc.nspace)?.get(&proc.rank).map(unpack)
    }

    /// The first process of a namespace that has committed this key.
    pub(super) fn find(&self, nspace: &Nspace, key: &Key) -> Option<(Rank, Vec<Kval>)> {
        let ranks = self.jobs.get(nspace)?;
        ranks
            .iter()
            .map(|(rank, one)| (*rank, unpack(one)))
            .find(|(_, values)| values.iter().any(|v| v.key == *key))
    }

    /// What each rank of a namespace has committed, packed, in the order of ranks.
    pub(super) fn blocks(&self, nspace: &Nspace) -> impl Iterator<Item = (Rank, &Blob)> {
        self.jobs.get(nspace).into_iter().flatten().map(|(rank, block)| (*rank, block))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.jobs.remove(nspace);
    }
}

/// The values of one process. What cannot be read ends them: our own servers wrote it, and of this format.
fn unpack(one: &Blob) -> Vec<Kval> {
    let mut reader = Reader::new(FORMAT, one.as_bytes());
    if reader.get::<ProcId>().is_err() {
        return Vec::new();
    }
    let mut values = Vec::new();
    while let Ok(kval) = reader.get() {
        values.push(kval);
    }
    values
}
