//! A client of a server that sends anything, in any order, while the program makes every possible call.
//!
//! When the connection has ended, every call must have returned exactly once.

use std::time::Duration;

use phalanx_core::{
    CallId, Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn, CloseReason, ConnId, DeliveryId,
    HandlerId, Input, LookupRequest, Machine, Outbox, Output, Realm, Time, Verdict,
};
use phalanx_spec::{IofChannel, Range, Rank, Scope, Status};
use phalanx_wire::cmd::connect::Connect;
use phalanx_wire::cmd::control::JobControl;
use phalanx_wire::cmd::credential::GetCredential;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::cmd::group::Construct;
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::encode_frame;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Blob, Info, Key, Kval, Nspace, ProcId, Query, Value};

use crate::script::{MOST_STEPS, Script};

/// The first byte selects the server's release.
pub(crate) fn session(input: &[u8]) {
    let mut script = Script::new(input);
    let Some(release) = script.byte() else { return };
    let mut world = World::new(release);
    world.call(ClientCall::Init);
    for _ in 0..MOST_STEPS {
        let Some(what) = script.byte() else { break };
        world.step(what, &mut script);
    }
    world.end();
}

const SERVER: ConnId = ConnId(0);

struct World {
    client: Client,
    now: Time,
    out: Outbox<ClientReturn, ClientDelivery>,
    connected: bool,
    /// Tags of requests, for replies.
    tags: Vec<u32>,
    delivered: Vec<DeliveryId>,
    /// By number: whether the call has returned.
    calls: Vec<bool>,
}

impl World {
    fn new(release: u8) -> World {
        let client = Client::new(ClientConfig {
            proc: proc(0),
            server: ServerUri::parse("px.0;tcp4://127.0.0.1:4711").ok(),
            credential: Credential::Native { uid: 1000, gid: 1000 },
            uid: 1000,
            pid: None,
            hostname: "node0".into(),
            dialect: Dialect {
                format: Format { generation: Generation::V41, described: release & 8 != 0 },
                release: Release::new(4 + u16::from(release % 3), 0, 0),
            },
            patience: Duration::from_secs(10),
            files: None,
        });
        World {
            client,
            now: Time(0),
            out: Outbox::default(),
            connected: false,
            tags: Vec::new(),
            delivered: Vec::new(),
            calls: Vec::new(),
        }
    }

    fn step(&mut self, what: u8, script: &mut Script<'_>) {
        match what & 15 {
            0..=4 => {
                // Most replies answer the latest request.
                let back = usize::from(what >> 4);
                let tag = self.tags.iter().rev().nth(back).copied().unwrap_or(0);
                self.bytes(&encode_frame(0, tag, script.piece()));
            }
            5 => self.bytes(&encode_frame(0, u32::from(what >> 4), script.piece())),
            6 | 7 => self.bytes(script.piece()),
            8..=11 => {
                let call = call(script.byte().unwrap_or(0), what >> 4);
                self.call(call);
            }
            12 => {
                if let Some(delivery) = self.delivered.pop() {
                    let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
                    self.call(ClientCall::Handled { delivery, verdict });
                }
            }
            13 => {
                if let Some(delivery) = self.delivered.pop() {
                    self.call(ClientCall::Taken { delivery, held: usize::from(what >> 4) });
                }
            }
            14 => {
                self.now = self.now.after(Duration::from_secs(u64::from(what >> 4)));
                self.input(Input::Tick);
            }
            _ => self.close(CloseReason::Eof),
        }
    }

    fn call(&mut self, call: ClientCall) {
        let quiet = matches!(call, ClientCall::Handled { .. } | ClientCall::Taken { .. });
        self.calls.push(quiet);
        let id = CallId(self.calls.len() as u64 - 1);
        self.input(Input::Call { id, call });
    }

    fn bytes(&mut self, data: &[u8]) {
        if self.connected {
            self.input(Input::Bytes { conn: SERVER, data });
        }
    }

    fn close(&mut self, reason: CloseReason) {
        if std::mem::replace(&mut self.connected, false) {
            self.input(Input::Closed { conn: SERVER, reason });
        }
    }

    fn input(&mut self, input: Input<'_, ClientCall>) {
        self.client.handle(self.now, input, &mut self.out);
        while let Some(output) = self.out.pop() {
            match output {
                Output::Connect { .. } => {
                    self.connected = true;
                    self.client.handle(self.now, Input::Opened { conn: SERVER, peer: None }, &mut self.out);
                }
                Output::Send { frame, .. } => {
                    let tag = frame.get(4..8).and_then(|tag| tag.try_into().ok());
                    self.tags.extend(tag.map(u32::from_be_bytes));
                }
                Output::Close { .. } if std::mem::replace(&mut self.connected, false) => {
                    let reason = CloseReason::Local;
                    self.client.handle(self.now, Input::Closed { conn: SERVER, reason }, &mut self.out);
                }
                Output::Close { .. } => {}
                Output::Return { id, .. } => {
                    let answered = &mut self.calls[id.0 as usize];
                    assert!(!std::mem::replace(answered, true), "answered twice");
                }
                Output::Deliver { id, .. } => self.delivered.push(id),
                Output::CallHost { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => {
                    panic!("a client does not")
                }
            }
        }
    }

    fn end(mut self) {
        self.close(CloseReason::Error);
        while let Some(delivery) = self.delivered.pop() {
            let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
            self.call(ClientCall::Handled { delivery, verdict });
        }
        // Calls that wait for other processes end by their deadlines.
        for _ in 0..100 {
            let Some(next) = self.client.deadline() else { break };
            self.now = next.max(self.now);
            self.input(Input::Tick);
        }
        let open: Vec<usize> =
            self.calls.iter().enumerate().filter(|(_, done)| !**done).map(|(id, _)| id).collect();
        assert!(open.is_empty(), "calls {open:?} are not answered: {:?}", self.client.explain());
    }
}

fn call(which: u8, detail: u8) -> ClientCall {
    let all = || vec![ProcId::new(&name("job"), Rank::WILDCARD)];
    let info = Vec::new;
    match which % 24 {
        0 => ClientCall::Fence(Fence { procs: Vec::new(), info: info() }),
        1 => ClientCall::Get {
            request: LookupRequest {
                proc: proc(u32::from(detail % 4)),
                key: (detail < 12).then(|| key("some.key")),
                realm: Realm::Unsaid,
                optional: false,
                refresh: detail & 4 != 0,
                scoped: false,
                qualified: None,
            },
            info: info(),
        },
        2 => ClientCall::Publish(Publish { uid: 0, info: vec![Info::new("published", 1u32)] }),
        3 => ClientCall::Lookup(Published { uid: 0, keys: vec![key("published")], info: info() }),
        4 => ClientCall::Unpublish(Published { uid: 0, keys: Vec::new(), info: info() }),
        5 => ClientCall::Notify { code: Status(-2), range: Range(detail), info: info() },
        6 => ClientCall::RegisterEvents {
            handler: HandlerId(u64::from(detail)),
            codes: Vec::new(),
            info: info(),
        },
        7 => ClientCall::DeregisterEvents { handler: HandlerId(u64::from(detail)) },
        8 => ClientCall::Query(Queries {
            queries: vec![Query { keys: vec!["pmix.query.something".into()], qualifiers: info() }],
        }),
        9 => ClientCall::Log(Log {
            timestamp: 0,
            data: vec![Info::new("pmix.log.stderr", "text")],
            directives: info(),
        }),
        10 => ClientCall::from(JobControl { targets: Vec::new(), directives: info() }),
        11 => ClientCall::ResolvePeers { node: None, nspace: name("job") },
        12 => ClientCall::ResolveNodes { nspace: name("job") },
        13 => ClientCall::Spawn(Spawn { job: info(), apps: Vec::new() }),
        14 => ClientCall::Connect(Connect { procs: all(), info: info(), endpoints: Vec::new() }),
        15 => ClientCall::Disconnect(Connect { procs: all(), info: info(), endpoints: Vec::new() }),
        16 => ClientCall::GroupConstruct(Construct { id: "group".into(), procs: all(), info: info() }),
        17 => ClientCall::GroupDestruct { id: "group".into(), info: info() },
        18 => ClientCall::IofPull {
            handler: HandlerId(100 + u64::from(detail)),
            pull: Pull { sources: all(), channels: IofChannel::STDOUT, directives: info(), handle: 0 },
        },
        19 => ClientCall::IofDeregister { handler: HandlerId(100 + u64::from(detail)), directives: info() },
        20 => ClientCall::IofPush(Push {
            targets: all(),
            data: Blob::from(b"typed".to_vec()),
            directives: info(),
        }),
        21 => ClientCall::from(GetCredential { info: info() }),
        22 => ClientCall::Commit(vec![(
            Scope::GLOBAL,
            vec![Kval { key: key("mine"), value: Value::from(1u32) }],
        )]),
        _ => ClientCall::Finalize { info: info() },
    }
}

fn proc(rank: u32) -> ProcId {
    ProcId::new(&name("job"), Rank(rank))
}

fn name(name: &str) -> Nspace {
    Nspace::new(name).expect("a name")
}

fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}
