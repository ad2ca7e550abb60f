//! Sessions captured between OpenPMIx processes, replayed: every message decodes completely and packs again to the same
//! bytes. `EXCEPTIONS` explains those that do not.
//!
//! `vectors/*.txt`: lines that begin with `>` are bytes of the connecting side, with `<` of the listening side, with `=`
//! contributions to a fence.

// Tests read files and may fail.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use phalanx_spec::{Command, Status};
use phalanx_wire::cmd::{
    Body, InfoReply, Request, StatusReply, connect, credential, event, get, group, iof, job_data, publish,
    resolve, spawn,
};
use phalanx_wire::codec::{Dialect, Reader, Release, Writer};
use phalanx_wire::frame::{self, FrameReader};
use phalanx_wire::hello::{ClientWelcome, Flavor, Hello, HelloAnswer, HelloReader, ToolWelcome};
use phalanx_wire::{Kval, Nspace};

#[test]
fn every_captured_message_decodes_and_packs_to_the_same_bytes() {
    let mut unlike = BTreeMap::<String, usize>::new();
    let mut messages = 0;
    for path in files() {
        let mut session = Session::new(&path);
        session.replay();
        messages += session.messages;
        for name in session.unlike {
            *unlike.entry(name).or_default() += 1;
        }
    }
    let found: Vec<_> = unlike.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let expected: Vec<_> = EXCEPTIONS.iter().map(|(name, count, _)| (*name, *count)).collect();
    assert_eq!(found, expected);
    assert!(messages > 800, "only {messages} messages");
}

/// File and message, how many times, why our bytes differ.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("422-all-types-get-reply: GETNB reply", 1, UNTYPED_ARRAY),
    ("422-all-types-put-commit-get: COMMIT request", 1, UNTYPED_ARRAY),
    ("422-client-on-5011-server: ALLOC reply", 1, EMPTY_AFTER_FAILURE),
    ("422-jobcontrol-monitor-heartbeat: JOB_CONTROL reply", 1, NOTHING_AFTER_SUCCESS),
    ("422-jobcontrol-monitor-heartbeat: MONITOR reply", 1, NOTHING_AFTER_SUCCESS),
    ("5011-client-session-rank0: ALLOC reply", 1, EMPTY_AFTER_FAILURE),
    ("5011-proof-tool-v41-query-spawn-iofpull: JOB_CONTROL reply", 1, NOTHING_AFTER_SUCCESS),
    ("5011-proof-tool-v41-query-spawn-iofpull: QUERY reply", 1, EMPTY_AFTER_FAILURE),
    ("5011-tool-prun-spawn-iof: JOB_CONTROL reply", 1, NOTHING_AFTER_SUCCESS),
    ("5011-tool-prun-stdin: JOB_CONTROL reply", 1, NOTHING_AFTER_SUCCESS),
    ("611-proof-tool-v41-query-spawn-iofpull: JOB_CONTROL reply", 1, NOTHING_AFTER_SUCCESS),
    ("611-proof-tool-v41-query-spawn-iofpull: QUERY reply", 1, EMPTY_AFTER_FAILURE),
    ("611-px-ps: QUERY reply", 3, EMPTY_AFTER_FAILURE),
    ("611-px-run: QUERY reply", 2, EMPTY_AFTER_FAILURE),
];

const UNTYPED_ARRAY: &str =
    "an array of type UNDEF, which 6.1 cannot read; we send an empty one of another type";
const EMPTY_AFTER_FAILURE: &str = "a failure with an empty list; we send the status alone";
const NOTHING_AFTER_SUCCESS: &str = "a success without a list; we always send one where one may stand";

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 45);
    files
}

struct Session {
    name: String,
    lines: Vec<(char, Vec<u8>)>,
    hello: Option<Hello>,
    welcomed: bool,
    server: Release,
    asked: BTreeMap<u32, Command>,
    messages: usize,
    unlike: Vec<String>,
}

impl Session {
    fn new(path: &Path) -> Session {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter_map(|line| {
            let (mark, hex) = line.split_once(' ')?;
            let mark = mark.chars().next().filter(|mark| "<>=".contains(*mark))?;
            let bytes = hex.as_bytes().chunks(2);
            let bytes = bytes.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
            Some((mark, bytes.collect()))
        });
        let server = match name.split_once("-on-").map_or(name.as_str(), |(_, server)| server) {
            server if server.starts_with("422-") => Release::new(4, 2, 2),
            server if server.starts_with("5011-") => Release::new(5, 0, 11),
            server if server.starts_with("611-") => Release::new(6, 1, 1),
            other => panic!("{other}"),
        };
        let lines = lines.collect();
        Session {
            name,
            lines,
            hello: None,
            welcomed: false,
            server,
            asked: BTreeMap::new(),
            messages: 0,
            unlike: Vec::new(),
        }
    }

    fn replay(&mut self) {
        for (mark, bytes) in std::mem::take(&mut self.lines) {
            match (mark, &self.hello, self.welcomed) {
                ('>', None, _) => self.hello(&bytes),
                ('<', Some(_), false) => self.welcome(&bytes),
                ('>', Some(_), _) => self.frame(&bytes, Session::client_frame),
                ('<', Some(_), true) => self.frame(&bytes, Session::server_frame),
                ('=', ..) => {}
                _ => panic!("{}: the server speaks first", self.name),
            }
        }
    }

    fn hello(&mut self, bytes: &[u8]) {
        let mut reader = HelloReader::new();
        let hello = reader.feed(bytes).unwrap().unwrap();
        assert!(reader.into_rest().is_empty());
        let mut ours = hello.encode();
        if hello.release() < Release::new(5, 0, 0) && bytes.len() == ours.len() + 1 {
            // 4.2 sends one zero byte more than it means to; we do not.
            let length = u32::try_from(bytes.len() - 16).unwrap();
            ours[8..12].copy_from_slice(&length.to_ne_bytes());
            ours.push(0);
        }
        self.compare("handshake", bytes, &ours);
        self.hello = Some(hello);
    }

    fn welcome(&mut self, bytes: &[u8]) {
        let flavor = self.hello.as_ref().map_or(Flavor::Client, |hello| hello.flavor);
        let (ours, length) = if flavor.is_welcomed_as_client(self.server) {
            let (answer, length) = HelloAnswer::<ClientWelcome>::decode(bytes).unwrap();
            (answer.encode(), length)
        } else {
            let (answer, length) = HelloAnswer::<ToolWelcome>::decode(bytes, flavor).unwrap().unwrap();
            (answer.encode(), length)
        };
        assert_eq!(length, bytes.len(), "{}", self.name);
        self.compare("handshake answer", bytes, &ours);
        self.welcomed = true;
    }

    fn frame(&mut self, bytes: &[u8], read: fn(&mut Session, u32, &[u8])) {
        let mut frames = FrameReader::default();
        frames.feed(bytes);
        let frame = frames.next_frame().unwrap().unwrap();
        assert_eq!(frames.waiting(), 0);
        let mut again = frame::encode_frame(frame.index, frame.tag, &frame.payload);
        again[12..16].copy_from_slice(&bytes[12..16]);
        assert_eq!(again, bytes);
        read(self, frame.tag, &frame.payload);
    }

    fn client_frame(&mut self, tag: u32, payload: &[u8]) {
        if tag == frame::TAG_HEARTBEAT {
            assert!(payload.is_empty());
            return;
        }
        let dialect = self.hello.as_ref().unwrap().dialect();
        let request = Request::decode(payload, dialect).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        self.asked.insert(tag, request.command());
        self.compare(&format!("{:?} request", request.command()), payload, &request.encode(dialect));
    }

    fn server_frame(&mut self, tag: u32, payload: &[u8]) {
        let hello = self.hello.as_ref().unwrap();
        let dialect = Dialect { format: hello.format, release: self.server };
        match tag {
            frame::TAG_EVENT => return self.body::<event::Notification>("event", payload, dialect),
            frame::TAG_IOF if payload.is_empty() => return,
            frame::TAG_IOF => return self.body::<iof::Output>("output", payload, dialect),
            _ => {}
        }
        let command =
            self.asked.remove(&tag).unwrap_or_else(|| panic!("{}: nobody asked for {tag}", self.name));
        let title = format!("{command:?} reply");
        let check = match command {
            Command::REQ | Command::GDS_FALLBACK => return self.job_data(&title, payload, dialect),
            Command::GETNB => Session::body::<get::Reply>,
            Command::REFRESH_CACHE => Session::body::<get::RefreshReply>,
            Command::LOOKUPNB => Session::body::<publish::LookupReply>,
            Command::SPAWNNB => return self.spawned(&title, payload, dialect),
            Command::CONNECTNB => return self.connected(&title, payload, dialect),
            Command::QUERY
            | Command::ALLOC
            | Command::JOB_CONTROL
            | Command::MONITOR
            | Command::VALIDATE_CRED
            | Command::SESSION_CTRL
            | Command::FABRIC_REGISTER
            | Command::FABRIC_UPDATE => Session::body::<InfoReply>,
            Command::GET_CREDENTIAL => Session::body::<credential::Reply>,
            Command::IOF_PULL => Session::body::<iof::PullReply>,
            Command::GROUP_CONSTRUCT => Session::body::<group::ConstructReply>,
            Command::RESOLVE_PEERS => Session::body::<resolve::PeersReply>,
            Command::RESOLVE_NODE => Session::body::<resolve::NodeReply>,
            _ => Session::body::<StatusReply>,
        };
        check(self, &title, payload, dialect);
    }

    fn body<T: Body>(&mut self, title: &str, payload: &[u8], dialect: Dialect) {
        let body = T::decode(payload, dialect).unwrap_or_else(|e| panic!("{}: {title}: {e}", self.name));
        self.compare(title, payload, &body.encode(dialect));
    }

    /// Ranks' values arrive in two forms and in any order; we send one form, behind the rest. So the order and form of the
    /// values is compared below [`job_data::JobData`], and its content above.
    fn job_data(&mut self, title: &str, payload: &[u8], dialect: Dialect) {
        let mut reader = Reader::new(dialect.format, payload);
        let nspace: Nspace = reader.get().unwrap();
        let values: Vec<Kval> = reader.get_rest().unwrap();
        let mut writer = Writer::new(dialect.format);
        writer.put(&nspace);
        values.iter().for_each(|value| {
            writer.put(value);
        });
        self.compare(title, payload, &writer.into_bytes());

        let job = job_data::JobData::decode(payload, dialect).unwrap();
        let ranks = values.iter().filter(|v| v.key == "pmix.pblob" || v.key == "pmix.pdata").count();
        assert_eq!((job.procs.len(), job.values.len()), (ranks, values.len() - ranks));
        assert!(job.procs.iter().all(|(rank, values)| rank.is_process() && !values.is_empty()));
        assert_eq!(job_data::JobData::decode(&job.encode(dialect), dialect).unwrap(), job);
        assert_eq!(job.encoded(dialect.format).body(), job.encode(dialect));
    }

    fn spawned(&mut self, title: &str, payload: &[u8], dialect: Dialect) {
        let reply = spawn::Reply::decode(payload, dialect).unwrap();
        let Some(job) = reply.job else {
            return self.compare(title, payload, &StatusReply(reply.status).encode(dialect));
        };
        let mut reader = Reader::new(dialect.format, payload);
        assert_eq!(reader.get::<Status>(), Ok(Status::SUCCESS));
        self.job_data(title, reader.rest(), dialect);
        assert_eq!(spawn::encode_success(&job.encoded(dialect.format), None).len(), {
            spawn::Reply { status: reply.status, job: Some(job) }.encode(dialect).len()
        });
    }

    fn connected(&mut self, title: &str, payload: &[u8], dialect: Dialect) {
        let reply = connect::Reply::decode(payload, dialect).unwrap();
        let again = connect::Reply::decode(&reply.encode(dialect), dialect).unwrap();
        assert_eq!(again, reply);
        if reply.jobs.is_empty() {
            self.compare(title, payload, &reply.encode(dialect));
        }
    }

    fn compare(&mut self, title: &str, theirs: &[u8], ours: &[u8]) {
        self.messages += 1;
        if theirs != ours {
            if std::env::var_os("SHOW").is_some() {
                let hex = |b: &[u8]| b.iter().take(400).map(|b| format!("{b:02x}")).collect::<String>();
                eprintln!("{}: {title}\n  {}\n  {}", self.name, hex(theirs), hex(ours));
            }
            self.unlike.push(format!("{}: {title}", self.name));
        }
    }
}
