//! How peers leave: by finalize, or by a connection that breaks.
//!
//! A rank has gone when the last of its connections has: what that means is in `clones`. Whoever waits for a process that can
//! no longer act is told; whatever it had here (registrations, pulls, monitors, gets)
//! ends with its connection. What it committed stays until its job is deregistered.

use phalanx_spec::Status;
use phalanx_wire::ProcId;
use tracing::{debug, warn};

use super::host::Then;
use super::peer::{Asker, Peer, Role};
use super::registry::Stage;
use super::{Cx, Server};
use crate::host::HostOp;
use crate::machine::{CloseReason, ConnId};

impl Server {
    /// A second finalize is answered like the first.
    pub(super) fn on_finalize(&mut self, cx: &mut Cx<'_>, from: Asker) {
        let Some(peer) = self.conns.peer_mut(from.conn) else { return };
        if peer.finalized {
            return self.answer(cx, &from, Status::SUCCESS);
        }
        peer.finalized = true;
        let proc = from.proc.clone();
        let others = self.goes_on_without(&proc, from.conn);
        if let Some(client) = self.client_mut(&proc) {
            client.has_finalized = true;
            if !others {
                client.stage = Stage::Finalized;
            }
        }
        self.forget_doings_of(cx, from.conn, &proc);
        let op = HostOp::ClientFinalized { proc: proc.clone(), others };
        self.call_host(cx, Some(&proc), op, Then::Finalize(from));
        self.retry_gets_of(cx, &proc);
    }

    pub(super) fn on_finalize_answered(&mut self, cx: &mut Cx<'_>, to: &Asker, status: Status) {
        self.answer(cx, to, status);
    }

    pub(super) fn on_peer_gone(&mut self, cx: &mut Cx<'_>, conn: ConnId, peer: Peer, reason: CloseReason) {
        let proc = peer.proc;
        self.forget_doings_of(cx, conn, &proc);
        let of_rank = self.client_mut(&proc).map(|client| client.conns.remove(&conn));
        // The rank or its whole job has ended: this connection is of the past.
        let is_past = of_rank == Some(false) || (of_rank.is_none() && peer.role == Role::Client);
        if peer.finalized || is_past {
            return debug!(%proc, "disconnected");
        }
        if of_rank.is_some() {
            return self.on_rank_connection_lost(cx, proc, conn, reason);
        }
        self.report_loss(cx, proc, reason);
    }

    /// The connection of a tool, or the last one of a rank, has broken.
    pub(super) fn report_loss(&mut self, cx: &mut Cx<'_>, proc: ProcId, reason: CloseReason) {
        warn!(%proc, ?reason, "connection lost before finalize");
        self.tell_own_process_of_loss(cx, &proc);
        self.call_host(cx, None, HostOp::ClientLost { proc: proc.clone() }, Then::Lost(proc));
    }

    /// The host has heard of a lost connection. It may have taken its time: to find out that the process has died, say,
    /// before others are told that they wait in vain.
    pub(super) fn on_loss_acknowledged(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        match self.client_mut(proc) {
            Some(client) if client.stage == Stage::Leaving => client.stage = Stage::Lost,
            // It has connected anew, or its end was told already.
            Some(_) => return,
            None => {}
        }
        self.on_proc_over(cx, proc);
    }

    /// Ends what a connection had under way.
    fn forget_doings_of(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: &ProcId) {
        self.forget_gets_by(conn);
        self.forget_registrations_of(cx, conn, proc);
        self.forget_pulls_of(cx, conn);
        self.forget_monitors_of(conn);
        if self.goes_on_without(proc, conn) {
            self.withdraw(cx, conn, proc);
        }
    }

    /// Nothing more comes from this process: whoever waits for it is told.
    pub(super) fn on_proc_over(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.tell_groups_of_end(cx, proc);
        self.fail_collectives_of(cx, proc);
        self.retry_gets_of(cx, proc);
    }
}
