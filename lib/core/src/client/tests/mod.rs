//! A client against a scripted server.

mod calls;
mod collected;
mod event;
mod get;
mod handshake;
mod invite;
mod jobs;

use std::time::Duration;

use phalanx_spec::{Range, Rank, Status};
use phalanx_wire::cmd::iof::Taken;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::{Body, Request, StatusReply};

use phalanx_wire::codec::{Dialect, Format, Generation, Release};
use phalanx_wire::credential::Credential;
use phalanx_wire::frame::{TAG_HEARTBEAT, TAG_IOF, encode_frame};
use phalanx_wire::hello::{ClientWelcome, Hello, HelloAnswer, HelloReader};
use phalanx_wire::uri::ServerUri;
use phalanx_wire::{Key, Kval, Nspace, Pdata, Query, Value};

use super::*;
use crate::machine::CallId;
use crate::machine::{CloseReason, ConnId, DeliveryId, HandlerId, Output};
use crate::store::LookupRequest;

const INDEX: u32 = 7;

pub(super) fn proc(rank: u32) -> ProcId {
    ProcId::new(&Nspace::new("job").unwrap(), Rank(rank))
}

pub(super) fn config() -> ClientConfig {
    ClientConfig {
        proc: proc(1),
        server: Some(ServerUri::parse("server.0;tcp4://127.0.0.1:99").unwrap()),
        credential: Credential::Native { uid: 1, gid: 2 },
        uid: 1,
        pid: Some(4711),
        hostname: "here".into(),
        dialect: Dialect {
            format: Format { generation: Generation::V41, described: false },
            release: Release::new(5, 0, 11),
        },
        patience: Duration::from_secs(60),
        files: None,
    }
}

/// The client, and the server's end of its connection.
struct Scene {
    client: Client,
    dialect: Dialect,
    now: Time,
    calls: u64,
    frames: FrameReader,
    /// Unanswered requests of the client.
    asked: Vec<(u32, Request)>,
    returned: Vec<(CallId, ClientReturn)>,
    delivered: Vec<(DeliveryId, HandlerId, ClientDelivery)>,
    connected: Vec<String>,
    hello: Option<Hello>,
    closed: bool,
    heartbeats: usize,
    taken: Vec<Taken>,
}

impl Scene {
    fn new(config: ClientConfig) -> Scene {
        Scene {
            dialect: config.dialect,
            client: Client::new(config),
            now: Time(0),
            calls: 0,
            frames: FrameReader::default(),
            asked: Vec::new(),
            returned: Vec::new(),
            delivered: Vec::new(),
            connected: Vec::new(),
            hello: None,
            closed: false,
            heartbeats: 0,
            taken: Vec::new(),
        }
    }

    /// A client that has been admitted to a job of two processes.
    fn ready() -> Scene {
        Scene::ready_with(config(), vec![Kval::new(phalanx_spec::keys::JOB_SIZE, 2_u32)])
    }

    fn ready_with(config: ClientConfig, values: Vec<Kval>) -> Scene {
        let mut scene = Scene::new(config);
        scene.let_in(values);
        assert_eq!(scene.returned.pop().unwrap().1, ClientReturn::Init(Ok(())));
        scene
    }

    /// Runs init up to the job data, which hold these values.
    fn let_in(&mut self, values: Vec<Kval>) -> CallId {
        let init = self.call(ClientCall::Init);
        self.open();
        self.welcome();
        let job = JobData { nspace: proc(0).nspace, values, procs: vec![(Rank(1), vec![])] };
        assert_eq!(self.asked(), Request::JobData);
        self.reply(&job);
        init
    }

    fn feed(&mut self, input: Input<'_, ClientCall>) {
        let mut out = Outbox::default();
        self.client.handle(self.now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::Connect { address, .. } => self.connected.push(address),
                Output::Send { frame, .. } if self.hello.is_none() => {
                    self.hello = HelloReader::new().feed(&frame).unwrap();
                }
                Output::Send { frame, .. } => {
                    assert!(!self.closed);
                    self.frames.feed(&frame);
                    let frame = self.frames.next_frame().unwrap().expect("frames are sent whole");
                    assert_eq!(frame.index, INDEX);
                    if frame.tag == TAG_HEARTBEAT {
                        self.heartbeats += 1;
                        continue;
                    }
                    if frame.tag == TAG_IOF {
                        self.taken.push(Taken::decode(&frame.payload, self.dialect).unwrap());
                        continue;
                    }
                    self.asked.push((frame.tag, Request::decode(&frame.payload, self.dialect).unwrap()));
                }
                Output::Close { .. } => self.closed = true,
                Output::Return { id, result } => self.returned.push((id, result)),
                Output::Deliver { id, to, what } => self.delivered.push((id, to, what)),
                Output::CallHost { .. }
                | Output::WriteFile { .. }
                | Output::RemoveFile { .. }
                | Output::LookAt { .. } => {
                    panic!("a client has no host and writes nothing")
                }
            }
        }
    }

    fn call(&mut self, call: ClientCall) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.feed(Input::Call { id, call });
        id
    }

    fn open(&mut self) {
        self.feed(Input::Opened { conn: ConnId(0), peer: None });
    }

    fn bytes(&mut self, data: &[u8]) {
        self.feed(Input::Bytes { conn: ConnId(0), data });
    }

    fn close(&mut self) {
        self.feed(Input::Closed { conn: ConnId(0), reason: CloseReason::Eof });
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.feed(Input::Tick);
    }

    fn welcome(&mut self) {
        let welcome = HelloAnswer::Welcome(ClientWelcome { index: INDEX }).encode();
        self.bytes(&welcome);
    }

    /// The oldest unanswered request, which stays unanswered.
    fn asked(&self) -> Request {
        self.asked.first().expect("the client asks").1.clone()
    }

    fn reply(&mut self, body: &impl Body) {
        let (tag, _) = self.asked.remove(0);
        let payload = body.encode(self.dialect);
        self.bytes(&encode_frame(0, tag, &payload));
    }

    fn reply_status(&mut self, status: Status) {
        self.reply(&StatusReply(status));
    }

    /// The result of the call, which must just have ended.
    fn result(&mut self, id: CallId) -> ClientReturn {
        assert_eq!(self.returned.len(), 1, "{:?}", self.returned);
        let (of, result) = self.returned.remove(0);
        assert_eq!(of, id);
        result
    }
}
