//! Data that fences collected, in one file per job that the clients of this node read without asking.
//!
//! A fence of a whole job with `pmix.collect` writes all committed values known here, as processes of this node see them. Its
//! answer gives the path to clients that can read such files: those that declare it in their handshake and run as the user that
//! owns this server. Later fences give the same path as long as nothing new was committed, and append to the file when they
//! collect again, because creating and removing files costs more than writing them. The shell writes before it sends the
//! answers. If writing fails, clients find no file and ask.

use std::collections::BTreeMap;

use phalanx_spec::{Rank, keys};
use phalanx_wire::cmd::fence::Collected;
use phalanx_wire::collected::{block, collection};
use phalanx_wire::{Blob, InfoList, Nspace, ProcId, Text};
use tracing::debug;

use super::collective::Collective;
use super::limits::{FULL_COLLECTED, MAX_ALL_COLLECTED, MAX_COLLECTED};
use super::modex::Modex;
use super::peer::{Asker, PeerKind};
use super::registry::Job;
use super::turn::Cx;
use super::values::{Values, weight};
use crate::machine::Output;

#[derive(Debug, Default)]
pub(super) struct Collections {
    files: BTreeMap<Nspace, Written>,
    last: u64,
}

#[derive(Debug)]
struct Written {
    path: String,
    /// Offset of the last collection.
    at: u64,
    /// Length of the file.
    end: u64,
    /// Something was committed since the last collection.
    is_old: bool,
}

impl Collections {
    /// Something was committed.
    pub(super) fn outdate(&mut self, nspace: &Nspace) {
        if let Some(written) = self.files.get_mut(nspace) {
            written.is_old = true;
        }
    }

    /// Total length of all files.
    fn length(&self) -> u64 {
        self.files.values().map(|written| written.end).sum()
    }

    /// The file ranges that the participants of a fence may read from now on.
    pub(super) fn collected_by(
        &mut self,
        cx: &mut Cx<'_>,
        modex: &Modex,
        fence: &Collective,
    ) -> Vec<Collected> {
        if cx.config.collections.is_none() || !fence.askers().iter().any(|asker| reads_files(cx, asker)) {
            return Vec::new();
        }
        let procs = &fence.signature.procs;
        let mut named = Vec::new();
        // `procs` is sorted.
        for of_job in procs.chunk_by(|a, b| a.nspace == b.nspace) {
            let Some(nspace) = of_job.first().map(|proc| &proc.nspace) else { continue };
            let Some(job) = cx.peers.jobs.get(nspace) else { continue };
            let is_whole =
                of_job.iter().any(|proc| proc.rank == Rank::WILDCARD) || of_job.len() >= job.size();
            let is_good = self.files.get(nspace).is_some_and(|written| !written.is_old);
            if !is_good && is_whole && fence.info.is_set(keys::COLLECT_DATA) {
                self.write(cx, modex, nspace);
            }
            let written = self.files.get(nspace).filter(|written| !written.is_old);
            named.extend(written.map(|written| Collected {
                nspace: nspace.clone(),
                file: Text::from(written.path.as_str()),
                at: written.at,
            }));
        }
        named
    }

    fn write(&mut self, cx: &mut Cx<'_>, modex: &Modex, nspace: &Nspace) {
        if self.files.get(nspace).is_some_and(|written| written.end >= FULL_COLLECTED) {
            self.remove(cx, nspace);
        }
        let Some(job) = cx.peers.jobs.get(nspace) else { return };
        let Some(beginning) = &cx.config.collections else { return };
        let about = collected_weight(modex, job);
        if about > MAX_COLLECTED || self.length() + about > MAX_ALL_COLLECTED {
            return debug!(%nspace, about, "too much was collected for a file: clients have to ask");
        }
        let bytes = collected(modex, job);
        let length = bytes.len() as u64;
        let Collections { files, last } = self;
        let written = files.entry(nspace.clone()).or_insert_with(|| {
            *last += 1;
            Written { path: format!("{beginning}.{last}"), at: 0, end: 0, is_old: false }
        });
        (written.at, written.end, written.is_old) = (written.end, written.end + length, false);
        cx.out.push(Output::WriteFile { path: written.path.clone(), at: written.at, bytes });
    }

    pub(super) fn knows(&self, nspace: &Nspace) -> bool {
        self.files.contains_key(nspace)
    }

    pub(super) fn remove(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        if let Some(Written { path, .. }) = self.files.remove(nspace) {
            cx.out.push(Output::RemoveFile { path });
        }
    }
}

pub(super) fn reads_files(cx: &Cx<'_>, asker: &Asker) -> bool {
    let peer = cx.peers.conns.peer(asker.conn);
    peer.is_some_and(|peer| {
        peer.reads_files() && peer.role() == PeerKind::Client && peer.uid() == cx.config.owner_uid
    })
}

/// Roughly how many bytes a collection of this job would take.
fn collected_weight(modex: &Modex, job: &Job) -> u64 {
    let neighbours = job.clients().flat_map(|(_, client)| client.committed().local().iter()).map(weight);
    let others = modex.blocks(&job.info().nspace).map(|(_, block)| block.len());
    neighbours.chain(others).map(|bytes| bytes as u64).sum()
}

/// The known values of a job's ranks, as processes of this node see them.
fn collected(modex: &Modex, job: &Job) -> Vec<u8> {
    let nspace = &job.info().nspace;
    let of_neighbour =
        |(rank, values): (Rank, &Values)| (rank, block(&ProcId::new(nspace, rank), values.kvals()));
    let neighbours = job.clients().map(|(rank, client)| (rank, client.committed().local()));
    let mut blocks: BTreeMap<Rank, Blob> =
        neighbours.filter(|(_, values)| !values.is_empty()).map(of_neighbour).collect();
    let others = modex.blocks(nspace).filter(|(rank, _)| !job.is_local(*rank));
    blocks.extend(others.map(|(rank, block)| (rank, block.clone())));
    collection(nspace, blocks.iter().map(|(rank, block)| (*rank, block)))
}
