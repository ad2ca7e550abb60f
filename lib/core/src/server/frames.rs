//! From bytes to requests: decodes what a connection sends, as long as its sender reads the answers.

use phalanx_spec::{Command, Status};
use phalanx_wire::cmd::iof::Taken;
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{DecodeError, Reader};
use phalanx_wire::frame::{FIRST_REQUEST_TAG, Frame, FrameTooLong, TAG_HEARTBEAT, TAG_IOF};
use tracing::{debug, warn};

use super::accept::Admitted;
use super::peer::{Peer, PeerKind};
use super::turn::Cx;
use super::{Tables, commit, limits};
use crate::machine::ConnId;

impl Tables {
    pub(super) fn on_bytes(&mut self, cx: &mut Cx<'_>, conn: ConnId, data: &[u8]) {
        match cx.peers.conns.peer_mut(conn) {
            Some(peer) => {
                peer.feed(data);
                self.read_frames(cx, conn);
            }
            None => {
                if let Some(admitted) = self.strangers.on_hello_bytes(cx, conn, data) {
                    self.on_admitted(cx, admitted);
                }
            }
        }
    }

    /// Handles complete messages, as long as the sender reads its answers and the data it pushed is being read.
    pub(super) fn read_frames(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let can_go_on = |peer: &&mut Peer| !peer.is_full() && !peer.is_ahead();
        while let Some(peer) = cx.peers.conns.peer_mut(conn).filter(can_go_on) {
            match peer.next_frame() {
                Ok(Some(frame)) => self.on_frame(cx, conn, &frame),
                Ok(None) => break,
                Err(FrameTooLong { claimed, limit }) => {
                    let why = format!(
                        "it sent a message of {claimed} bytes; no more than {limit} are accepted, so commit less at once"
                    );
                    return self.cut_off(cx, conn, why);
                }
            }
        }
        if cx.peers.together(conn, limits::MAX_INCOMPLETE, Peer::incomplete) > limits::MAX_INCOMPLETE {
            let why = format!(
                "more than {} bytes of messages that have not arrived whole wait on the connections of its rank",
                limits::MAX_INCOMPLETE
            );
            self.cut_off(cx, conn, why);
        }
    }

    fn on_frame(&mut self, cx: &mut Cx<'_>, conn: ConnId, frame: &Frame) {
        let Some(peer) = cx.peers.conns.peer_mut(conn) else { return };
        if frame.tag == TAG_HEARTBEAT {
            return self.monitors.on_heartbeat(conn, cx.now);
        }
        if frame.tag == TAG_IOF {
            return match Taken::decode(&frame.payload, peer.dialect()) {
                Ok(taken) => self.streams.on_taken(cx, conn, &taken),
                Err(error) => debug!(proc = %peer.proc(), %error, "what was taken cannot be read: ignored"),
            };
        }
        if frame.tag < FIRST_REQUEST_TAG {
            return debug!(proc = %peer.proc(), tag = frame.tag, "message on a reserved tag: ignored");
        }
        let dialect = peer.dialect();
        let is_full = cx.peers.together(conn, limits::MAX_REQUESTS, Peer::requests) >= limits::MAX_REQUESTS;
        let command = Reader::new(dialect.format, &frame.payload).get::<Command>();
        let request = Request::decode(&frame.payload, dialect);
        if command == Ok(Command::DEREGEVENTS) {
            if let Ok(Request::DeregisterEvents(events)) = request {
                self.events.on_deregister(cx, conn, &events.codes);
            }
            return;
        }
        let Some((from, peer)) = cx.peers.conns.begin_request(conn, frame.tag) else { return };
        if is_full {
            warn!(proc = %from.proc, limit = limits::MAX_REQUESTS, "too many requests without an answer: refused");
            return cx.answer(from, Status::ERR_OUT_OF_RESOURCE);
        }
        if !matches!(request, Ok(Request::Get(_))) {
            peer.end_sweep();
        }
        match request {
            Ok(Request::Finalize) => self.on_finalize(cx, from),
            Ok(_) if peer.has_finalized() => cx.answer(from, Status::ERR_INIT),
            Ok(request) => self.on_request(cx, from, request),
            Err(DecodeError::UnknownCommand { code }) => {
                debug!(proc = %from.proc, code, "unknown command");
                cx.answer(from, Status::ERR_NOT_SUPPORTED);
            }
            Err(error) => {
                warn!(proc = %from.proc, ?command, %error, "request cannot be decoded");
                if command != Ok(Command::COMMIT) {
                    return cx.answer(from, Status::ERR_UNPACK_FAILURE);
                }
                let proc = from.proc.clone();
                let change = commit::on_unreadable_commit(cx, from, &error);
                self.on_change(cx, &proc, change);
            }
        }
    }

    /// A connection has become a peer: it may have sent more than its hello.
    pub(super) fn on_admitted(&mut self, cx: &mut Cx<'_>, admitted: Admitted) {
        if admitted.role == PeerKind::Tool {
            self.streams.pull_for_tool(cx, admitted.conn);
        }
        self.on_bytes(cx, admitted.conn, &admitted.early);
    }

    pub(super) fn on_writable(&mut self, cx: &mut Cx<'_>, conn: ConnId, queued: usize) {
        if let Some(peer) = cx.peers.conns.peer_mut(conn) {
            peer.note_queued(queued);
            self.streams.on_lane_moved(cx, conn);
            self.gets.go_on_with(cx, &self.known, conn);
            self.read_frames(cx, conn);
        }
    }

    /// Closes the connections of peers with too many unread bytes.
    pub(super) fn give_up_overdue(&mut self, cx: &mut Cx<'_>) {
        while let Some(conn) = cx.peers.conns.take_overdue() {
            let why = format!("it does not read: more than {} bytes wait for it", limits::MAX_QUEUED);
            self.cut_off(cx, conn, why);
        }
    }
}
