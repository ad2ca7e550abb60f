//! Fence: all participants have arrived; with `pmix.collect`, their values are available to all.
//!
//! A fence with all participants on this node ends here: their values are in this server already, and no other server takes
//! part. Any other goes to the host with the values of the local participants, and those of several jobs to a host that wants it.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::fence::{Fence, Reply};
use phalanx_wire::{Blob, InfoList, ProcId};

use super::collected::{Collections, reads_files};
use super::collective::{Collectives, Signature};
use super::directive::{failed, unknown};
use super::host::Then;
use super::modex::Modex;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{CollectiveKind as Kind, FenceRequest, HostOp};

pub(super) const ATTRIBUTES: &[&str] =
    &[keys::ALL_CLONES_PARTICIPATE, keys::COLLECT_DATA, keys::COLLECT_GENERATED_JOB_INFO, keys::TIMEOUT];

/// The tables of a fence.
#[derive(Debug)]
pub(super) struct Fences<'a> {
    pub(super) collectives: &'a mut Collectives,
    pub(super) modex: &'a Modex,
    pub(super) collections: &'a mut Collections,
}

pub(super) fn on_fence(cx: &mut Cx<'_>, collectives: &mut Collectives, from: Asker, fence: Fence) {
    let procs = if fence.procs.is_empty() { vec![ProcId::all(&from.proc.nspace)] } else { fence.procs };
    let signature = Signature::new(Kind::Fence, String::new(), procs);
    collectives.enter(cx, from, signature, fence.info);
}

pub(super) fn on_gathered(cx: &mut Cx<'_>, tables: Fences<'_>, id: u64) {
    let Some(collective) = tables.collectives.get(id) else { return };
    let procs = &collective.signature.procs;
    let joins = cx.config.joins_fences_of_jobs && procs.windows(2).any(|two| two[0].nspace != two[1].nspace);
    // A directive that only the host may know goes to the host even if all participants are local.
    if cx.peers.jobs.are_all_local(procs) && !joins && unknown(&collective.info, ATTRIBUTES).is_none() {
        return end(cx, tables, id, Status::SUCCESS);
    }
    let data = if collective.info.is_set(keys::COLLECT_DATA) {
        tables.modex.contribution(&cx.peers.jobs, collective.expected.iter(), procs)
    } else {
        Blob::default()
    };
    let op = HostOp::Fence(FenceRequest { procs: procs.to_vec(), info: collective.info.clone(), data });
    cx.ask(None, op, Then::Collective(id));
}

/// Ends a fence: answers the participants, and names the files with collected data.
pub(super) fn end(cx: &mut Cx<'_>, tables: Fences<'_>, id: u64, status: Status) {
    let Fences { collectives, modex, collections } = tables;
    let Some(mut collective) = collectives.close(cx, id) else { return };
    let collected =
        if status.is_success() { collections.collected_by(cx, modex, &collective) } else { Vec::new() };
    for asker in collective.take_askers() {
        if collected.is_empty() || !reads_files(cx, &asker) {
            cx.answer(asker, status);
        } else {
            let reply = Reply { status: Status::SUCCESS, collected: collected.clone() };
            cx.reply(asker, |dialect| reply.encode(dialect));
        }
    }
    if collective.is_followed {
        collectives.advance_next(cx, &collective.signature);
    }
}

pub(super) fn report_failure(cx: &mut Cx<'_>, signature: &Signature, status: Status) {
    let info = vec![failed(status)];
    let op = HostOp::Fence(FenceRequest { procs: signature.procs.to_vec(), info, data: Blob::default() });
    cx.ask(None, op, Then::Nothing);
}
