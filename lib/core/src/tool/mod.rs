//! The tool role: one process and its connections to any number of servers.
//!
//! Each connection is a [`Client`] that introduces itself as a tool; what a client can ask, a tool asks of its primary server.
//! This machine passes calls and bytes to the right one, and keeps what belongs to the tool as a whole: its name, its store,
//! its event handlers (which get events of every server), and the order of its servers. Finding servers is the shell's part.

mod attach;
mod call;
mod detach;
mod handlers;
mod primary;

pub use call::{Attached, AttachedServer, Attempt, ToolCall, ToolReturn};

use std::collections::BTreeMap;
use std::sync::Arc;

use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Info, ProcId};

use crate::client::{Client, ClientCall, ClientDelivery, ClientReturn};
use crate::explain::Waiting;
use crate::machine::{CallId, ConnId, DeliveryId, HandlerId, Input, Machine, Outbox, Output, Time};
use crate::store::Store;
use crate::support::{self, OuterSupport};
use handlers::Handlers;
use primary::Wish;

/// The tool's identity, and how it introduces itself.
#[derive(Clone, Debug)]
pub struct ToolConfig {
    /// None: the first server assigns a name.
    pub proc: Option<ProcId>,
    /// It intends to start jobs.
    pub launcher: bool,
    /// A server has started it: its name is that of a process of a job.
    pub started: bool,
    pub credential: Credential,
    pub uid: u32,
    pub gid: u32,
    pub hostname: String,
    /// Its other attributes: its pid, its command line and the like.
    pub info: Vec<Info>,
}

/// The state of one tool.
#[derive(Debug)]
pub struct Tool {
    config: ToolConfig,
    /// Exists once the tool has a name.
    store: Option<Arc<Store>>,
    sessions: BTreeMap<u64, Session>,
    last_session: u64,
    primary: Option<u64>,
    handlers: Handlers,
    /// The server through which each stream was pulled.
    pulls: BTreeMap<HandlerId, u64>,
    wishes: Vec<Wish>,
    own_calls: BTreeMap<CallId, Own>,
    last_own_call: u64,
    ending: Option<Ending>,
    outer: &'static OuterSupport,
}

/// A connection to one server.
#[derive(Debug)]
struct Session {
    client: Client,
    /// None: the tool by itself, without a server.
    uri: Option<ServerUri>,
    /// The attempt that it belongs to, until it is taken.
    attempt: Option<Attempt>,
    /// It has admitted the tool and is taken.
    up: bool,
}

/// The purpose of a call that the tool itself makes of one of its sessions.
#[derive(Debug)]
enum Own {
    Alone {
        session: u64,
        call: CallId,
    },
    Ask {
        session: u64,
        call: CallId,
    },
    /// It is left without having been taken.
    Forgo {
        session: u64,
    },
    Detach {
        session: u64,
        call: CallId,
    },
    Goodbye,
    /// The answer is ignored.
    Nothing,
}

/// The tool finalizes at all servers.
#[derive(Debug)]
struct Ending {
    call: CallId,
    open: usize,
}

type Out = Outbox<ToolReturn, ClientDelivery>;
type ClientOut = Outbox<ClientReturn, ClientDelivery>;

impl Tool {
    pub fn new(config: ToolConfig) -> Tool {
        Tool {
            store: config.proc.clone().map(|me| Arc::new(Store::new(me))),
            config,
            sessions: BTreeMap::new(),
            last_session: 0,
            primary: None,
            handlers: Handlers::default(),
            pulls: BTreeMap::new(),
            wishes: Vec::new(),
            own_calls: BTreeMap::new(),
            last_own_call: 0,
            ending: None,
            outer: support::NOTHING,
        }
    }

    /// Adds the attributes that the library around the tool honours itself.
    pub fn within(self, outer: &'static OuterSupport) -> Tool {
        Tool { outer, ..self }
    }

    /// Everything pending: requests to servers, event handlers of this program, and servers that are to become the primary one.
    pub fn explain(&self) -> Vec<Waiting> {
        let mut all: Vec<Waiting> =
            self.sessions.values().flat_map(|session| session.client.explain()).collect();
        all.extend(self.explain_wishes());
        all
    }

    fn on_call(&mut self, now: Time, id: CallId, call: ToolCall, out: &mut Out) {
        match call {
            ToolCall::Alone => self.on_alone(now, id, out),
            ToolCall::Ask { attempt, uri, dialect, patience, secret } => {
                self.on_ask(now, id, attempt, uri, dialect, patience, secret, out);
            }
            ToolCall::Take { attempt, primary } => self.on_take(now, id, attempt, primary, out),
            ToolCall::Forgo(attempt) => self.on_forgo(now, id, attempt, out),
            ToolCall::Detach(server) => self.on_detach(now, id, &server, out),
            ToolCall::SetServer { server, wait, timeout } => {
                self.on_set_server(now, id, server, wait, timeout, out);
            }
            ToolCall::Servers => {
                let servers = ToolReturn::Servers(self.servers());
                out.push(Output::Return { id, result: servers });
            }
            ToolCall::Client(call) => self.on_client_call(now, id, call, out),
        }
    }

    fn on_client_call(&mut self, now: Time, id: CallId, call: ClientCall, out: &mut Out) {
        let session = match &call {
            ClientCall::Handled { delivery, .. } => return self.on_handled(now, id, *delivery, call, out),
            ClientCall::Taken { delivery, held } => {
                let (session, delivery) = inner(*delivery);
                let call = ClientCall::Taken { delivery, held: *held };
                return self.hand(now, session, Input::Call { id, call }, out);
            }
            ClientCall::RegisterEvents { handler, codes, info } => {
                self.handlers.add(id, *handler, codes.clone(), info.clone());
                self.tell_others(now, &call, out);
                self.primary
            }
            ClientCall::DeregisterEvents { handler } => {
                self.handlers.remove(*handler);
                self.tell_others(now, &call, out);
                self.primary
            }
            ClientCall::IofPull { handler, .. } => {
                self.pulls.extend(self.primary.map(|primary| (*handler, primary)));
                self.primary
            }
            ClientCall::IofDeregister { handler, .. } => self.pulls.remove(handler).or(self.primary),
            ClientCall::Finalize { .. } => return self.on_finalize(now, id, call, out),
            _ => self.primary,
        };
        match session {
            Some(session) => self.hand(now, session, Input::Call { id, call }, out),
            // No server was ever asked: init has not been called, or has failed.
            None => out.push(Output::Return { id, result: ToolReturn::Done(phalanx_spec::Status::ERR_INIT) }),
        }
    }

    /// Passes an input to one session and carries out its outputs.
    fn hand(&mut self, now: Time, number: u64, input: Input<'_, ClientCall>, out: &mut Out) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let mut from_client = ClientOut::default();
        session.client.handle(now, input, &mut from_client);
        let conn = ConnId(number);
        while let Some(output) = from_client.pop() {
            match output {
                Output::Connect { address, .. } => out.push(Output::Connect { conn, address }),
                Output::Send { frame, .. } => out.push(Output::Send { conn, frame }),
                Output::Close { .. } => out.push(Output::Close { conn }),
                Output::Deliver { id, to, what } => {
                    out.push(Output::Deliver { id: outer(number, id), to, what });
                }
                Output::Return { id, result } => self.on_return(now, id, result, out),
                // Clients have no host.
                Output::CallHost { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => {}
            }
        }
    }

    fn on_return(&mut self, now: Time, id: CallId, result: ClientReturn, out: &mut Out) {
        match self.own_calls.remove(&id) {
            None => {
                self.on_registered(now, id, &result, out);
                out.push(Output::Return { id, result: ToolReturn::Client(result) });
            }
            Some(Own::Nothing) => {}
            Some(Own::Alone { session, call }) => self.on_begun_alone(now, session, call, &result, out),
            Some(Own::Ask { session, call }) => self.on_asked(session, call, result, out),
            Some(Own::Forgo { session }) => drop(self.sessions.remove(&session)),
            Some(Own::Detach { session, call }) => self.on_detached(session, call, out),
            Some(Own::Goodbye) => self.on_goodbye(out),
        }
    }

    /// Makes a call of a session on the tool's own behalf.
    fn make_call(&mut self, now: Time, session: u64, call: ClientCall, purpose: Own, out: &mut Out) {
        self.last_own_call += 1;
        let id = CallId(OWN_CALLS | self.last_own_call);
        self.own_calls.insert(id, purpose);
        self.hand(now, session, Input::Call { id, call }, out);
    }

    fn on_handled(&mut self, now: Time, id: CallId, delivery: DeliveryId, call: ClientCall, out: &mut Out) {
        let ClientCall::Handled { verdict, .. } = call else { return };
        let (session, delivery) = inner(delivery);
        let call = ClientCall::Handled { delivery, verdict };
        self.hand(now, session, Input::Call { id, call }, out);
    }
}

impl Machine for Tool {
    type Call = ToolCall;
    type Return = ToolReturn;
    type Delivery = ClientDelivery;

    fn handle(&mut self, now: Time, input: Input<'_, ToolCall>, out: &mut Out) {
        match input {
            Input::Call { id, call } => self.on_call(now, id, call, out),
            Input::Opened { conn, peer } => self.hand(now, conn.0, Input::Opened { conn, peer }, out),
            Input::Bytes { conn, data } => self.hand(now, conn.0, Input::Bytes { conn, data }, out),
            Input::Writable { conn, queued } => {
                self.hand(now, conn.0, Input::Writable { conn, queued }, out);
            }
            Input::Closed { conn, reason } => self.hand(now, conn.0, Input::Closed { conn, reason }, out),
            Input::Tick => {
                for session in self.sessions.keys().copied().collect::<Vec<_>>() {
                    self.hand(now, session, Input::Tick, out);
                }
            }
            Input::Host { .. } | Input::Looked { .. } => {}
        }
        self.give_up_wishes(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let sessions = self.sessions.values().filter_map(|session| session.client.deadline());
        sessions.chain(self.wishes.iter().filter_map(|wish| wish.deadline)).min()
    }
}

/// Separates the numbers of the tool's own calls from those of the program.
const OWN_CALLS: u64 = 1 << 63;

/// Makes the delivery numbers of several sessions distinct.
fn outer(session: u64, id: DeliveryId) -> DeliveryId {
    match id.0 >> SESSION_SHIFT {
        0 => DeliveryId(session << SESSION_SHIFT | id.0),
        // Output whose server needs no report.
        _ => id,
    }
}

fn inner(id: DeliveryId) -> (u64, DeliveryId) {
    (id.0 >> SESSION_SHIFT, DeliveryId(id.0 & ((1 << SESSION_SHIFT) - 1)))
}

/// A tool that attaches a million times has raised less than four billion events each time.
const SESSION_SHIFT: u32 = 40;
