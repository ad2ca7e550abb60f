//! Fence: all participants have arrived; with `pmix.collect`, everybody's values are where everybody can get them.
//!
//! A fence whose participants are all on this node ends here: their values are in this server already, and no other server
//! takes part. Any other goes to the host with the values of the local participants.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::fence::{Fence, Reply};
use phalanx_wire::codec::DecodeError;
use phalanx_wire::{Blob, Info, InfoList, ProcId};
use tracing::warn;

use super::collective::{Kind, Signature};
use super::directive::unknown;
use super::host::{Then, as_failure};
use super::modex::openpmix::{self, Positions};
use super::modex::{Contribution, ModexForm};
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::{HostOp, HostReply};

pub(super) const ATTRIBUTES: &[&str] =
    &[keys::ALL_CLONES_PARTICIPATE, keys::COLLECT_DATA, keys::COLLECT_GENERATED_JOB_INFO, keys::TIMEOUT];

impl Server {
    pub(super) fn on_fence(&mut self, cx: &mut Cx<'_>, from: Asker, fence: Fence) {
        let procs = if fence.procs.is_empty() { vec![ProcId::all(&from.proc.nspace)] } else { fence.procs };
        let signature = Signature::new(Kind::Fence, String::new(), procs);
        self.enter(cx, from, signature, fence.info);
    }

    pub(super) fn on_fence_gathered(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.collective(id) else { return };
        let procs = &collective.signature.procs;
        // A directive that only the host may know is the host's business even here.
        if self.is_all_local(procs) && unknown(&collective.info, ATTRIBUTES).is_none() {
            return self.end_fence(cx, id, Status::SUCCESS);
        }
        let data = if collective.info.is_set(keys::COLLECT_DATA) {
            self.contribution(collective.expected.iter(), procs)
        } else {
            Blob::default()
        };
        let op = HostOp::Fence { procs: procs.to_vec(), info: collective.info.clone(), data };
        self.call_host(cx, None, op, Then::Collective(id));
    }

    /// What these local processes have committed for others.
    fn contribution<'a>(&'a self, procs: impl Iterator<Item = &'a ProcId>, participants: &[ProcId]) -> Blob {
        let committed = procs.filter_map(|proc| {
            let remote = &self.client(proc)?.committed.remote;
            (!remote.is_empty()).then_some((proc, remote))
        });
        match self.config.modex {
            ModexForm::OpenPmix => openpmix::encode_fence(&self.positions(participants), committed),
            ModexForm::Compact => {
                let mut contribution = Contribution::new();
                committed.for_each(|(proc, values)| contribution.add(proc, values));
                contribution.into_blob()
            }
        }
    }

    fn positions(&self, participants: &[ProcId]) -> Positions {
        Positions::new(participants, |nspace| u32::try_from(self.jobs.get(nspace)?.size()).ok())
    }

    pub(super) fn on_fence_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: HostReply) {
        let status = match reply {
            HostReply::Modex(Ok(blob)) => self.store_modex(cx, id, &blob),
            other => as_failure(other.status()),
        };
        self.end_fence(cx, id, status);
    }

    fn store_modex(&mut self, cx: &mut Cx<'_>, id: u64, blob: &Blob) -> Status {
        let stored = match self.config.modex {
            ModexForm::Compact => self.modex.store(blob),
            ModexForm::OpenPmix => self.store_foreign(id, blob),
        };
        for proc in stored.iter().flatten() {
            self.collections.outdate(&proc.nspace);
        }
        match stored {
            Ok(procs) => {
                for proc in procs {
                    self.retry_gets_of(cx, &proc);
                }
                Status::SUCCESS
            }
            Err(error) => {
                warn!(%error, bytes = blob.len(), "what the servers of a fence contributed cannot be read");
                Status::ERR_UNPACK_FAILURE
            }
        }
    }

    fn store_foreign(&mut self, id: u64, blob: &Blob) -> Result<Vec<ProcId>, DecodeError> {
        let procs = self.collective(id).map(|collective| collective.signature.procs.clone());
        let positions = self.positions(procs.as_deref().unwrap_or_default());
        let owners = openpmix::decode_fence(&positions, blob)?.into_iter().map(|(proc, values)| {
            self.modex.insert(&proc, values);
            proc
        });
        Ok(owners.collect())
    }

    fn end_fence(&mut self, cx: &mut Cx<'_>, id: u64, status: Status) {
        let Some(collective) = self.close(id) else { return };
        let collected = if status.is_success() { self.collected_by(cx, &collective) } else { Vec::new() };
        for asker in collective.latest_first() {
            if collected.is_empty() || !self.reads_files(asker) {
                self.answer(cx, asker, status);
            } else {
                let reply = Reply { status: Status::SUCCESS, collected: collected.clone() };
                self.reply(cx, asker, |dialect| reply.encode(dialect));
            }
        }
    }

    pub(super) fn report_failed_fence(&mut self, cx: &mut Cx<'_>, signature: &Signature, status: Status) {
        let info = vec![failed(status)];
        let op = HostOp::Fence { procs: signature.procs.to_vec(), info, data: Blob::default() };
        self.call_host(cx, None, op, Then::Nothing);
    }
}

/// Tells the host that a collective has failed among the local participants.
pub(super) fn failed(status: Status) -> Info {
    Info::new(keys::LOCAL_COLLECTIVE_STATUS, status)
}
