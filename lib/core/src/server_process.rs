//! A server's process: the server machine, and the same process as a client of it.
//!
//! The standard lets a server's process make most calls of a client: it gets, publishes, queries, registers event handlers. Its
//! requests are encoded and handled like those of any client, without a socket in between. They reach the host like any other,
//! in the name of the server; but events that the host itself raises are not passed back to it.

use std::sync::Arc;

use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;

use crate::client::{Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn};
use crate::explain::Waiting;
use crate::machine::{CloseReason, ConnId, Input, Machine, Outbox, Output, Time};
use crate::server::{OWN, Server, ServerCall, ServerConfig, ServerReturn};
use crate::store::Store;
use crate::support::OuterSupport;

/// The two machines and the messages between them.
#[derive(Debug)]
pub struct ServerProcess {
    server: Server,
    client: Client,
}

/// A call of the process to its server, or through it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerProcessCall {
    Server(ServerCall),
    Client(ClientCall),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerProcessReturn {
    Server(ServerReturn),
    Client(ClientReturn),
}

type Out = Outbox<ServerProcessReturn, ClientDelivery>;

impl ServerProcess {
    /// `gid`: the group of this process; its user is the server's owner.
    pub fn new(config: ServerConfig, gid: u32) -> ServerProcess {
        let client = Client::attached(ClientConfig {
            proc: config.identity.clone(),
            server: None,
            credential: Credential::None,
            uid: config.owner_uid,
            pid: None,
            hostname: config.hostname.clone(),
            dialect: DIALECT,
            patience: std::time::Duration::ZERO,
            files: None,
        });
        let mut server = Server::new(config);
        server.attach_own(gid, DIALECT);
        ServerProcess { server, client }
    }

    /// Adds the attributes that the library around the machines honours itself.
    pub fn within(self, outer: &'static OuterSupport) -> ServerProcess {
        ServerProcess { server: self.server.within(outer), client: self.client.within(outer) }
    }

    /// The values that this process has as a client, for lookups on other threads.
    pub fn store(&self) -> Arc<Store> {
        self.client.store()
    }

    /// Everything pending.
    pub fn explain(&self) -> Vec<Waiting> {
        // The server knows the process's own requests as well; but event handlers run at the client.
        let mut waiting = self.server.explain();
        waiting.extend(self.client.explain_handlers());
        waiting
    }

    /// Passes messages between the two until both are quiet.
    fn settle(&mut self, now: Time, mut from_server: ServerOut, mut from_client: ClientOut, out: &mut Out) {
        loop {
            if let Some(output) = from_server.pop() {
                match output {
                    Output::Send { conn: OWN, frame } => {
                        let queued = 0;
                        self.server.handle(now, Input::Writable { conn: OWN, queued }, &mut from_server);
                        self.client.handle(now, Input::Bytes { conn: OWN, data: &frame }, &mut from_client);
                    }
                    Output::Close { conn: OWN } => {
                        let reason = CloseReason::Eof;
                        self.client.handle(now, Input::Closed { conn: OWN, reason }, &mut from_client);
                    }
                    Output::Return { id, result } => {
                        out.push(Output::Return { id, result: ServerProcessReturn::Server(result) });
                    }
                    Output::Connect { conn, address } => out.push(Output::Connect { conn, address }),
                    Output::Send { conn, frame } => out.push(Output::Send { conn, frame }),
                    Output::Close { conn } => out.push(Output::Close { conn }),
                    Output::WriteFile { path, at, bytes } => out.push(Output::WriteFile { path, at, bytes }),
                    Output::RemoveFile { path } => out.push(Output::RemoveFile { path }),
                    Output::LookAt { look, path, reads } => out.push(Output::LookAt { look, path, reads }),
                    Output::CallHost { call, op } => out.push(Output::CallHost { call, op }),
                    Output::Deliver { .. } => {}
                }
            } else if let Some(output) = from_client.pop() {
                match output {
                    Output::Send { frame, .. } => {
                        self.server.handle(now, Input::Bytes { conn: OWN, data: &frame }, &mut from_server);
                    }
                    Output::Return { id, result } => {
                        out.push(Output::Return { id, result: ServerProcessReturn::Client(result) });
                    }
                    Output::Deliver { id, to, what } => out.push(Output::Deliver { id, to, what }),
                    Output::Connect { .. }
                    | Output::Close { .. }
                    | Output::WriteFile { .. }
                    | Output::RemoveFile { .. }
                    | Output::LookAt { .. }
                    | Output::CallHost { .. } => {}
                }
            } else {
                return;
            }
        }
    }
}

type ServerOut = Outbox<ServerReturn, ()>;
type ClientOut = Outbox<ClientReturn, ClientDelivery>;

impl Machine for ServerProcess {
    type Call = ServerProcessCall;
    type Return = ServerProcessReturn;
    type Delivery = ClientDelivery;

    fn handle(&mut self, now: Time, input: Input<'_, ServerProcessCall>, out: &mut Out) {
        let (mut from_server, mut from_client) = (ServerOut::default(), ClientOut::default());
        let for_server = match input {
            Input::Call { id, call: ServerProcessCall::Client(call) } => {
                self.client.handle(now, Input::Call { id, call }, &mut from_client);
                None
            }
            Input::Call { id, call: ServerProcessCall::Server(call) } => Some(Input::Call { id, call }),
            Input::Opened { conn, peer } => Some(Input::Opened { conn, peer }),
            Input::Bytes { conn, data } => Some(Input::Bytes { conn, data }),
            Input::Writable { conn, queued } => Some(Input::Writable { conn, queued }),
            Input::Closed { conn, reason } => Some(Input::Closed { conn, reason }),
            Input::Host { call, reply } => Some(Input::Host { call, reply }),
            Input::Looked { look, file } => Some(Input::Looked { look, file }),
            Input::Tick => {
                self.client.handle(now, Input::Tick, &mut from_client);
                Some(Input::Tick)
            }
        };
        if let Some(input) = for_server {
            self.server.handle(now, input, &mut from_server);
        }
        self.settle(now, from_server, from_client, out);
    }

    fn deadline(&self) -> Option<Time> {
        [self.server.deadline(), self.client.deadline()].into_iter().flatten().min()
    }

    fn is_full(&self, conn: ConnId) -> bool {
        self.server.is_full(conn)
    }
}

/// The dialect between the two.
const DIALECT: Dialect = Dialect {
    format: Format { generation: Generation::V41, described: false },
    release: Release::new(5, 0, 11),
};
