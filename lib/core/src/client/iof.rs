//! Forwarded streams: what other processes write, and what they are to read (RFC0025).
//!
//! A pull has two numbers: ours, which forwarded output carries, and the server's, by which it is ended. Output may arrive
//! before the answer to the pull.

use std::collections::BTreeMap;

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::iof::{Deregister, Output as Forwarded, Pull, PullReply, Push};
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::{Blob, Info, InfoList, ProcId};

use super::pending::Awaited;
use super::{Client, ClientDelivery, ClientReturn, Out};
use crate::machine::{CallId, DeliveryId, HandlerId, Output, Time};

/// The pulls of this process.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pulls: BTreeMap<HandlerId, Pulled>,
}

#[derive(Debug)]
struct Pulled {
    /// The server's number, once it has said it.
    number: Option<u64>,
    sources: Vec<ProcId>,
    channels: IofChannel,
}

impl Client {
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(super) fn on_iof_pull(
        &mut self,
        now: Time,
        id: CallId,
        handler: HandlerId,
        sources: Vec<ProcId>,
        channels: IofChannel,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        self.streams.pulls.insert(handler, Pulled { number: None, sources: sources.clone(), channels });
        let pull = Pull { sources, directives: directives.clone(), channels, handle: number(handler) };
        self.ask(now, Some(id), &Request::IofPull(pull), Awaited::Pull { handler }, &directives, out);
    }

    pub(super) fn pulled(&mut self, handler: HandlerId, payload: &[u8]) -> Result<ClientReturn, DecodeError> {
        let reply = PullReply::decode(payload, self.config.dialect);
        match &reply {
            Ok(PullReply { status, handle }) if status.is_success() => {
                if let Some(pulled) = self.streams.pulls.get_mut(&handler) {
                    pulled.number = Some(*handle);
                }
            }
            _ => {
                self.streams.pulls.remove(&handler);
            }
        }
        reply.map(|reply| ClientReturn::Done(reply.status))
    }

    pub(super) fn on_iof_deregister(
        &mut self,
        now: Time,
        id: CallId,
        handler: HandlerId,
        directives: Vec<Info>,
        out: &mut Out,
    ) {
        let pulled = self.streams.pulls.remove(&handler);
        let Some(handle) = pulled.and_then(|pulled| pulled.number) else {
            let result = ClientReturn::Done(Status::ERR_NOT_FOUND);
            return out.push(Output::Return { id, result });
        };
        let awaited =
            Awaited::Status { operation: "end of a pull", subject: format!("handler {}", handler.0) };
        let request = Request::IofDeregister(Deregister { directives: directives.clone(), handle });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }

    /// What is written for nobody's number belongs to a pull that has ended. What was not asked for is not given twice to those
    /// who have asked for it as well.
    pub(super) fn on_output(&mut self, payload: &[u8], out: &mut Out) {
        if payload.is_empty() {
            return;
        }
        let Forwarded { source, channel, handle, info, data } =
            match Forwarded::decode(payload, self.config.dialect) {
                Ok(output) => output,
                Err(error) => return tracing::warn!(%error, "forwarded output that cannot be read"),
            };
        let asked = |pulled: &Pulled| {
            pulled.channels.intersects(channel) && pulled.sources.iter().any(|wanted| wanted.covers(&source))
        };
        let handler = match handle {
            0 if self.streams.pulls.values().any(asked) => None,
            0 => Some(UNASKED),
            _ => self.streams.pulls.keys().find(|handler| number(**handler) == handle).copied(),
        };
        if let Some(to) = handler {
            let what = ClientDelivery::Output { source, channel, data, info };
            out.push(Output::Deliver { id: UNANSWERED, to, what });
        }
    }

    pub(super) fn on_iof_push(
        &mut self,
        now: Time,
        id: CallId,
        targets: Vec<ProcId>,
        data: Blob,
        mut directives: Vec<Info>,
        out: &mut Out,
    ) {
        if data.is_empty() && !directives.is_set(keys::IOF_COMPLETE) {
            directives.push(Info::new(keys::IOF_COMPLETE, true));
        }
        let awaited = Awaited::Push { targets: targets.clone() };
        let request = Request::IofPush(Push { targets, directives: directives.clone(), data });
        self.ask(now, Some(id), &request, awaited, &directives, out);
    }
}

pub(super) fn pushed(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let StatusReply(status) = StatusReply::decode(payload, dialect)?;
    Ok(ClientReturn::Done(if status == Status::ERR_IOF_COMPLETE { Status::SUCCESS } else { status }))
}

/// Zero stands for the pull that every tool has without asking.
fn number(handler: HandlerId) -> u64 {
    handler.0 + 1
}

/// The handler of what a tool gets without having pulled it: the output of jobs that it has spawned, and of its server.
pub const UNASKED: HandlerId = HandlerId(u64::MAX);
/// Nobody waits for the end of a callback that took output.
const UNANSWERED: DeliveryId = DeliveryId(u64::MAX);
