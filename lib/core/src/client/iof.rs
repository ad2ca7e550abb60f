//! Forwarded streams: output of other processes, and their input (RFC0025).
//!
//! A pull has two numbers: ours, which forwarded output carries, and the server's, by which it is ended. Output may arrive
//! before the answer to the pull, and until its end is answered.
//!
//! A server of ours numbers the pieces that it forwards, and gets a report of what the program has taken: in steps, or when
//! the program has no earlier piece left. If this process dies, the server gives unreported pieces to another reader.
//!
//! What the kernel has taken for a program, the program has not read yet: so it is the program's own reading that is reported.

use std::collections::BTreeMap;

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::iof::{
    Deregister, Output as Forwarded, PIECE, Pull, PullReply, Push, TELLS_TAKEN, Taken,
};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::frame::TAG_IOF;
use phalanx_wire::{Info, InfoList, Value};

use super::call::{ClientDelivery, ClientReturn};
use super::link::{Cx, Link, status};
use super::pending::{Awaited, deadline_of};
use crate::machine::{CallId, DeliveryId, HandlerId, Output};

/// The pulls of this process.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pulls: BTreeMap<HandlerId, Pulled>,
    /// Pieces that the program has been given and not taken: the server's number, and the size.
    given: BTreeMap<DeliveryId, (u64, usize)>,
    last_given: u64,
    /// Taken, but not reported.
    untold: Taken,
    untold_bytes: usize,
}

#[derive(Debug)]
struct Pulled {
    /// The server's number, once known.
    number: Option<u64>,
    ending: bool,
}

impl Streams {
    pub(super) fn on_iof_pull(&mut self, cx: &mut Cx<'_>, id: CallId, handler: HandlerId, pull: Pull) {
        self.pulls.insert(handler, Pulled { number: None, ending: false });
        let mut pull = Pull { handle: number(handler), ..pull };
        pull.directives.push(Info::new(TELLS_TAKEN, true));
        let directives = pull.directives.clone();
        cx.ask(Some(id), &Request::IofPull(pull), Awaited::Pull { handler }, &directives);
    }

    pub(super) fn pulled(
        &mut self,
        link: &Link,
        handler: HandlerId,
        payload: &[u8],
    ) -> Result<ClientReturn, DecodeError> {
        let reply = PullReply::decode(payload, link.config.dialect);
        match &reply {
            Ok(PullReply { status, handle, .. }) if status.is_success() => {
                if let Some(pulled) = self.pulls.get_mut(&handler) {
                    pulled.number = Some(*handle);
                }
            }
            _ => {
                self.pulls.remove(&handler);
            }
        }
        let result =
            |PullReply { status, style, .. }| if status.is_success() { Ok(style) } else { Err(status) };
        reply.map(|reply| ClientReturn::Pulled(result(reply)))
    }

    pub(super) fn on_iof_deregister(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        handler: HandlerId,
        directives: Vec<Info>,
    ) {
        let pulled = self.pulls.get_mut(&handler).filter(|pulled| !pulled.ending);
        let number = pulled.and_then(|pulled| {
            pulled.ending = pulled.number.is_some();
            pulled.number
        });
        let Some(handle) = number else {
            self.pulls.remove(&handler);
            let result = ClientReturn::Done(Status::ERR_NOT_FOUND);
            return cx.out.push(Output::Return { id, result });
        };
        let awaited = Awaited::EndOfPull { handler };
        let request = Request::IofDeregister(Deregister { directives: directives.clone(), handle });
        cx.ask(Some(id), &request, awaited, &directives);
    }

    pub(super) fn pull_ended(
        &mut self,
        link: &Link,
        handler: HandlerId,
        payload: &[u8],
    ) -> Result<ClientReturn, DecodeError> {
        self.pulls.remove(&handler);
        status(payload, link.config.dialect)
    }

    /// Output without a matching pull belongs to a pull that has ended.
    pub(super) fn on_output(&mut self, cx: &mut Cx<'_>, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        let Forwarded { source, channel, handle, mut info, data } =
            match Forwarded::decode(payload, cx.link.config.dialect) {
                Ok(output) => output,
                Err(error) => return tracing::warn!(%error, "forwarded output that cannot be read"),
            };
        let handler = match handle {
            0 => Some(UNASKED),
            _ => self.pulls.keys().find(|handler| number(**handler) == handle).copied(),
        };
        let piece = info.find(PIECE).and_then(Value::as_u64);
        info.retain(|info| info.key != *PIECE);
        let id = piece.map(|piece| self.give(piece, data.len()));
        match handler {
            Some(to) => {
                let what = ClientDelivery::Output { source, channel, data, info };
                cx.out.push(Output::Deliver { id: id.unwrap_or(UNTOLD), to, what });
            }
            None => id.into_iter().for_each(|id| self.on_taken(cx, id, 0)),
        }
    }

    /// The program is done with a piece for good, or what it still holds is not to be waited for.
    pub(super) fn on_taken(&mut self, cx: &mut Cx<'_>, delivery: DeliveryId, held: usize) {
        let streams = self;
        let Some((piece, bytes)) = streams.given.remove(&delivery) else { return };
        match held {
            0 => streams.untold.add(piece),
            held => streams.untold.held.push((piece, held as u64)),
        }
        streams.untold_bytes += bytes;
        if streams.given.is_empty() || streams.untold_bytes >= TELL_AFTER {
            streams.untold_bytes = 0;
            let taken = std::mem::take(&mut streams.untold);
            if cx.is_connected() {
                cx.send(TAG_IOF, &taken.encode(cx.link.config.dialect));
            }
        }
    }

    pub(super) fn on_iof_push(&mut self, cx: &mut Cx<'_>, id: CallId, mut request: Push) {
        if request.data.is_empty() && !request.directives.is_set(keys::IOF_COMPLETE) {
            request.directives.push(Info::new(keys::IOF_COMPLETE, true));
        }
        let awaited = Awaited::Push { targets: request.targets.clone() };
        let deadline = deadline_of(cx.now, &request.directives);
        cx.ask_until(Some(id), &Request::IofPush(request), awaited, deadline);
    }
}

impl Streams {
    fn give(&mut self, piece: u64, bytes: usize) -> DeliveryId {
        self.last_given += 1;
        let id = DeliveryId(self.last_given);
        self.given.insert(id, (piece, bytes));
        id
    }
}

pub(super) fn pushed(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let StatusReply(status) = StatusReply::decode(payload, dialect)?;
    Ok(ClientReturn::Done(if status == Status::ERR_IOF_COMPLETE { Status::SUCCESS } else { status }))
}

/// Zero is the number of the pull that every tool has without asking.
fn number(handler: HandlerId) -> u64 {
    handler.0 + 1
}

/// The handler for what a tool gets without a pull: the output of jobs that it has spawned, and of its server.
pub const UNASKED: HandlerId = HandlerId(u64::MAX);
/// The server needs no report that it was taken.
pub const UNTOLD: DeliveryId = DeliveryId(u64::MAX);
/// Bytes.
const TELL_AFTER: usize = 32 << 10;
