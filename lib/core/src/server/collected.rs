//! What fences have collected, in one file per job that the clients of this node read without asking.
//!
//! A fence of a whole job with `pmix.collect` writes down all that is known here to have been committed, as processes of this
//! node see it, and its answer names the file to the clients that read such files: they say so when they introduce themselves,
//! and are the user's who owns this server. Later fences name the same file as long as nothing has been committed since. The
//! shell writes it before it sends the answers. If it cannot, clients find no file, and ask.

use std::collections::BTreeMap;

use phalanx_spec::{Rank, keys};
use phalanx_wire::collected::{block, file};
use phalanx_wire::{Blob, InfoList, Kval, Nspace, ProcId, Text};
use tracing::debug;

use super::collective::Collective;
use super::limits::{MAX_COLLECTED, MAX_COLLECTED_BYTES};
use super::peer::{Asker, Role};
use super::registry::Job;
use super::{Cx, Server};
use crate::machine::Output;

#[derive(Debug, Default)]
pub(super) struct Collections {
    files: BTreeMap<Nspace, Written>,
    last: u64,
}

#[derive(Debug)]
struct Written {
    path: String,
    bytes: usize,
    /// Something was committed since.
    is_old: bool,
}

impl Collections {
    /// Something was committed.
    pub(super) fn outdate(&mut self, nspace: &Nspace) {
        if let Some(written) = self.files.get_mut(nspace) {
            written.is_old = true;
        }
    }

    fn bytes(&self) -> usize {
        self.files.values().map(|written| written.bytes).sum()
    }
}

impl Server {
    /// The files that the participants of a fence may read from now on.
    pub(super) fn collected_by(&mut self, cx: &mut Cx<'_>, fence: &Collective) -> Vec<(Nspace, Text)> {
        if self.config.collections.is_none() || !fence.arrived.values().any(|asker| self.reads_files(asker)) {
            return Vec::new();
        }
        let procs = &fence.signature.procs;
        let mut named = Vec::new();
        // They are sorted.
        for of_job in procs.chunk_by(|a, b| a.nspace == b.nspace) {
            let Some(nspace) = of_job.first().map(|proc| &proc.nspace) else { continue };
            let Some(job) = self.jobs.get(nspace) else { continue };
            let is_whole =
                of_job.iter().any(|proc| proc.rank == Rank::WILDCARD) || of_job.len() >= job.size();
            let is_good = self.collections.files.get(nspace).is_some_and(|written| !written.is_old);
            if !is_good && is_whole && fence.info.is_set(keys::COLLECT_DATA) {
                self.write_collected(cx, nspace);
            }
            let written = self.collections.files.get(nspace).filter(|written| !written.is_old);
            named.extend(written.map(|written| (nspace.clone(), Text::from(written.path.as_str()))));
        }
        named
    }

    pub(super) fn reads_files(&self, asker: &Asker) -> bool {
        let peer = self.conns.peer(asker.conn);
        peer.is_some_and(|peer| {
            peer.reads_files && peer.role == Role::Client && peer.uid == self.config.owner_uid
        })
    }

    fn write_collected(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        self.remove_collected(cx, nspace);
        let Some(job) = self.jobs.get(nspace) else { return };
        let Some(beginning) = &self.config.collections else { return };
        let bytes = self.collected(job);
        if bytes.len() > MAX_COLLECTED || self.collections.bytes() + bytes.len() > MAX_COLLECTED_BYTES {
            return debug!(%nspace, bytes = bytes.len(), "too much was collected for a file: clients have to ask");
        }
        self.collections.last += 1;
        let path = format!("{beginning}.{}", self.collections.last);
        let written = Written { path: path.clone(), bytes: bytes.len(), is_old: false };
        self.collections.files.insert(nspace.clone(), written);
        cx.out.push(Output::WriteFile { path, bytes });
    }

    pub(super) fn remove_collected(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        if let Some(Written { path, .. }) = self.collections.files.remove(nspace) {
            cx.out.push(Output::RemoveFile { path });
        }
    }

    /// What is known of the ranks of a job, as those of this node see it.
    fn collected(&self, job: &Job) -> Vec<u8> {
        let nspace = &job.info.nspace;
        let of_neighbour = |(rank, values): (Rank, &super::commit::Values)| {
            let values = values.iter().map(|(key, value)| Kval { key: key.clone(), value: value.clone() });
            (rank, block(&ProcId::new(nspace, rank), values))
        };
        let neighbours = job.clients.iter().map(|(rank, client)| (*rank, &client.committed.local));
        let mut blocks: BTreeMap<Rank, Blob> =
            neighbours.filter(|(_, values)| !values.is_empty()).map(of_neighbour).collect();
        let others = self.modex.blocks(nspace).filter(|(rank, _)| !job.is_local(*rank));
        blocks.extend(others.map(|(rank, block)| (rank, block.clone())));
        file(nspace, blocks.iter().map(|(rank, block)| (*rank, block)))
    }
}
