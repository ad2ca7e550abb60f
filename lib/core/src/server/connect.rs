//! Connect and disconnect: processes of several jobs declare that they depend on each other.
//!
//! The host is asked even if all participants are local, because it is the host that treats the end of a connected process
//! as an error. On success every participant gets the job data of the other jobs.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::connect::{Connect, encode_success};
use phalanx_wire::{Info, Nspace};

use super::collective::{Collectives, Signature};
use super::directive::failed;
use super::host::Then;
use super::job_data::Describer;
use super::peer::Asker;
use super::turn::Cx;
use crate::host::{CollectiveKind as Kind, ConnectRequest, HostOp, HostReply};

pub(super) const ATTRIBUTES: &[&str] = &[keys::ALL_CLONES_PARTICIPATE, keys::TIMEOUT];

pub(super) fn on_connect(cx: &mut Cx<'_>, collectives: &mut Collectives, from: Asker, connect: Connect) {
    let signature = Signature::new(Kind::Connect, String::new(), connect.procs);
    collectives.enter(cx, from, signature, connect.info);
}

pub(super) fn on_disconnect(
    cx: &mut Cx<'_>,
    collectives: &mut Collectives,
    from: Asker,
    disconnect: Connect,
) {
    let signature = Signature::new(Kind::Disconnect, String::new(), disconnect.procs);
    collectives.enter(cx, from, signature, disconnect.info);
}

pub(super) fn on_gathered(cx: &mut Cx<'_>, collectives: &Collectives, id: u64) {
    let Some(collective) = collectives.get(id) else { return };
    let op = host_op(&collective.signature, collective.info.clone());
    cx.ask(None, op, Then::Collective(id));
}

pub(super) fn on_answered(
    cx: &mut Cx<'_>,
    collectives: &mut Collectives,
    describer: &Describer,
    id: u64,
    reply: &HostReply,
) {
    let status = reply.status();
    let Some(mut collective) = collectives.close(cx, id) else { return };
    let connected = status.is_success() && collective.signature.kind == Kind::Connect;
    let jobs = cx.peers.jobs.among(&collective.signature.procs);
    for asker in collective.take_askers() {
        if connected {
            welcome(cx, describer, asker, &jobs);
        } else {
            cx.answer(asker, status);
        }
    }
}

/// Sends a connected process the data of the other jobs.
fn welcome(cx: &mut Cx<'_>, describer: &Describer, asker: Asker, jobs: &[Nspace]) {
    let Some(format) = cx.peers.conns.peer(asker.conn).map(|peer| peer.dialect().format) else { return };
    let others = jobs.iter().filter(|nspace| **nspace != asker.proc.nspace);
    let encoded = |nspace| cx.peers.jobs.encoded(nspace, format, |job| describer.job_data(job));
    let told: Vec<_> = others.filter_map(encoded).collect();
    if let Some(peer) = cx.peers.conns.peer_mut(asker.conn) {
        peer.note_jobs_told(jobs.iter().cloned());
    }
    cx.reply(asker, |dialect| encode_success(&told, dialect.format));
}

pub(super) fn report_failure(cx: &mut Cx<'_>, signature: &Signature, status: Status) {
    cx.ask(None, host_op(signature, vec![failed(status)]), Then::Nothing);
}

fn host_op(signature: &Signature, info: Vec<Info>) -> HostOp {
    let procs = signature.procs.to_vec();
    match signature.kind {
        Kind::Disconnect => HostOp::Disconnect(ConnectRequest { procs, info }),
        _ => HostOp::Connect(ConnectRequest { procs, info }),
    }
}
