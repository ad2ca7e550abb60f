//! Committed values of processes on other nodes, and the blobs in which servers exchange them.
//!
//! In our own form a blob is one packed byte object per process: its name, then key and value pairs. Blobs of several
//! servers are concatenated. They are kept packed, because a node's processes ask for few of a job's ranks.

mod openpmix;

use std::collections::BTreeMap;

use phalanx_spec::Rank;
use phalanx_wire::codec::{DecodeError, Format, Reader, Writer};
use phalanx_wire::collected::{self, block};
use phalanx_wire::{Blob, Key, Kval, Nspace, ProcId};

use super::config::ModexForm;
use super::registry::Jobs;
use super::values::Values;
use openpmix::Positions;

/// The format between servers: stored blocks are blocks of the files that clients read.
const FORMAT: Format = collected::FORMAT;

#[derive(Debug)]
pub(super) struct Modex {
    form: ModexForm,
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
    pub(super) fn new(form: ModexForm) -> Modex {
        Modex { form, jobs: BTreeMap::new() }
    }

    /// The remote values that these local processes committed, for a fence of the `participants`.
    pub(super) fn contribution<'a>(
        &self,
        jobs: &Jobs,
        procs: impl Iterator<Item = &'a ProcId>,
        participants: &[ProcId],
    ) -> Blob {
        let committed = procs.filter_map(|proc| {
            let remote = jobs.client(proc)?.committed().remote();
            (!remote.is_empty()).then_some((proc, remote))
        });
        match self.form {
            ModexForm::OpenPmix => openpmix::encode_fence(&positions(jobs, participants), committed),
            ModexForm::Compact => {
                let mut contribution = Contribution::new();
                committed.for_each(|(proc, values)| contribution.add(proc, values));
                contribution.into_blob()
            }
        }
    }

    /// The remote values that one local process committed.
    pub(super) fn contribution_of(&self, jobs: &Jobs, proc: &ProcId) -> Blob {
        let Some(client) = jobs.client(proc) else { return Blob::default() };
        match self.form {
            ModexForm::OpenPmix => openpmix::encode_one(client.committed().remote()),
            ModexForm::Compact => {
                let mut contribution = Contribution::new();
                contribution.add(proc, client.committed().remote());
                contribution.into_blob()
            }
        }
    }

    /// Stores what the servers of a fence contributed, and returns the processes that had values.
    pub(super) fn store(
        &mut self,
        jobs: &Jobs,
        participants: &[ProcId],
        blob: &Blob,
    ) -> Result<Vec<ProcId>, DecodeError> {
        match self.form {
            ModexForm::Compact => self.store_blocks(blob),
            ModexForm::OpenPmix => {
                let owners = openpmix::decode_fence(&positions(jobs, participants), blob)?;
                let store = |(proc, values)| {
                    self.insert(&proc, values);
                    proc
                };
                Ok(owners.into_iter().map(store).collect())
            }
        }
    }

    /// Stores another server's answer about one process.
    pub(super) fn store_one(&mut self, proc: &ProcId, blob: &Blob) -> Result<(), DecodeError> {
        match self.form {
            ModexForm::Compact => self.store_blocks(blob).map(|_| ()),
            // The host has registered the job instead.
            ModexForm::OpenPmix if blob.is_empty() => Ok(()),
            ModexForm::OpenPmix => {
                let values = openpmix::decode_one(blob)?;
                self.insert(proc, values);
                Ok(())
            }
        }
    }

    fn store_blocks(&mut self, blob: &Blob) -> Result<Vec<ProcId>, DecodeError> {
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

    /// Stores the values of one process.
    fn insert(&mut self, proc: &ProcId, values: Vec<Kval>) {
        self.jobs.entry(proc.nspace.clone()).or_default().insert(proc.rank, block(proc, values.into_iter()));
    }

    /// The values of a process, as far as they are known here.
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

    /// The packed values of each rank of a namespace, in the order of ranks.
    pub(super) fn blocks(&self, nspace: &Nspace) -> impl Iterator<Item = (Rank, &Blob)> {
        self.jobs.get(nspace).into_iter().flatten().map(|(rank, block)| (*rank, block))
    }

    /// This process is restarted.
    pub(super) fn forget_of(&mut self, proc: &ProcId) {
        if let Some(ranks) = self.jobs.get_mut(&proc.nspace) {
            ranks.remove(&proc.rank);
        }
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.jobs.remove(nspace);
    }
}

fn positions(jobs: &Jobs, participants: &[ProcId]) -> Positions {
    Positions::new(participants, |nspace| u32::try_from(jobs.get(nspace)?.size()).ok())
}

/// The values of one process. Stops at the first unreadable one: our own servers wrote it in this format.
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
