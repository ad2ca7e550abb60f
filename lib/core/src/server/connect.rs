//! Connect and disconnect: processes of several jobs declare that they depend on each other.
//!
//! The host is asked even if all are here: it is who treats the end of a connected process as an error. On success every
//! participant is told the job data of the other jobs.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::connect::{Connect, encode_success};
use phalanx_wire::{Info, Nspace, ProcId};

use super::collective::{Kind, Signature};
use super::fence::failed;
use super::host::Then;
use super::peer::Asker;
use super::{Cx, Server};
use crate::host::{HostOp, HostReply};

pub(super) const ATTRIBUTES: &[&str] = &[keys::ALL_CLONES_PARTICIPATE, keys::TIMEOUT];

impl Server {
    pub(super) fn on_connect(&mut self, cx: &mut Cx<'_>, from: Asker, connect: Connect) {
        self.store_endpoints(cx, &from, &connect.endpoints);
        self.enter(cx, from, Signature::new(Kind::Connect, String::new(), connect.procs), connect.info);
    }

    pub(super) fn on_disconnect(&mut self, cx: &mut Cx<'_>, from: Asker, disconnect: Connect) {
        self.enter(
            cx,
            from,
            Signature::new(Kind::Disconnect, String::new(), disconnect.procs),
            disconnect.info,
        );
    }

    pub(super) fn on_connect_gathered(&mut self, cx: &mut Cx<'_>, id: u64) {
        let Some(collective) = self.collective(id) else { return };
        let op = host_op(&collective.signature, collective.info.clone());
        self.call_host(cx, None, op, Then::Collective(id));
    }

    pub(super) fn on_connect_answered(&mut self, cx: &mut Cx<'_>, id: u64, reply: &HostReply) {
        let status = reply.status();
        let Some(collective) = self.close(id) else { return };
        let connected = status.is_success() && collective.signature.kind == Kind::Connect;
        let jobs = self.jobs_among(&collective.signature.procs);
        for asker in collective.latest_first() {
            if connected {
                self.welcome(cx, asker, &jobs);
            } else {
                self.answer(cx, asker, status);
            }
        }
    }

    /// Tells a connected process of the other jobs.
    fn welcome(&mut self, cx: &mut Cx<'_>, asker: &Asker, jobs: &[Nspace]) {
        let Some(format) = self.conns.peer(asker.conn).map(|peer| peer.dialect.format) else { return };
        let others = jobs.iter().filter(|nspace| **nspace != asker.proc.nspace);
        let told: Vec<_> = others.filter_map(|nspace| self.encoded_job(nspace, format)).collect();
        if let Some(peer) = self.conns.peer_mut(asker.conn) {
            peer.told.extend(jobs.iter().cloned());
        }
        self.reply(cx, asker, |dialect| encode_success(&told, dialect.format));
    }

    /// The jobs that have a process among these and are registered here.
    pub(super) fn jobs_among(&self, procs: &[ProcId]) -> Vec<Nspace> {
        let mut nspaces: Vec<Nspace> = procs.iter().map(|proc| proc.nspace.clone()).collect();
        nspaces.sort();
        nspaces.dedup();
        nspaces.retain(|nspace| self.jobs.contains_key(nspace));
        nspaces
    }

    pub(super) fn report_failed_connect(&mut self, cx: &mut Cx<'_>, signature: &Signature, status: Status) {
        self.call_host(cx, None, host_op(signature, vec![failed(status)]), Then::Nothing);
    }
}

fn host_op(signature: &Signature, info: Vec<Info>) -> HostOp {
    let procs = signature.procs.to_vec();
    match signature.kind {
        Kind::Disconnect => HostOp::Disconnect { procs, info },
        _ => HostOp::Connect { procs, info },
    }
}
