//! Sessions captured between OpenPMIx clients and servers, with our server in place of theirs.
//!
//! The clients' recorded bytes are fed unchanged. Behind the server is a host that answers what theirs must have answered,
//! and the other ranks are on another node, so that their values come from there. Every request must be answered exactly
//! once, with the recorded status, and where the answer is the host's also with the recorded content.

// Tests read files and may fail.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use phalanx_core::host::{Asked, DirectModexRequest, GroupFormed};
use phalanx_core::job::{JobApp, JobNode, JobProc, Table};
use phalanx_core::{
    CallId, CloseReason, ConnId, HostOp, HostReply, Input, JobInfo, Machine, Outbox, Output, PeerCred,
    Server, ServerCall, ServerConfig, ServerReturn, Time,
};
use phalanx_spec::{Command, Rank, Scope, Status, keys};
use phalanx_wire::cmd::commit::Commit;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::{
    self, Body, HostRequest, InfoReply, Request, connect, credential, get, group, publish, spawn,
};
use phalanx_wire::codec::{Dialect, Reader, Release};
use phalanx_wire::frame::{FIRST_REQUEST_TAG, Frame, FrameReader, HEADER_LEN, TAG_HEARTBEAT, encode_frame};
use phalanx_wire::hello::{Flavor, Hello, HelloAnswer, HelloReader, ToolWelcome};
use phalanx_wire::{Blob, Kval, ProcId};

#[test]
fn every_request_of_a_recorded_client_is_answered_as_it_was() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut sessions, mut answers) = (0, 0);
    let mut unlike = Vec::new();
    for file in files {
        let Some(recording) = Recording::read(&file) else { continue };
        let mut replay = Replay::new(recording);
        replay.run();
        sessions += 1;
        answers += replay.answers;
        unlike.extend(replay.unlike);
    }
    assert!(sessions >= 50 && answers >= 360, "{sessions} sessions, {answers} answers");
    let expected: Vec<String> = EXCEPTIONS.iter().map(|(what, _)| (*what).to_owned()).collect();
    assert_eq!(unlike, expected);
}

/// Answers that differ, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("422-credential-iofdereg-fabric-alloc IOF_DEREG: PMIX_ERR_NOT_FOUND for PMIX_SUCCESS", OTHER_NUMBER),
    ("5011-credential-iofdereg-fabric-alloc IOF_DEREG: PMIX_ERR_NOT_FOUND for PMIX_SUCCESS", OTHER_NUMBER),
    (
        "611-credential-iofdereg-fabric-session-resblk IOF_DEREG: PMIX_ERR_NOT_FOUND for PMIX_SUCCESS",
        OTHER_NUMBER,
    ),
];

const OTHER_NUMBER: &str = "the recorded server numbers registrations otherwise";

struct Recording {
    name: String,
    hello: Hello,
    /// The client's messages, the handshake first.
    sent: Vec<Vec<u8>>,
    /// The answers, by tag.
    answers: BTreeMap<u32, Vec<u8>>,
    welcome: Vec<u8>,
    /// Their server's release, which decides the form of group answers.
    server: Release,
}

impl Recording {
    fn read(file: &Path) -> Option<Recording> {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let bytes = |line: &str| -> Vec<u8> {
            let pairs = line.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
            pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
        };
        let of = |mark: &str| -> Vec<Vec<u8>> {
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.filter(|(m, _)| *m == mark).map(|(_, hex)| bytes(hex)).collect()
        };
        let (sent, received) = (of(">"), of("<"));
        let hello = HelloReader::new().feed(sent.first()?).ok()??;
        // Tools of 6.1 are recorded with a codec that only they have; clients with a shared-memory store declare it and are
        // served all the same.
        let welcome = received.first()?.clone();
        let mut answers = BTreeMap::new();
        for message in &received[1..] {
            let frame = frame(message);
            if frame.tag >= FIRST_REQUEST_TAG {
                answers.insert(frame.tag, frame.payload);
            }
        }
        let server = match name.split_once("-on-").map_or(name.as_str(), |(_, server)| server) {
            server if server.starts_with("422-") => Release::new(4, 2, 2),
            server if server.starts_with("5011-") => Release::new(5, 0, 11),
            _ => Release::new(6, 1, 1),
        };
        Some(Recording { name, hello, sent, answers, welcome, server })
    }

    fn dialect(&self) -> Dialect {
        self.hello.dialect()
    }

    fn theirs(&self) -> Dialect {
        Dialect { release: self.server, ..self.dialect() }
    }

    fn is_client(&self) -> bool {
        matches!(self.hello.flavor, Flavor::Client | Flavor::Singleton)
    }

    /// The client's name: its own, or the one that their server assigned.
    fn proc(&self) -> ProcId {
        let named =
            || match HelloAnswer::<ToolWelcome>::decode(&self.welcome, self.hello.flavor).unwrap().unwrap().0
            {
                HelloAnswer::Welcome(welcome) => welcome.assigned.unwrap(),
                HelloAnswer::Refused(status) => panic!("{status}"),
            };
        self.hello.proc.clone().unwrap_or_else(named)
    }

    /// The job from the recorded answer to REQ; only the client itself is on our node.
    fn job(&self) -> JobInfo {
        let proc = self.proc();
        let told = self.sent[1..].iter().map(|message| frame(message)).find_map(|frame| {
            let asked = Request::decode(&frame.payload, self.dialect()) == Ok(Request::JobData);
            asked.then(|| JobData::decode(self.answers.get(&frame.tag)?, self.dialect()).ok()).flatten()
        });
        let job = told.map(|told| told.values).unwrap_or_default();
        let size = job.iter().find(|kval| kval.key == keys::JOB_SIZE).and_then(|kval| kval.value.as_u32());
        let size = size.unwrap_or(2).max(proc.rank.0 + 1);
        let procs = (0..size).map(|rank| JobProc::new(Rank(rank), u32::from(rank != proc.rank.0), 0));
        let node = |(name, id): (&str, u32)| JobNode { name: name.into(), id, values: Vec::new() };
        JobInfo {
            nspace: proc.nspace,
            job: job.into_iter().filter(|kval| !kval.key.as_str().ends_with(".arr")).collect(),
            session: Arc::from([]),
            allocated: Table::from([]),
            nodes: [("here", 0), ("there", 1)].map(node).into(),
            apps: Arc::from([JobApp::default()]),
            procs: procs.collect(),
            here: Some(0),
        }
    }
}

struct Replay {
    recording: Recording,
    server: Server,
    out: Outbox<ServerReturn, ()>,
    reader: Option<FrameReader>,
    /// Unanswered requests, by tag.
    open: BTreeMap<u32, Request>,
    answers: usize,
    unlike: Vec<String>,
}

const CONN: ConnId = ConnId(1);

impl Replay {
    fn new(recording: Recording) -> Replay {
        let (out, open) = (Outbox::default(), BTreeMap::new());
        let server = server();
        Replay { recording, server, out, reader: None, open, answers: 0, unlike: Vec::new() }
    }

    fn run(&mut self) {
        if self.recording.is_client() {
            register(&mut self.server, self.recording.job(), &self.recording.proc());
        }
        let peer = Some(PeerCred { uid: 0, gid: 0, pid: None });
        self.feed(Input::Opened { conn: CONN, peer });
        let sent = self.recording.sent.clone();
        self.feed(Input::Bytes { conn: CONN, data: &sent[0] });
        assert!(self.reader.is_some(), "{} is let in", self.recording.name);
        for message in &sent[1..] {
            let frame = frame(message);
            if frame.tag >= FIRST_REQUEST_TAG {
                let request = Request::decode(&frame.payload, self.recording.dialect()).unwrap();
                if request.command() != Command::DEREGEVENTS {
                    self.open.insert(frame.tag, request);
                }
            } else {
                assert_eq!(frame.tag, TAG_HEARTBEAT);
            }
            self.feed(Input::Bytes { conn: CONN, data: message });
        }
        let name = &self.recording.name;
        assert!(self.open.is_empty(), "{name}: not answered: {:?}", self.open);
        self.feed(Input::Closed { conn: CONN, reason: CloseReason::Eof });
        assert!(self.server.explain().is_empty());
    }

    fn feed(&mut self, input: Input<'_, ServerCall>) {
        self.server.handle(Time(0), input, &mut self.out);
        while let Some(output) = self.out.pop() {
            match output {
                Output::Send { frame, .. } => self.receive(&frame),
                Output::CallHost { call, op } => {
                    let reply = self.host(op);
                    self.server.handle(Time(0), Input::Host { call, reply }, &mut self.out);
                }
                Output::Close { .. } => panic!("{}: closed", self.recording.name),
                _ => {}
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let Some(reader) = &mut self.reader else {
            if self.recording.is_client() {
                assert_eq!(bytes[..4], self.recording.welcome[..4]);
            } else {
                let flavor = self.recording.hello.flavor;
                let welcome = |bytes: &[u8]| match HelloAnswer::<ToolWelcome>::decode(bytes, flavor)
                    .unwrap()
                    .unwrap()
                    .0
                {
                    HelloAnswer::Welcome(welcome) => (welcome.assigned, welcome.security),
                    HelloAnswer::Refused(status) => panic!("{status}"),
                };
                assert_eq!(welcome(bytes), welcome(&self.recording.welcome));
            }
            self.reader = Some(FrameReader::default());
            return;
        };
        reader.feed(bytes);
        while let Some(frame) = self.reader.as_mut().unwrap().next_frame().unwrap() {
            if frame.tag >= FIRST_REQUEST_TAG {
                self.compare(&frame);
            }
        }
    }

    /// The answer must equal theirs, as far as it does not depend on what only their server had.
    fn compare(&mut self, ours: &Frame) {
        let request = self.open.remove(&ours.tag).unwrap();
        self.answers += 1;
        // A recording may end before the answer, as an abort does.
        let Some(theirs) = self.recording.answers.get(&ours.tag) else { return };
        let (mine, yours) = (self.recording.dialect(), self.recording.theirs());
        let same = match &request {
            Request::JobData | Request::JobDataFallback { .. } => {
                JobData::decode(&ours.payload, mine).unwrap().nspace == self.recording.proc().nspace
            }
            // Its status is garbage in 5.0.
            Request::RefreshCache(_) => true,
            Request::Get(get) => {
                let ours = get::Reply::decode(&ours.payload, mine).unwrap();
                let theirs = get::Reply::decode(theirs, mine).unwrap();
                let value = |reply: &get::Reply| {
                    let mut all = reply.data.iter().flat_map(|owner| &owner.values);
                    all.find(|kval| Some(&kval.key) == get.key.as_ref()).map(|kval| kval.value.clone())
                };
                value(&ours) == value(&theirs)
            }
            Request::Lookup(_) => {
                publish::LookupReply::decode(&ours.payload, mine)
                    == publish::LookupReply::decode(theirs, mine)
            }
            Request::Query(_) => InfoReply::decode(&ours.payload, mine) == InfoReply::decode(theirs, mine),
            Request::Host(HostRequest::GetCredential(_)) => {
                credential::Reply::decode(&ours.payload, mine) == credential::Reply::decode(theirs, mine)
            }
            Request::GroupConstruct(_) => {
                let ours = group::ConstructReply::decode(&ours.payload, mine).unwrap();
                let theirs = group::ConstructReply::decode(theirs, yours).unwrap();
                (ours.status, ours.context_id) == (theirs.status, theirs.context_id)
            }
            Request::Connect(_) => {
                let nspaces =
                    |reply: connect::Reply| reply.jobs.into_iter().map(|job| job.nspace).collect::<Vec<_>>();
                let ours = connect::Reply::decode(&ours.payload, mine).unwrap();
                let theirs = connect::Reply::decode(theirs, mine).unwrap();
                ours.status == theirs.status && nspaces(ours) == nspaces(theirs)
            }
            _ => status(&ours.payload, mine) == status(theirs, mine),
        };
        if !same {
            let what = request.command().name().unwrap();
            let (ours, theirs) = (status(&ours.payload, mine), status(theirs, mine));
            self.unlike.push(format!("{} {what}: {ours:?} for {theirs:?}", self.recording.name));
        }
    }

    /// What their host must have answered to the open request.
    fn host(&mut self, op: HostOp) -> HostReply {
        let dialect = self.recording.dialect();
        let open = self.open.last_key_value().and_then(|(tag, _)| self.recording.answers.get(tag)).cloned();
        // Some recordings are excerpts.
        let excerpt = open.is_none() && matches!(op, HostOp::DirectModex(_) | HostOp::Lookup(_));
        if excerpt {
            return HostReply::Done(Status::ERR_NOT_FOUND);
        }
        let recorded = open.as_ref().map_or(Status::SUCCESS, |payload| status(payload, dialect));
        let failed = !recorded.is_success();
        match op {
            HostOp::ToolConnected(_) => HostReply::ToolAdmitted(Ok(self.recording.proc())),
            HostOp::ClientConnected(_) | HostOp::ClientLost(_) | HostOp::DeregisterEvents(_) => {
                HostReply::Done(Status::SUCCESS)
            }
            HostOp::Fence(_) if !failed => HostReply::Modex(Ok(Blob::default())),
            HostOp::DirectModex(DirectModexRequest { proc, .. }) => {
                match get::Reply::decode(&open.unwrap(), dialect) {
                    Ok(reply) if reply.data.is_empty() => HostReply::Modex(Err(Status::ERR_NOT_FOUND)),
                    Ok(reply) => {
                        let values = reply.data.into_iter().filter(|owner| owner.owner == proc);
                        HostReply::Modex(Ok(committed(
                            &proc,
                            values.flat_map(|owner| owner.values).collect(),
                        )))
                    }
                    Err(_) => HostReply::Modex(Ok(Blob::default())),
                }
            }
            HostOp::Lookup(_) if !failed => {
                HostReply::Lookup(Ok(publish::LookupReply::decode(&open.unwrap(), dialect).unwrap().data))
            }
            HostOp::Spawn(_) if !failed => {
                let job = spawn::Reply::decode(&open.unwrap(), dialect).unwrap().job.unwrap();
                HostReply::Spawned(Ok(job.nspace))
            }
            HostOp::Connect(_) if !failed => {
                for job in connect::Reply::decode(&open.unwrap(), dialect).unwrap().jobs {
                    let info = JobInfo { nspace: job.nspace, here: None, ..self.recording.job() };
                    let call = ServerCall::RegisterNspace(Box::new(info));
                    self.server.handle(Time(0), Input::Call { id: CallId(0), call }, &mut self.out);
                }
                HostReply::Done(recorded)
            }
            HostOp::Asked(asked) if asked.answer() == cmd::AnswerBody::Credential && !failed => {
                let reply = credential::Reply::decode(&open.unwrap(), dialect).unwrap();
                HostReply::Credential(Ok((reply.credential, reply.info)))
            }
            HostOp::GroupConstruct(_) if !failed => {
                let reply = group::ConstructReply::decode(&open.unwrap(), self.recording.theirs()).unwrap();
                let group::ConstructReply { members, context_id, info, .. } = reply;
                HostReply::Group(Ok(GroupFormed { members, context_id, info }))
            }
            HostOp::Query(Asked { request: Queries { queries, .. }, .. }) => {
                let mut reply = InfoReply::decode(&open.unwrap(), dialect).unwrap();
                let asked =
                    |key: &str| queries.iter().any(|query| query.keys.iter().any(|asked| *asked == *key));
                reply.info.retain(|info| asked(info.key.as_str()));
                HostReply::Infos(reply.status, reply.info)
            }
            HostOp::Asked(asked) if asked.answer() == cmd::AnswerBody::Nothing => HostReply::Done(recorded),
            HostOp::Monitor(_) | HostOp::Asked(_) => {
                match open.map(|payload| InfoReply::decode(&payload, dialect)) {
                    Some(Ok(reply)) => HostReply::Infos(reply.status, reply.info),
                    _ => HostReply::Done(recorded),
                }
            }
            _ => HostReply::Done(recorded),
        }
    }
}

/// What the server of `proc`'s node would return for it.
fn committed(proc: &ProcId, values: Vec<Kval>) -> Blob {
    let mut server = server();
    let mut out = Outbox::default();
    let here = JobProc::new(proc.rank, 0, 0);
    let info = JobInfo {
        nspace: proc.nspace.clone(),
        job: Arc::from([]),
        session: Arc::from([]),
        allocated: Table::from([]),
        nodes: Table::from([JobNode { name: "there".into(), id: 0, values: Vec::new() }]),
        apps: Arc::from([JobApp::default()]),
        procs: vec![here; proc.rank.0 as usize + 1].into(),
        here: Some(0),
    };
    register(&mut server, info, proc);
    let hello = Hello { proc: Some(proc.clone()), ..plain_hello() };
    let commit = Request::Commit(Commit { buckets: vec![(Scope::REMOTE, values)] }).encode(hello.dialect());
    let peer = Some(PeerCred { uid: 0, gid: 0, pid: None });
    server.handle(Time(0), Input::Opened { conn: CONN, peer }, &mut out);
    server.handle(Time(0), Input::Bytes { conn: CONN, data: &hello.encode() }, &mut out);
    while let Some(output) = out.pop() {
        if let Output::CallHost { call, .. } = output {
            let reply = HostReply::Done(Status::SUCCESS);
            server.handle(Time(0), Input::Host { call, reply }, &mut out);
        }
    }
    server.handle(Time(0), Input::Bytes { conn: CONN, data: &encode_frame(0, 101, &commit) }, &mut out);
    let call = ServerCall::DirectModex { proc: proc.clone(), key: None };
    server.handle(Time(0), Input::Call { id: CallId(9), call }, &mut out);
    std::iter::from_fn(|| out.pop())
        .find_map(|output| match output {
            Output::Return { id: CallId(9), result: ServerReturn::Modex(result) } => Some(result.unwrap()),
            _ => None,
        })
        .unwrap()
}

fn server() -> Server {
    let identity = ProcId::new(&phalanx_wire::Nspace::new("server").unwrap(), Rank(0));
    let address = "tcp4://127.0.0.1:1".to_owned();
    Server::new(ServerConfig::new(identity, "here".to_owned(), address, 0, [0; 32]))
}

fn register(server: &mut Server, info: JobInfo, proc: &ProcId) {
    let mut out = Outbox::default();
    let calls = [
        ServerCall::RegisterNspace(Box::new(info)),
        ServerCall::RegisterClient { proc: proc.clone(), uid: 0, gid: 0 },
    ];
    for call in calls {
        server.handle(Time(0), Input::Call { id: CallId(1), call }, &mut out);
        assert!(matches!(
            out.pop(),
            Some(Output::Return { result: ServerReturn::Done(Status::SUCCESS), .. })
        ));
    }
}

fn plain_hello() -> Hello {
    use phalanx_wire::codec::{Format, Generation};
    Hello {
        flavor: Flavor::Client,
        credential: phalanx_wire::credential::Credential::None,
        uid: 0,
        gid: 0,
        proc: None,
        version: "4.2.2".into(),
        format: Format { generation: Generation::V41, described: false },
        store: "hash".into(),
        info: Vec::new(),
    }
}

fn frame(message: &[u8]) -> Frame {
    assert!(message.len() >= HEADER_LEN);
    let mut reader = FrameReader::default();
    reader.feed(message);
    reader.next_frame().unwrap().unwrap()
}

fn status(payload: &[u8], dialect: Dialect) -> Status {
    // Answers to REQ and to pulls begin differently, and are compared differently.
    Reader::new(dialect.format, payload).get().unwrap_or(Status::SUCCESS)
}
