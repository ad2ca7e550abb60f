//! Attach: adds a server, from the connection to its place among the tool's servers.
//!
//! Several may be asked side by side; the caller takes one of those that have admitted the tool, and forgoes the others. A
//! server's answer takes effect only when the server is taken, so that the tool gets its name from the right one.

use std::time::Duration;

use phalanx_spec::{Rank, Status};
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::hello::{Flavor, SECRET};
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Info, Nspace, ProcId};

use super::{Attached, AttachedServer, Attempt, Out, Own, Session, Tool, ToolReturn};
use crate::client::{Client, ClientCall, ClientConfig, ClientReturn, InitError, Introduction};
use crate::machine::{CallId, ConnId, Output, Time};

impl Tool {
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(super) fn on_ask(
        &mut self,
        now: Time,
        id: CallId,
        attempt: Attempt,
        uri: ServerUri,
        dialect: Dialect,
        patience: Duration,
        secret: Option<String>,
        out: &mut Out,
    ) {
        if self.sessions.len() >= MOST_SESSIONS {
            self.forget_lost();
        }
        if self.sessions.len() >= MOST_SESSIONS {
            let full = Err(InitError::TooManyServers);
            return out.push(Output::Return { id, result: ToolReturn::Asked(full) });
        }
        let config = self.client_config(Some(uri.clone()), dialect, patience);
        let mut info = self.config.info.clone();
        info.extend(secret.map(|secret| Info::new(SECRET, secret)));
        let tool = Introduction::Tool { flavor: self.flavor(), gid: self.config.gid, info };
        let client = Client::of_tool(config, tool, self.store.clone()).within(self.outer);
        let session = self.open(client, Some(uri), Some(attempt));
        self.make_call(now, session, ClientCall::Init, Own::Ask { session, call: id }, out);
    }

    pub(super) fn on_asked(&mut self, number: u64, call: CallId, result: ClientReturn, out: &mut Out) {
        let result = match result {
            ClientReturn::Init(result) => result,
            _ => Err(InitError::TurnedAway),
        };
        if result.is_err() {
            self.sessions.remove(&number);
        }
        out.push(Output::Return { id: call, result: ToolReturn::Asked(result) });
    }

    pub(super) fn on_take(&mut self, now: Time, id: CallId, attempt: Attempt, primary: bool, out: &mut Out) {
        let result = match self.asked_as(attempt) {
            // The connection may have ended already.
            Some(number) => self.take(now, number, primary, out).ok_or(InitError::TurnedAway),
            None => Err(InitError::TurnedAway),
        };
        out.push(Output::Return { id, result: ToolReturn::Attached(result) });
        self.grant_wishes(out);
    }

    pub(super) fn on_forgo(&mut self, now: Time, id: CallId, attempt: Attempt, out: &mut Out) {
        let Some(session) = self.asked_as(attempt) else {
            return out.push(Output::Return { id, result: ToolReturn::Done(Status::ERR_NOT_FOUND) });
        };
        let is_of = |own: &Own| matches!(own, Own::Ask { session: of, .. } if *of == session);
        match self.own_calls.iter().find(|(_, own)| is_of(own)).map(|(asked, _)| *asked) {
            Some(asked) => {
                out.push(Output::Close { conn: ConnId(session) });
                let result = ClientReturn::Init(Err(InitError::TimedOut));
                self.on_return(now, asked, result, out);
            }
            None => {
                let goodbye = ClientCall::Finalize { info: Vec::new() };
                self.make_call(now, session, goodbye, Own::Forgo { session }, out);
            }
        }
        out.push(Output::Return { id, result: ToolReturn::Done(Status::SUCCESS) });
    }

    pub(super) fn on_alone(&mut self, now: Time, id: CallId, out: &mut Out) {
        let config = self.client_config(None, DIALECT, Duration::ZERO);
        let client = Client::of_tool(config, Introduction::Client, self.store.clone()).within(self.outer);
        let session = self.open(client, None, None);
        self.make_call(now, session, ClientCall::Init, Own::Alone { session, call: id }, out);
    }

    pub(super) fn on_begun_alone(
        &mut self,
        now: Time,
        number: u64,
        call: CallId,
        result: &ClientReturn,
        out: &mut Out,
    ) {
        let begun = *result == ClientReturn::Init(Ok(()));
        let attached = if begun { self.take(now, number, false, out) } else { None };
        let result = attached.ok_or(InitError::TurnedAway);
        out.push(Output::Return { id: call, result: ToolReturn::Attached(result) });
    }

    fn open(&mut self, client: Client, uri: Option<ServerUri>, attempt: Option<Attempt>) -> u64 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, Session { client, uri, attempt, up: false });
        self.last_session
    }

    fn asked_as(&self, attempt: Attempt) -> Option<u64> {
        let mut asked = self.sessions.iter().filter(|(_, session)| session.attempt == Some(attempt));
        asked.next().map(|(number, _)| *number)
    }

    /// None: the connection has ended meanwhile.
    fn take(&mut self, now: Time, number: u64, primary: bool, out: &mut Out) -> Option<Attached> {
        let session = self.sessions.get_mut(&number)?;
        if !session.client.is_ready() {
            self.sessions.remove(&number);
            return None;
        }
        (session.up, session.attempt) = (true, None);
        let client = &session.client;
        let server = session.uri.is_some().then(|| client.server().cloned()).flatten();
        let attached = Attached { me: client.proc().clone(), server, store: client.store() };
        // The name and store from the first server hold for all.
        self.config.proc = Some(attached.me.clone());
        self.store = Some(attached.store.clone());
        self.tell_handlers(now, number, out);
        if primary || !self.has_servers_but(number) {
            self.primary = Some(number);
        }
        Some(attached)
    }

    /// Whether the tool is connected to another server than this one.
    fn has_servers_but(&self, number: u64) -> bool {
        self.sessions.iter().any(|(other, session)| *other != number && session.is_connected())
    }

    pub(super) fn servers(&self) -> Vec<AttachedServer> {
        let primary = self.primary.iter();
        let others = self.sessions.keys().filter(|number| Some(**number) != self.primary);
        let connected = primary.chain(others).filter_map(|number| {
            let session = self.sessions.get(number).filter(|session| session.is_connected())?;
            let (server, uri) = (session.client.server()?.clone(), session.uri.clone()?);
            Some(AttachedServer { server, uri })
        });
        connected.collect()
    }

    fn flavor(&self) -> Flavor {
        let (launcher, named) = (self.config.launcher, self.config.proc.is_some());
        match (launcher, self.config.started, named) {
            (false, true, _) => Flavor::ClientTool,
            (true, true, _) => Flavor::ClientLauncher,
            (false, false, true) => Flavor::NamedTool,
            (true, false, true) => Flavor::NamedLauncher,
            (false, false, false) => Flavor::Tool,
            (true, false, false) => Flavor::Launcher,
        }
    }

    fn client_config(&self, server: Option<ServerUri>, dialect: Dialect, patience: Duration) -> ClientConfig {
        let nameless = || ProcId { nspace: Nspace::none(), rank: Rank::UNDEF };
        ClientConfig {
            proc: self.config.proc.clone().unwrap_or_else(nameless),
            server,
            credential: self.config.credential.clone(),
            uid: self.config.uid,
            pid: None,
            hostname: self.config.hostname.clone(),
            dialect,
            patience,
            files: None,
        }
    }

    /// Drops the sessions of lost servers, except the primary one's.
    fn forget_lost(&mut self) {
        let primary = self.primary;
        self.sessions.retain(|number, session| Some(*number) == primary || !session.client.is_lost());
    }
}

impl Session {
    pub(super) fn is_connected(&self) -> bool {
        self.up && self.uri.is_some() && !self.client.is_lost()
    }
}

const DIALECT: Dialect = Dialect {
    format: Format { generation: Generation::V41, described: false },
    release: Release::new(5, 0, 11),
};
/// Maximum number of a tool's servers, including lost ones that are not yet dropped.
const MOST_SESSIONS: usize = 256;
