//! Sessions captured between OpenPMIx clients and servers, with our client in place of theirs.
//!
//! The client is made to ask what theirs asked, and the server's recorded bytes are its answers. Every call must end as in
//! the recorded answer. Gets that our client answers from its own store are not sent; that is the only difference allowed.

// Tests read files and may fail.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use phalanx_core::{
    CallId, Client, ClientCall, ClientConfig, ClientDelivery, ClientReturn, CloseReason, ConnId, HandlerId,
    Input, LookupRequest, Machine, Outbox, Output, Time, Verdict,
};
use phalanx_spec::{Command, Status};
use phalanx_wire::ProcId;
use phalanx_wire::cmd::iof::TELLS_TAKEN;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::{Body, Request};
use phalanx_wire::codec::{Dialect, Release};
use phalanx_wire::frame::{FIRST_REQUEST_TAG, Frame, FrameReader, HEADER_LEN, encode_frame};
use phalanx_wire::hello::{Flavor, Hello, HelloReader};
use phalanx_wire::uri::ServerUri;

#[test]
fn our_client_understands_every_answer_that_theirs_got() {
    let mut left_out = BTreeSet::new();
    let (mut sessions, mut calls) = (0, 0);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let session = Session::read(&file);
        if session.is_of_hash_client() {
            let mut replay = Replay::new(session);
            replay.run();
            sessions += 1;
            calls += replay.calls.len();
            left_out.extend(replay.left_out);
        }
    }
    assert!(sessions > 20 && calls > 250, "{sessions} sessions, {calls} calls");
    let left_out: Vec<_> = left_out.iter().map(|command| command.name().unwrap()).collect();
    assert_eq!(left_out, LEFT_OUT);
}

/// DEREGEVENTS is not answered.
const LEFT_OUT: &[&str] = &["DEREGEVENTS"];

/// Commands whose requests may differ: a get tells the server that it need not wait, 6.1 sends its put values along with a
/// connect, and 4.2 does not list the members of a group.
const LIKE_OTHERS: &[Command] = &[Command::GETNB, Command::CONNECTNB, Command::GROUP_DESTRUCT];

struct Session {
    name: String,
    /// The handshake of their client; none if the recording is of something else.
    hello: Option<Hello>,
    /// `true`: from the client.
    messages: Vec<(bool, Vec<u8>)>,
    server: Release,
    has_job_data: bool,
}

impl Session {
    fn read(file: &Path) -> Session {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let messages = text.lines().filter_map(|line| {
            let (mark, hex) = line.split_once(' ').filter(|(mark, _)| [">", "<"].contains(mark))?;
            let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
            Some((mark == ">", pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()))
        });
        let messages: Vec<(bool, Vec<u8>)> = messages.collect();
        let hello = messages.first().and_then(|(_, bytes)| HelloReader::new().feed(bytes).unwrap());
        let has_job_data = hello.as_ref().is_some_and(|hello| {
            let mut requests = messages.iter().skip(1).filter(|(from_client, _)| *from_client);
            requests.any(|(_, bytes)| {
                Request::decode(&bytes[HEADER_LEN..], hello.dialect()) == Ok(Request::JobData)
            })
        });
        let server = match name.split_once("-on-").map_or(name.as_str(), |(_, server)| server) {
            server if server.starts_with("422-") => Release::new(4, 2, 2),
            server if server.starts_with("5011-") => Release::new(5, 0, 11),
            _ => Release::new(6, 1, 1),
        };
        Session { name, hello, messages, server, has_job_data }
    }

    /// Tools have a different handshake; clients with a shared-memory store get their data there.
    fn is_of_hash_client(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| hello.flavor == Flavor::Client && hello.store == "hash")
    }
}

struct Replay {
    session: Session,
    client: Client,
    /// Their client's dialect.
    dialect: Dialect,
    /// Our tags of unanswered requests, by theirs.
    tags: BTreeMap<u32, u32>,
    /// The calls, and how they ended.
    calls: BTreeMap<u64, (Command, Option<ClientReturn>)>,
    left_out: BTreeSet<Command>,
    /// The newest request of our client.
    asked: Option<(u32, Request)>,
    now: Time,
}

impl Replay {
    fn new(session: Session) -> Replay {
        let hello = session.hello.clone().unwrap();
        let dialect = Dialect { format: hello.format, release: session.server };
        let client = Client::new(ClientConfig {
            proc: hello.proc.clone().unwrap(),
            server: Some(ServerUri::parse("server.0;tcp4://127.0.0.1:1").unwrap()),
            credential: hello.credential.clone(),
            uid: 0,
            pid: None,
            hostname: "here".into(),
            dialect,
            patience: Duration::from_secs(1),
            files: None,
        });
        Replay {
            session,
            client,
            dialect: hello.dialect(),
            tags: BTreeMap::new(),
            calls: BTreeMap::new(),
            left_out: BTreeSet::new(),
            asked: None,
            now: Time(0),
        }
    }

    fn run(&mut self) {
        let mut messages = std::mem::take(&mut self.session.messages).into_iter();
        messages.next();
        self.call(Command::REQ, ClientCall::Init);
        self.feed(Input::Opened { conn: ConnId(0), peer: None });
        let mut held = false;
        for (from_client, bytes) in messages {
            if !from_client && bytes.len() < HEADER_LEN {
                self.feed(Input::Bytes { conn: ConnId(0), data: &bytes });
                self.let_in();
                continue;
            }
            let mut frames = FrameReader::default();
            frames.feed(&bytes);
            let frame = frames.next_frame().unwrap().unwrap();
            if !from_client {
                self.answer(&frame);
            } else if frame.tag >= FIRST_REQUEST_TAG {
                let request = Request::decode(&frame.payload, self.dialect).unwrap();
                held |= matches!(&request, Request::Notify(event) if event.code == Status::READY_FOR_DEBUG);
                let is_part_of_hold = matches!(&request, Request::RegisterEvents(wish)
                    if wish.codes == [Status::DEBUGGER_RELEASE])
                    && self.session.name.contains("debugger")
                    || matches!(&request, Request::Notify(event) if event.code == Status::READY_FOR_DEBUG);
                match is_part_of_hold {
                    true => self.same_request(&frame, &request),
                    false => self.ask(&frame, request),
                }
            }
        }
        assert_eq!(held, self.session.name.contains("debugger"));
        self.feed(Input::Closed { conn: ConnId(0), reason: CloseReason::Eof });
        self.check();
    }

    /// Some recordings leave the job data out.
    fn let_in(&mut self) {
        if !self.session.has_job_data {
            let hello = self.session.hello.as_ref().unwrap();
            let nspace = hello.proc.as_ref().unwrap().nspace.clone();
            let job = JobData { nspace, values: Vec::new(), procs: Vec::new() };
            let (tag, _) = self.asked.take().unwrap();
            let bytes = encode_frame(0, tag, &job.encode(self.dialect));
            self.feed(Input::Bytes { conn: ConnId(0), data: &bytes });
        }
    }

    /// A request that our client makes itself at the same point.
    fn same_request(&mut self, frame: &Frame, theirs: &Request) {
        let (tag, ours) = self.asked.take().unwrap();
        assert_eq!(ours.command(), theirs.command(), "{}", self.session.name);
        self.tags.insert(frame.tag, tag);
    }

    fn ask(&mut self, frame: &Frame, request: Request) {
        let command = request.command();
        if command == Command::REQ {
            return self.same_request(frame, &request);
        }
        let Some(call) = self.call_for(&request) else {
            self.left_out.insert(command);
            return;
        };
        self.call(command, call);
        let Some((tag, mut ours)) = self.asked.take() else {
            let may_be_silent =
                [Command::GETNB, Command::RESOLVE_NODE, Command::RESOLVE_PEERS, Command::REGEVENTS];
            assert!(may_be_silent.contains(&command), "{}: {request:?}", self.session.name);
            return;
        };
        if let Request::IofPull(pull) = &mut ours {
            // Only our servers understand it.
            pull.directives.retain(|info| info.key != *TELLS_TAKEN);
        }
        if LIKE_OTHERS.contains(&command) {
            assert_eq!(ours.command(), command);
        } else {
            // Encoded again: what their dialect cannot express (arrays without a type) is replaced.
            let theirs = Request::decode(&request.encode(self.dialect), self.dialect).unwrap();
            assert!(ours == theirs, "{}: {command:?}", self.session.name);
        }
        self.tags.insert(frame.tag, tag);
    }

    fn call_for(&self, request: &Request) -> Option<ClientCall> {
        Some(match request.clone() {
            Request::Commit(commit) => ClientCall::Commit(commit.buckets),
            Request::Fence(fence) => ClientCall::Fence(fence),
            Request::Get(get) => {
                let proc = ProcId { nspace: get.nspace, rank: get.rank };
                // 4.2 has its own way to ask a server of 5.0 for a refresh; the answer is to an ordinary get.
                let request =
                    LookupRequest { refresh: false, ..LookupRequest::new(proc, get.key, &get.info) };
                ClientCall::Get { request, info: get.info }
            }
            Request::RefreshCache(refresh) => {
                let proc = ProcId { nspace: refresh.nspace, rank: refresh.rank };
                let request = LookupRequest { refresh: true, ..LookupRequest::new(proc, None, &[]) };
                ClientCall::Get { request, info: Vec::new() }
            }
            Request::Publish(publish) => ClientCall::Publish(publish),
            Request::Lookup(lookup) => ClientCall::Lookup(lookup),
            Request::Unpublish(it) => ClientCall::Unpublish(it),
            Request::Abort(it) => {
                ClientCall::Abort { status: it.status, message: it.message, procs: it.procs }
            }
            Request::Notify(it) => ClientCall::Notify { code: it.code, range: it.range, info: it.info },
            Request::RegisterEvents(it) => ClientCall::RegisterEvents {
                handler: HandlerId(self.calls.len() as u64),
                codes: it.codes,
                info: it.info,
            },
            Request::Query(it) => ClientCall::Query(it),
            Request::Log(it) => ClientCall::Log(it),
            Request::ResolvePeers(it) => ClientCall::ResolvePeers { node: it.node, nspace: it.nspace },
            Request::ResolveNode(it) => ClientCall::ResolveNodes { nspace: it.nspace },
            Request::Spawn(it) => ClientCall::Spawn(it),
            Request::Connect(it) => ClientCall::Connect(it),
            Request::Disconnect(it) => ClientCall::Disconnect(it),
            Request::GroupConstruct(it) => ClientCall::GroupConstruct(it),
            Request::GroupDestruct(it) => ClientCall::GroupDestruct { id: it.id, info: it.info },
            Request::GroupLeave(it) => ClientCall::GroupLeave(it),
            Request::IofPull(it) => ClientCall::IofPull { handler: HandlerId(it.handle - 1), pull: it },
            // Each recording has one pull.
            Request::IofDeregister(it) => {
                ClientCall::IofDeregister { handler: HandlerId(0), directives: it.directives }
            }
            Request::IofPush(it) => ClientCall::IofPush(it),
            Request::Monitor(it) => ClientCall::Monitor(it),
            Request::Host(it) => ClientCall::Host(it),
            Request::Finalize => ClientCall::Finalize { info: Vec::new() },
            _ => return None,
        })
    }

    /// Passes on their server's message, under the tag that our client used.
    fn answer(&mut self, frame: &Frame) {
        let tag = match frame.tag {
            tag if tag < FIRST_REQUEST_TAG => tag,
            theirs => match self.tags.remove(&theirs) {
                Some(ours) => ours,
                None => return,
            },
        };
        let bytes = encode_frame(frame.index, tag, &frame.payload);
        self.feed(Input::Bytes { conn: ConnId(0), data: &bytes });
    }

    fn call(&mut self, command: Command, call: ClientCall) {
        let id = self.calls.len() as u64;
        self.calls.insert(id, (command, None));
        self.feed(Input::Call { id: CallId(id), call });
    }

    fn feed(&mut self, input: Input<'_, ClientCall>) {
        let mut out = Outbox::default();
        self.client.handle(self.now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Send { frame, .. } if !frame.starts_with(&[0xff; 8]) => {
                    let mut frames = FrameReader::default();
                    frames.feed(&frame);
                    let frame = frames.next_frame().unwrap().unwrap();
                    let dialect = Dialect { release: self.session.server, ..self.dialect };
                    self.asked = Some((frame.tag, Request::decode(&frame.payload, dialect).unwrap()));
                }
                Output::Return { id, result } => {
                    let (_, end) = self.calls.get_mut(&id.0).unwrap();
                    assert_eq!(end.replace(result), None, "{}: ended twice", self.session.name);
                }
                Output::Deliver { id, what: ClientDelivery::Event { .. }, .. } => {
                    let verdict = Verdict { status: Status::SUCCESS, results: Vec::new() };
                    let call = ClientCall::Handled { delivery: id, verdict };
                    self.client.handle(self.now, Input::Call { id: CallId(u64::MAX), call }, &mut out);
                }
                _ => {}
            }
        }
    }

    /// All calls have ended, and none because its answer could not be decoded.
    fn check(&self) {
        for (command, end) in self.calls.values() {
            let end =
                end.as_ref().unwrap_or_else(|| panic!("{}: {command:?} did not end", self.session.name));
            let status = match end {
                ClientReturn::Init(Ok(())) => Status::SUCCESS,
                ClientReturn::Init(Err(error)) => panic!("{}: {error}", self.session.name),
                ClientReturn::Done(status)
                | ClientReturn::Found(status, _)
                | ClientReturn::Infos(status, _) => *status,
                ClientReturn::Value(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Peers(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Spawned(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Group(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Credential(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Pulled(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
                ClientReturn::Nodes(result) => result.as_ref().err().copied().unwrap_or(Status::SUCCESS),
            };
            assert_ne!(status, Status::ERR_UNPACK_FAILURE, "{}: {command:?}", self.session.name);
            println!("{}: {command:?}: {status}", self.session.name);
        }
        assert!(self.client.explain().is_empty());
    }
}
