//! Attach: one more server, from the connection to the tool's place among its servers.

use std::time::Duration;

use phalanx_spec::Rank;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::hello::{Flavor, SECRET};
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Info, Nspace, ProcId};

use super::{Attached, AttachedServer, Out, Own, Session, Tool, ToolReturn};
use crate::client::{Client, ClientCall, ClientConfig, ClientReturn, InitError, Introduction};
use crate::machine::{CallId, Output, Time};

impl Tool {
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(super) fn on_attach(
        &mut self,
        now: Time,
        id: CallId,
        uri: ServerUri,
        dialect: Dialect,
        patience: Duration,
        primary: bool,
        secret: Option<String>,
        out: &mut Out,
    ) {
        if self.sessions.len() >= MOST_SESSIONS {
            self.forget_lost();
        }
        if self.sessions.len() >= MOST_SESSIONS {
            let full = Err(InitError::TooManyServers);
            return out.push(Output::Return { id, result: ToolReturn::Attached(full) });
        }
        let config = self.client_config(Some(uri.clone()), dialect, patience);
        let mut info = self.config.info.clone();
        info.extend(secret.map(|secret| Info::new(SECRET, secret)));
        let tool = Introduction::Tool { flavor: self.flavor(), gid: self.config.gid, info };
        let client = Client::of_tool(config, tool, self.store.clone()).within(self.outer);
        let session = self.open(client, Some(uri));
        self.make_call(now, session, ClientCall::Init, Own::Attach { session, call: id, primary }, out);
    }

    pub(super) fn on_alone(&mut self, now: Time, id: CallId, out: &mut Out) {
        let config = self.client_config(None, DIALECT, Duration::ZERO);
        let tool = Introduction::Client;
        let session = self.open(Client::of_tool(config, tool, self.store.clone()).within(self.outer), None);
        let purpose = Own::Attach { session, call: id, primary: false };
        self.make_call(now, session, ClientCall::Init, purpose, out);
    }

    fn open(&mut self, client: Client, uri: Option<ServerUri>) -> u64 {
        self.last_session += 1;
        self.sessions.insert(self.last_session, Session { client, uri, up: false });
        self.last_session
    }

    pub(super) fn on_attached(
        &mut self,
        now: Time,
        number: u64,
        call: CallId,
        primary: bool,
        result: ClientReturn,
        out: &mut Out,
    ) {
        let result = match (result, self.sessions.get_mut(&number)) {
            (ClientReturn::Init(Ok(())), Some(session)) => {
                session.up = true;
                let client = &session.client;
                let server = session.uri.is_some().then(|| client.server().cloned()).flatten();
                Ok(Attached { me: client.proc().clone(), server, store: client.store() })
            }
            (ClientReturn::Init(Err(error)), _) => Err(error),
            _ => Err(InitError::TurnedAway),
        };
        match &result {
            Ok(attached) => {
                // What the first server has said is true for all.
                self.config.proc = Some(attached.me.clone());
                self.store = Some(attached.store.clone());
                self.tell_handlers(now, number, out);
                if primary || !self.has_servers_but(number) {
                    self.primary = Some(number);
                }
            }
            Err(_) => drop(self.sessions.remove(&number)),
        }
        out.push(Output::Return { id: call, result: ToolReturn::Attached(result) });
        self.grant_wishes(out);
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

    /// Drops what stands for servers that are gone, the primary one apart.
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
/// Servers that a tool may have at once, those included that it has lost and not yet forgotten.
const MOST_SESSIONS: usize = 256;
