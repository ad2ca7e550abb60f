//! One turn of the server: what every verb is handed besides its own table, while one input is handled.
//!
//! Sending never fails here. While a peer has many unread bytes, its requests wait and its gets are not answered: it gets
//! everything as fast as it reads. A peer that does not read unsolicited messages is marked, and closed at the end of the turn,
//! so that no verb has to expect its tables to change while it answers.

use phalanx_spec::Status;
use phalanx_wire::cmd::{Body, InfoReply, StatusReply};
use phalanx_wire::codec::Dialect;
use phalanx_wire::frame::{FIRST_REQUEST_TAG, encode_frame};
use phalanx_wire::{Info, ProcId};
use tracing::{error, warn};

use super::call::ServerReturn;
use super::config::ServerConfig;
use super::host::{Then, Upcalls};
use super::limits::{MAX_QUEUED, SHORT_ANSWER};
use super::peer::{Address, Asker, Peer};
use super::peers::Peers;
use super::timers::Timers;
use crate::host::HostOp;
use crate::machine::{CallId, ConnId, Outbox, Output, Time};

/// The time, the peers, and where outputs go.
#[derive(Debug)]
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) out: &'a mut Outbox<ServerReturn, ()>,
    pub(super) config: &'a ServerConfig,
    pub(super) timers: &'a mut Timers,
    pub(super) peers: &'a mut Peers,
    pub(super) upcalls: &'a mut Upcalls,
}

impl Cx<'_> {
    /// Answers a request, unless its asker has gone.
    pub(super) fn reply(&mut self, to: Asker, encode: impl FnOnce(Dialect) -> Vec<u8>) {
        self.reply_to(to.into_address(), encode);
    }

    fn reply_to(&mut self, (conn, tag): Address, encode: impl FnOnce(Dialect) -> Vec<u8>) {
        let Some(peer) = self.peers.conns.peer_mut(conn) else { return };
        peer.note_answer();
        let dialect = peer.dialect();
        let longest = peer.longest_message();
        let mut payload = encode(dialect);
        if payload.len() > longest {
            warn!(proc = %peer.proc(), bytes = payload.len(), longest, "peer takes no message of that length: an answer is left out");
            payload = StatusReply(Status::ERR_OUT_OF_RESOURCE).encode(dialect);
        }
        if payload.len() > SHORT_ANSWER && self.peers.together(conn, MAX_QUEUED, Peer::queued) > MAX_QUEUED {
            let proc = self.peers.conns.peer(conn).map(|peer| tracing::field::display(peer.proc()));
            warn!(proc, limit = MAX_QUEUED, "peer reads slowly: an answer is left out");
            payload = StatusReply(Status::ERR_OUT_OF_RESOURCE).encode(dialect);
        }
        self.send(conn, tag, &payload);
    }

    /// Answers requests with a right to their answer that was dropped by mistake.
    pub(super) fn answer_dropped(&mut self) {
        while let Some((conn, tag)) = self.peers.conns.next_unanswered() {
            debug_assert!(false, "request {tag} of connection {} was not answered", conn.0);
            error!(conn = conn.0, tag, "the server has dropped a request, a defect: refused");
            self.reply_to((conn, tag), |dialect| StatusReply(Status::ERROR).encode(dialect));
        }
    }

    pub(super) fn answer(&mut self, to: Asker, status: Status) {
        self.reply(to, |dialect| StatusReply(on_wire(status)).encode(dialect));
    }

    pub(super) fn answer_infos(&mut self, to: Asker, status: Status, info: Vec<Info>) {
        self.reply(to, |dialect| InfoReply { status: on_wire(status), info }.encode(dialect));
    }

    /// Sends an unsolicited message, or the bytes of an answer.
    pub(super) fn send(&mut self, conn: ConnId, tag: u32, payload: &[u8]) {
        let is_unasked = tag < FIRST_REQUEST_TAG;
        if is_unasked && self.peers.together(conn, MAX_QUEUED, Peer::unasked) > MAX_QUEUED {
            return self.peers.conns.note_overdue(conn);
        }
        let Some(peer) = self.peers.conns.peer_mut(conn) else { return };
        let frame = encode_frame(SERVER_INDEX, tag, payload);
        peer.note_sent(frame.len(), is_unasked);
        self.out.push(Output::Send { conn, frame });
    }

    /// Asks the host. `asked_by`: the process whose request this is.
    pub(super) fn ask(&mut self, asked_by: Option<&ProcId>, op: HostOp, then: Then) {
        let (call, op) = self.upcalls.open(self.now, asked_by, op, then);
        self.out.push(Output::CallHost { call, op });
    }

    /// Answers a call of the owner.
    pub(super) fn give(&mut self, id: CallId, result: ServerReturn) {
        self.out.push(Output::Return { id, result });
    }
}

/// "Already done" is a matter between a host and its library: clients know only success.
fn on_wire(status: Status) -> Status {
    if status == Status::OPERATION_SUCCEEDED { Status::SUCCESS } else { status }
}

/// The index in the header of a server's messages; peers ignore it.
const SERVER_INDEX: u32 = 0;
