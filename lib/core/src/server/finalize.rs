//! How peers leave: by finalize, or by a broken connection.
//!
//! A rank has left when its last connection has (see `peers`). Requests that wait for a process that can no longer act are
//! answered; its registrations, pulls, monitors and gets end with its connection. Its committed values stay until its job is
//! deregistered.

use phalanx_spec::{Rank, Status};
use phalanx_wire::ProcId;
use tracing::{debug, warn};

use super::Tables;
use super::host::Then;
use super::own::{OWN, loss_of};
use super::peer::{Asker, Peer, PeerKind};
use super::registry::{Client, Stage};
use super::turn::Cx;
use crate::host::{ClientFinalized, ClientLost, HostOp};
use crate::machine::{CloseReason, ConnId, Output};

impl Tables {
    /// A second finalize is answered like the first.
    pub(super) fn on_finalize(&mut self, cx: &mut Cx<'_>, from: Asker) {
        let Some(peer) = cx.peers.conns.peer_mut(from.conn) else { return };
        if peer.has_finalized() {
            return cx.answer(from, Status::SUCCESS);
        }
        peer.finalize();
        let proc = from.proc.clone();
        let others = cx.peers.goes_on_without(&proc, from.conn);
        if let Some(client) = cx.peers.jobs.client_mut(&proc) {
            client.finalize(others);
        }
        self.forget_doings_of(cx, from.conn, &proc);
        let op = HostOp::ClientFinalized(ClientFinalized { proc: proc.clone(), others });
        cx.ask(Some(&proc), op, Then::Finalize(from));
        self.retry_gets_of(cx, &proc);
    }

    pub(super) fn on_closed(&mut self, cx: &mut Cx<'_>, conn: ConnId, reason: CloseReason) {
        match cx.peers.conns.remove(conn) {
            None => self.strangers.on_closed(cx, conn),
            Some(peer) => self.on_peer_gone(cx, conn, *peer, reason, None),
        }
    }

    /// Closes the connection of a misbehaving peer, and cleans up after it.
    pub(super) fn cut_off(&mut self, cx: &mut Cx<'_>, conn: ConnId, why: String) {
        let Some(peer) = cx.peers.conns.remove(conn) else { return };
        warn!(proc = %peer.proc(), why, "closing the connection");
        cx.out.push(Output::Close { conn });
        self.on_peer_gone(cx, conn, *peer, CloseReason::Local, Some(why));
    }

    /// Closes a connection from our side, and cleans up after its peer.
    pub(super) fn drop_connection(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        cx.out.push(Output::Close { conn });
        self.on_closed(cx, conn, CloseReason::Local);
    }

    /// `cut_off`: why we closed the connection, if we did.
    fn on_peer_gone(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        peer: Peer,
        reason: CloseReason,
        cut_off: Option<String>,
    ) {
        let proc = peer.proc().clone();
        self.forget_doings_of(cx, conn, &proc);
        let of_rank = cx.peers.jobs.client_mut(&proc).map(|client| client.disconnect(conn));
        // The rank or its whole job has ended: the connection no longer matters.
        let is_past = of_rank == Some(false) || (of_rank.is_none() && peer.role() == PeerKind::Client);
        if peer.has_finalized() || is_past {
            return debug!(%proc, "disconnected");
        }
        if of_rank.is_some() {
            return self.on_rank_connection_lost(cx, proc, conn, (reason, cut_off));
        }
        self.report_loss(cx, proc, reason, cut_off);
    }

    /// A connection of a rank has broken before it finalized.
    fn on_rank_connection_lost(
        &mut self,
        cx: &mut Cx<'_>,
        proc: ProcId,
        conn: ConnId,
        (reason, cut_off): (CloseReason, Option<String>),
    ) {
        if cx.peers.goes_on_without(&proc, conn) {
            return warn!(%proc, ?reason, "connection lost before finalize: another of the rank goes on");
        }
        match cx.peers.jobs.client_mut(&proc).and_then(Client::break_off) {
            None => return,
            Some(Stage::Leaving) => return self.report_loss(cx, proc, reason, cut_off),
            Some(_) => {}
        }
        warn!(%proc, ?reason, "connection lost before finalize: another of the rank has finalized");
        let op = HostOp::ClientFinalized(ClientFinalized { proc: proc.clone(), others: false });
        cx.ask(None, op, Then::Nothing);
        self.retry_gets_of(cx, &proc);
    }

    /// The connection of a tool, or the last one of a rank, broke.
    fn report_loss(&mut self, cx: &mut Cx<'_>, proc: ProcId, reason: CloseReason, cut_off: Option<String>) {
        warn!(%proc, ?reason, "connection lost before finalize");
        self.events.tell_one(cx, OWN, &loss_of(&proc));
        cx.ask(None, HostOp::ClientLost(ClientLost { proc: proc.clone(), cut_off }), Then::Lost(proc));
    }

    /// The host has acknowledged a lost connection. It may have delayed this, e.g. to learn that the process died, before
    /// requests that wait for the process fail.
    pub(super) fn on_loss_acknowledged(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        // A process that has reconnected, or whose end was handled already, is not ended here.
        if cx.peers.jobs.client_mut(proc).is_some_and(|client| !client.give_up()) {
            return;
        }
        self.on_proc_over(cx, proc);
    }

    /// Ends all requests of a connection.
    fn forget_doings_of(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: &ProcId) {
        self.gets.forget_by(cx, conn);
        self.events.forget_connection(cx, conn, proc);
        self.streams.forget_of(cx, conn);
        self.monitors.forget_of(cx, conn);
        if cx.peers.goes_on_without(proc, conn) {
            self.collectives.withdraw(cx, conn, proc);
            self.do_what_is_due(cx);
        }
    }

    pub(super) fn deregister_client(&mut self, cx: &mut Cx<'_>, proc: &ProcId) -> Status {
        if proc.rank == Rank::WILDCARD {
            let Some(job) = cx.peers.jobs.get(&proc.nspace) else { return Status::ERR_NOT_FOUND };
            let all: Vec<Rank> = job.clients().map(|(rank, _)| rank).collect();
            for rank in all {
                self.deregister_client(cx, &ProcId::new(&proc.nspace, rank));
            }
            return Status::SUCCESS;
        }
        let Some(client) = cx.peers.jobs.client_mut(proc) else { return Status::ERR_NOT_FOUND };
        for conn in client.end() {
            self.drop_connection(cx, conn);
        }
        self.on_proc_over(cx, proc);
        Status::SUCCESS
    }

    /// The process will do nothing more: requests that wait for it are answered.
    fn on_proc_over(&mut self, cx: &mut Cx<'_>, proc: &ProcId) {
        self.groups.tell_of_end(cx, &mut self.events, proc);
        self.collectives.fail_of(cx, proc);
        self.do_what_is_due(cx);
        self.retry_gets_of(cx, proc);
    }
}
