//! How peers leave: by finalize, or by a connection that breaks.
//!
//! Whoever waits for a process that can no longer act is told; whatever it had here (registrations, pulls, monitors, gets)
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
        if let Some(client) = self.client_mut(&proc) {
            client.stage = Stage::Finalized;
        }
        self.forget_doings_of(cx, from.conn, &proc);
        let op = HostOp::ClientFinalized { proc: proc.clone() };
        self.call_host(cx, Some(&proc), op, Then::Finalize(from));
        self.retry_gets_of(cx, &proc);
    }

    pub(super) fn on_finalize_answered(&mut self, cx: &mut Cx<'_>, to: &Asker, status: Status) {
        self.answer(cx, to, status);
    }

    pub(super) fn on_peer_gone(&mut self, cx: &mut Cx<'_>, conn: ConnId, peer: Peer, reason: CloseReason) {
        let proc = peer.proc;
        self.forget_doings_of(cx, conn, &proc);
        let mut lost = !peer.finalized;
        if let Some(client) = self.client_mut(&proc).filter(|client| client.conn == Some(conn)) {
            client.conn = None;
            if client.stage == Stage::Connected {
                client.stage = Stage::Leaving;
            }
        } else if peer.role == Role::Client || self.client(&proc).is_some() {
            // The rank or its whole job has ended, or it has connected anew: this connection is of the past.
            lost = false;
        }
        if !lost {
            return debug!(%proc, "disconnected");
        }
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
    }

    /// Nothing more comes from this process: whoever waits for it is told.
    pub(super) fn on_proc_over(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.fail_collectives_of(cx, proc);
        self.retry_gets_of(cx, proc);
    }
}
