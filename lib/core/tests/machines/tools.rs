//! A tool and several servers, all in memory: names, the primary server, losses, waits.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use phalanx_core::host::{ClientFinalized, ClientLost, ToolRequest};
use phalanx_core::{
    Attempt, CallId, ClientCall, ClientDelivery, ClientReturn, CloseReason, ConnId, DeliveryId, HandlerId,
    HostOp, HostReply, InitError, Input, Machine, Outbox, Output, PeerCred, Server, ServerCall, ServerConfig,
    Time, Tool, ToolCall, ToolConfig, ToolReturn, Verdict,
};
use phalanx_spec::{Range, Rank, Status, keys};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Info, Nspace, ProcId, Query};

const UID: u32 = 1000;
const V41: Dialect = Dialect {
    format: Format { generation: Generation::V41, described: false },
    release: Release::new(5, 0, 11),
};

fn proc(nspace: &str) -> ProcId {
    ProcId::new(&Nspace::new(nspace).unwrap(), Rank(0))
}

/// Server `srv-N` listens at port N; connections have the tool's numbers.
struct World {
    tool: Tool,
    servers: BTreeMap<u16, Server>,
    conns: BTreeMap<ConnId, u16>,
    now: Time,
    calls: u64,
    returned: BTreeMap<CallId, ToolReturn>,
    delivered: Vec<(DeliveryId, HandlerId, Status)>,
    /// Hosts leave queries unanswered.
    silent: bool,
    /// A server that accepts connections and never answers.
    mute: Option<u16>,
    /// Processes that were reported to hosts as lost.
    lost: Vec<ProcId>,
    /// The namespace of tools that connect without a name.
    given: &'static str,
}

impl World {
    fn new(proc: Option<ProcId>, servers: impl IntoIterator<Item = u16>) -> World {
        let config = ToolConfig {
            proc,
            launcher: false,
            started: false,
            credential: Credential::Native { uid: UID, gid: UID },
            uid: UID,
            gid: UID,
            hostname: "host".into(),
            info: Vec::new(),
        };
        let server = |port: u16| {
            let (identity, address) =
                (self::proc(&format!("srv-{port}")), format!("tcp4://127.0.0.1:{port}"));
            let config = ServerConfig::new(identity, "host".to_owned(), address, UID, [0; 32]);
            (port, Server::new(config))
        };
        World {
            tool: Tool::new(config),
            servers: servers.into_iter().map(server).collect(),
            conns: BTreeMap::new(),
            now: Time(1),
            calls: 0,
            returned: BTreeMap::new(),
            delivered: Vec::new(),
            silent: false,
            mute: None,
            lost: Vec::new(),
            given: "given",
        }
    }

    fn call(&mut self, call: ToolCall) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.input(Input::Call { id, call });
        id
    }

    fn input(&mut self, input: Input<'_, ToolCall>) {
        let mut out = Outbox::default();
        self.tool.handle(self.now, input, &mut out);
        let mut todo: VecDeque<Output<ToolReturn, ClientDelivery>> = VecDeque::new();
        let drain = |out: &mut Outbox<_, _>, todo: &mut VecDeque<_>| {
            while let Some(output) = out.pop() {
                todo.push_back(output);
            }
        };
        drain(&mut out, &mut todo);
        while let Some(output) = todo.pop_front() {
            match output {
                Output::Connect { conn, address } => {
                    let port = address.rsplit(':').next().unwrap().parse().unwrap();
                    if self.servers.contains_key(&port) {
                        self.conns.insert(conn, port);
                        let peer = Some(PeerCred { uid: UID, gid: UID, pid: None });
                        let answers = self.serve(conn, Input::Opened { conn, peer });
                        assert!(answers.is_empty());
                        self.tool.handle(self.now, Input::Opened { conn, peer: None }, &mut out);
                    } else {
                        let reason = CloseReason::Error;
                        self.tool.handle(self.now, Input::Closed { conn, reason }, &mut out);
                    }
                }
                Output::Send { conn, frame } => {
                    for answer in self.serve(conn, Input::Bytes { conn, data: &frame }) {
                        match answer {
                            Some(data) => {
                                self.tool.handle(self.now, Input::Bytes { conn, data: &data }, &mut out);
                            }
                            None => {
                                let reason = CloseReason::Eof;
                                self.tool.handle(self.now, Input::Closed { conn, reason }, &mut out);
                            }
                        }
                    }
                }
                Output::Close { conn } => {
                    self.serve(conn, Input::Closed { conn, reason: CloseReason::Eof });
                }
                Output::Return { id, result } => drop(self.returned.insert(id, result)),
                Output::Deliver { id, to, what: ClientDelivery::Event { event, .. } } => {
                    self.delivered.push((id, to, event.code));
                }
                other => panic!("{other:?}"),
            }
            drain(&mut out, &mut todo);
        }
    }

    /// What the server sends back on this connection; `None`: it closes the connection.
    fn serve(&mut self, conn: ConnId, input: Input<'_, ServerCall>) -> Vec<Option<Vec<u8>>> {
        let port = self.conns.get(&conn).filter(|port| Some(**port) != self.mute);
        let Some(server) = port.and_then(|port| self.servers.get_mut(port)) else {
            return Vec::new();
        };
        let (mut out, mut back) = (Outbox::default(), Vec::new());
        server.handle(self.now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Send { frame, .. } => back.push(Some(frame)),
                Output::Close { .. } => back.push(None),
                Output::CallHost { call, op } => {
                    let reply = match op {
                        HostOp::ToolConnected(ToolRequest { claims, .. }) => {
                            HostReply::ToolAdmitted(Ok(claims.unwrap_or_else(|| proc(self.given))))
                        }
                        HostOp::Query(_) if self.silent => continue,
                        HostOp::Query(_) => HostReply::Infos(Status::SUCCESS, vec![Info::new("k", true)]),
                        HostOp::ClientLost(ClientLost { proc, .. })
                        | HostOp::ClientFinalized(ClientFinalized { proc, .. }) => {
                            self.lost.push(proc);
                            HostReply::Done(Status::SUCCESS)
                        }
                        _ => HostReply::Done(Status::SUCCESS),
                    };
                    server.handle(self.now, Input::Host { call, reply }, &mut out);
                }
                Output::Return { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        back
    }

    fn attach(&mut self, port: u16, primary: bool) -> Result<ProcId, InitError> {
        let asked = self.ask(port);
        self.asked(asked).expect("an answer")?;
        self.take(port, primary)
    }

    /// The attempt has the number of the port.
    fn ask(&mut self, port: u16) -> CallId {
        self.ask_former(&format!("srv-{port}.0"), port)
    }

    /// Asks the server at an address that it once had.
    fn ask_former(&mut self, former: &str, port: u16) -> CallId {
        let uri = ServerUri::parse(&format!("{former};tcp4://127.0.0.1:{port}")).unwrap();
        let (attempt, patience) = (Attempt(port.into()), Duration::from_secs(30));
        self.call(ToolCall::Ask { attempt, uri, dialect: V41, patience, secret: None })
    }

    fn asked(&mut self, id: CallId) -> Option<Result<(), InitError>> {
        match self.returned.remove(&id)? {
            ToolReturn::Asked(result) => Some(result),
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, port: u16, primary: bool) -> Result<ProcId, InitError> {
        let id = self.call(ToolCall::Take { attempt: Attempt(port.into()), primary });
        match self.returned.remove(&id).expect("an answer") {
            ToolReturn::Attached(result) => result.map(|attached| attached.me),
            other => panic!("{other:?}"),
        }
    }

    fn servers(&mut self) -> Vec<String> {
        let id = self.call(ToolCall::Servers);
        let Some(ToolReturn::Servers(servers)) = self.returned.remove(&id) else { panic!("no list") };
        servers.into_iter().map(|it| it.server.nspace.to_string()).collect()
    }

    fn done(&mut self, call: ToolCall) -> Status {
        let id = self.call(call);
        self.status_of(id).expect("an answer")
    }

    fn status_of(&mut self, id: CallId) -> Option<Status> {
        match self.returned.remove(&id)? {
            ToolReturn::Done(status) | ToolReturn::Client(ClientReturn::Done(status)) => Some(status),
            ToolReturn::Client(ClientReturn::Infos(status, _)) => Some(status),
            other => panic!("{other:?}"),
        }
    }

    fn query(&mut self) -> Status {
        let queries = vec![Query { keys: vec!["k".into()], qualifiers: Vec::new() }];
        self.done(ToolCall::Client(ClientCall::Query(Queries { queries })))
    }

    /// The server's process dies.
    fn kill(&mut self, port: u16) {
        self.servers.remove(&port);
        let conns: Vec<_> = self.conns.iter().filter(|(_, p)| **p == port).map(|(c, _)| *c).collect();
        for conn in conns {
            self.conns.remove(&conn);
            self.input(Input::Closed { conn, reason: CloseReason::Eof });
        }
    }
}

fn set(server: &str, wait: bool, timeout: Option<Duration>) -> ToolCall {
    ToolCall::SetServer { server: proc(server), wait, timeout }
}

fn register(handler: u64, code: Status) -> ToolCall {
    let (handler, codes, info) = (HandlerId(handler), vec![code], Vec::new());
    ToolCall::Client(ClientCall::RegisterEvents { handler, codes, info })
}

#[test]
fn a_name_that_the_first_server_gives_stays_the_tools_own() {
    let mut world = World::new(None, [1, 2]);
    assert_eq!(world.attach(1, false), Ok(proc("given")));
    world.given = "other";
    assert_eq!(world.attach(2, false), Ok(proc("given")));
    assert_eq!(world.servers(), ["srv-1", "srv-2"]);
}

#[test]
fn a_server_at_the_address_of_another_one_is_not_taken_for_it() {
    let mut world = World::new(None, [1, 2]);
    for former in ["srv-2.0", "gone.0", "srv-1.1"] {
        let asked = world.ask_former(former, 1);
        assert_eq!(world.asked(asked), Some(Err(InitError::WrongServer { got: proc("srv-1") })));
    }
    assert!(world.servers().is_empty());
    assert_eq!(world.attach(1, false), Ok(proc("given")), "it has taken no name from there");
}

#[test]
fn of_servers_that_are_asked_side_by_side_one_is_taken() {
    let mut world = World::new(None, [1, 2, 3]);
    world.mute = Some(2);
    let asked: Vec<CallId> = (1..=3).map(|port| world.ask(port)).collect();
    assert_eq!(world.asked(asked[0]), Some(Ok(())));
    assert_eq!(world.asked(asked[1]), None);
    assert_eq!(world.asked(asked[2]), Some(Ok(())));
    assert_eq!(world.servers(), [""; 0]);
    assert_eq!(world.query(), Status::ERR_INIT);
    assert_eq!(world.take(3, false), Ok(proc("given")));
    for port in 1..=2 {
        assert_eq!(world.done(ToolCall::Forgo(Attempt(port))), Status::SUCCESS);
    }
    assert_eq!(world.asked(asked[1]), Some(Err(InitError::TimedOut)));
    assert_eq!(world.lost, [proc("given")], "the one that had let the tool in was told goodbye");
    assert_eq!(world.done(ToolCall::Forgo(Attempt(3))), Status::ERR_NOT_FOUND);
    assert_eq!(world.take(1, false), Err(InitError::TurnedAway));
    assert_eq!(world.servers(), ["srv-3"]);
    assert_eq!(world.query(), Status::SUCCESS);
}

#[test]
fn server_that_dies_after_welcome_is_not_used() {
    let mut world = World::new(None, [1, 2]);
    let asked = world.ask(1);
    assert_eq!(world.asked(asked), Some(Ok(())));
    world.kill(1);
    assert_eq!(world.take(1, false), Err(InitError::TurnedAway));
    assert_eq!(world.attach(2, false), Ok(proc("given")));
    assert_eq!(world.servers(), ["srv-2"]);
}

#[test]
fn the_primary_server_comes_first_and_gets_the_calls() {
    let mut world = World::new(Some(proc("mine")), [1, 2, 3]);
    for port in 1..=2 {
        assert_eq!(world.attach(port, false), Ok(proc("mine")));
    }
    assert_eq!(world.attach(3, true), Ok(proc("mine")));
    assert_eq!(world.servers(), ["srv-3", "srv-1", "srv-2"]);
    assert_eq!(world.done(set("srv-2", false, None)), Status::SUCCESS);
    assert_eq!(world.servers(), ["srv-2", "srv-1", "srv-3"]);
    assert_eq!(world.done(set("srv-9", false, None)), Status::ERR_UNREACH);
    assert_eq!(world.done(ToolCall::Detach(proc("srv-1"))), Status::SUCCESS);
    assert_eq!(world.lost, [proc("mine")]);
    assert_eq!(world.servers(), ["srv-2", "srv-3"]);
    assert_eq!(world.done(ToolCall::Detach(proc("srv-1"))), Status::ERR_NOT_FOUND);
}

#[test]
fn tool_without_primary_server_must_name_another() {
    let mut world = World::new(None, [1, 2]);
    world.attach(1, false).unwrap();
    world.attach(2, false).unwrap();
    assert_eq!(world.done(register(7, Status::ERR_LOST_CONNECTION)), Status::SUCCESS);
    world.silent = true;
    let queries = vec![Query { keys: vec!["k".into()], qualifiers: Vec::new() }];
    let pending = world.call(ToolCall::Client(ClientCall::Query(Queries { queries })));
    assert_eq!(world.status_of(pending), None);
    assert!(world.tool.explain().iter().any(|waiting| waiting.operation == "query"));
    world.kill(1);
    assert_eq!(world.status_of(pending), Some(Status::ERR_LOST_CONNECTION));
    assert_eq!(
        world.delivered.pop().map(|(_, to, code)| (to.0, code)),
        Some((7, Status::ERR_LOST_CONNECTION))
    );
    world.silent = false;
    assert_eq!(world.query(), Status::ERR_UNREACH);
    assert_eq!(world.servers(), ["srv-2"]);
    assert_eq!(world.done(set("srv-2", false, None)), Status::SUCCESS);
    assert_eq!(world.query(), Status::SUCCESS);
    // The same when it leaves the primary server itself.
    assert_eq!(world.done(ToolCall::Detach(proc("srv-2"))), Status::SUCCESS);
    assert_eq!(world.query(), Status::ERR_UNREACH);
}

#[test]
fn tool_without_servers_makes_the_next_one_primary() {
    let mut world = World::new(None, [1, 2]);
    world.attach(1, false).unwrap();
    world.kill(1);
    world.attach(2, false).unwrap();
    assert_eq!(world.query(), Status::SUCCESS);
}

#[test]
fn handlers_serve_all_servers_of_a_tool() {
    let mut world = World::new(None, [1, 2]);
    world.attach(1, false).unwrap();
    assert_eq!(world.done(register(5, Status(-3001))), Status::SUCCESS);
    world.attach(2, false).unwrap();
    for port in [1, 2] {
        let event = phalanx_core::Event {
            code: Status(-3001),
            source: proc("elsewhere"),
            range: Range::SESSION,
            info: vec![Info::new(keys::EVENT_NON_DEFAULT, true)],
        };
        let (mut out, id) = (Outbox::default(), CallId(0));
        let server = world.servers.get_mut(&port).unwrap();
        server.handle(world.now, Input::Call { id, call: ServerCall::Notify(event) }, &mut out);
        let conn = *world.conns.iter().find(|(_, p)| **p == port).unwrap().0;
        while let Some(output) = out.pop() {
            if let Output::Send { frame, .. } = output {
                world.input(Input::Bytes { conn, data: &frame });
            }
        }
    }
    let got: Vec<_> = world.delivered.iter().map(|(_, to, code)| (to.0, code.0)).collect();
    assert_eq!(got, [(5, -3001), (5, -3001)]);
    let ids: Vec<_> = world.delivered.iter().map(|(id, ..)| *id).collect();
    assert_ne!(ids[0], ids[1], "two deliveries are told apart");
    for delivery in ids {
        let verdict = Verdict { status: Status::EVENT_ACTION_COMPLETE, results: Vec::new() };
        world.call(ToolCall::Client(ClientCall::Handled { delivery, verdict }));
    }
    assert_eq!(world.tool.explain(), []);
    let gone = ToolCall::Client(ClientCall::DeregisterEvents { handler: HandlerId(5) });
    assert_eq!(world.done(gone), Status::SUCCESS);
}

#[test]
fn a_server_that_is_on_its_way_can_be_waited_for() {
    let mut world = World::new(None, [1, 2]);
    world.attach(1, false).unwrap();
    let wish = world.call(set("srv-2", true, Some(Duration::from_secs(9))));
    let late = world.call(set("srv-7", true, Some(Duration::from_secs(5))));
    assert_eq!((world.status_of(wish), world.status_of(late)), (None, None));
    let waiting = world.tool.explain();
    assert_eq!(waiting.iter().map(|w| &*w.operation).collect::<Vec<_>>(), ["set server"; 2]);
    world.attach(2, false).unwrap();
    assert_eq!(world.status_of(wish), Some(Status::SUCCESS));
    assert_eq!(world.servers(), ["srv-2", "srv-1"]);
    world.now = world.tool.deadline().expect("a deadline");
    world.input(Input::Tick);
    assert_eq!(world.status_of(late), Some(Status::ERR_TIMEOUT));
}

#[test]
fn refused_tools_learn_why_and_go_on() {
    let mut world = World::new(None, [1]);
    assert_eq!(world.attach(9, false), Err(InitError::Unreachable));
    world.attach(1, false).unwrap();
    assert_eq!(world.attach(1, false), Err(InitError::Refused(Status::ERR_EXISTS)));
    assert_eq!(world.servers(), ["srv-1"]);
    assert_eq!(world.query(), Status::SUCCESS);
}

#[test]
fn alone_a_tool_has_what_it_needs_of_itself() {
    let mut world = World::new(Some(proc("lone")), [1]);
    let id = world.call(ToolCall::Alone);
    let Some(ToolReturn::Attached(Ok(attached))) = world.returned.remove(&id) else { panic!("not let go") };
    assert_eq!((attached.me, attached.server), (proc("lone"), None));
    assert_eq!(world.query(), Status::ERR_UNREACH);
    assert_eq!(world.servers(), [""; 0]);
    // Later it may get a server after all.
    assert_eq!(world.attach(1, false), Ok(proc("lone")));
    assert_eq!(world.query(), Status::SUCCESS);
}

#[test]
fn finalize_says_goodbye_to_everybody() {
    let mut world = World::new(None, [1, 2]);
    world.attach(1, false).unwrap();
    world.attach(2, false).unwrap();
    let goodbye = || ToolCall::Client(ClientCall::Finalize { info: Vec::new() });
    assert_eq!(world.done(goodbye()), Status::SUCCESS);
    assert_eq!(world.lost, [proc("given"), proc("given")]);
    assert_eq!(world.done(goodbye()), Status::ERR_INIT);
    assert_eq!(world.query(), Status::ERR_INIT);
}
