//! The connection to the server as every verb sees it: this process's identity, its store, and its pending requests.

use std::sync::Arc;

use phalanx_spec::Status;
use phalanx_wire::cmd::{Body, Request, StatusReply};
use phalanx_wire::codec::{DecodeError, Dialect};
use phalanx_wire::frame::encode_frame;
use phalanx_wire::{Info, ProcId};

use super::call::{ClientDelivery, ClientReturn};
use super::config::ClientConfig;
use super::pending::{Awaited, Pending, Table, deadline_of};
use super::phase::{InitError, Phase};
use crate::machine::{CallId, ConnId, Outbox, Output, Time};
use crate::store::Store;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) config: ClientConfig,
    pub(super) store: Arc<Store>,
    pub(super) phase: Phase,
    /// The call of init, until it is answered.
    pub(super) starting: Option<CallId>,
    /// The index that the server assigned.
    pub(super) index: u32,
    pub(super) pending: Table,
    /// Whether values from the server are kept for later gets. Not if the server is in the same process: it is always up to
    /// date.
    pub(super) remembers: bool,
    /// The identity that the server reports; only tools get it.
    pub(super) server: Option<ProcId>,
}

/// What every verb is handed besides its own table, while one input is handled.
#[derive(Debug)]
pub(super) struct Cx<'a> {
    pub(super) now: Time,
    pub(super) out: &'a mut Outbox<ClientReturn, ClientDelivery>,
    pub(super) link: &'a mut Link,
}

impl Link {
    pub(super) fn new(config: ClientConfig) -> Link {
        Link {
            store: Arc::new(Store::reading(config.proc.clone(), config.files.clone())),
            config,
            phase: Phase::Idle,
            starting: None,
            index: u32::MAX,
            pending: Table::default(),
            remembers: true,
            server: None,
        }
    }

    /// The server's identity.
    pub(super) fn server(&self) -> Option<&ProcId> {
        self.server.as_ref().or(self.config.server.as_ref().map(|uri| &uri.server))
    }
}

impl Cx<'_> {
    /// Sends a request whose reply is handled as `what`; the infos may hold a timeout. Without a connection it fails at
    /// once.
    pub(super) fn ask(&mut self, call: Option<CallId>, request: &Request, what: Awaited, info: &[Info]) {
        self.ask_until(call, request, what, deadline_of(self.now, info));
    }

    pub(super) fn ask_until(
        &mut self,
        call: Option<CallId>,
        request: &Request,
        what: Awaited,
        deadline: Option<Time>,
    ) {
        if let Err(status) = self.can_ask(call) {
            return self.give_back(call, what.failed(status));
        }
        let tag = self.link.pending.insert(Pending { call, since: self.now, deadline, what });
        self.send(tag, &request.encode(self.link.config.dialect));
    }

    /// Sends a request that the server does not answer.
    pub(super) fn tell(&mut self, request: &Request) {
        if self.can_ask(None).is_ok() {
            let tag = self.link.pending.next_tag();
            self.send(tag, &request.encode(self.link.config.dialect));
        }
    }

    /// The program's requests are accepted after admission; those of the client itself as soon as the server listens.
    pub(super) fn can_ask(&self, call: Option<CallId>) -> Result<(), Status> {
        match self.link.phase {
            _ if !self.link.pending.has_room() => Err(Status::ERR_OUT_OF_RESOURCE),
            Phase::Ready | Phase::Finalizing => Ok(()),
            Phase::ExpectJobData(_) | Phase::ExpectRelease { .. } if call.is_none() => Ok(()),
            Phase::Alone | Phase::Lost => Err(Status::ERR_UNREACH),
            _ => Err(Status::ERR_INIT),
        }
    }

    /// Whether messages without an answer can be sent.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.link.phase, Phase::Ready | Phase::Finalizing)
    }

    pub(super) fn is_alone(&self) -> bool {
        matches!(self.link.phase, Phase::Alone)
    }

    pub(super) fn send(&mut self, tag: u32, payload: &[u8]) {
        self.out.push(Output::Send { conn: SERVER, frame: encode_frame(self.link.index, tag, payload) });
    }

    pub(super) fn give_back(&mut self, call: Option<CallId>, result: ClientReturn) {
        if let Some(id) = call {
            self.out.push(Output::Return { id, result });
        }
    }

    /// Without other processes the call is done at once.
    pub(super) fn done_alone(&mut self, id: CallId) {
        self.give_back(Some(id), ClientReturn::Done(Status::SUCCESS));
    }

    pub(super) fn become_ready(&mut self) {
        self.link.phase = Phase::Ready;
        self.end_init(Ok(()));
    }

    pub(super) fn end_init(&mut self, result: Result<(), InitError>) {
        let starting = self.link.starting.take();
        self.give_back(starting, ClientReturn::Init(result));
    }
}

/// A reply that holds a status alone.
pub(super) fn status(payload: &[u8], dialect: Dialect) -> Result<ClientReturn, DecodeError> {
    let StatusReply(status) = StatusReply::decode(payload, dialect)?;
    Ok(ClientReturn::Done(status))
}

/// A client has one connection in its lifetime.
pub(super) const SERVER: ConnId = ConnId(0);
