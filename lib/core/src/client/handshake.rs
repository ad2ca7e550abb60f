//! From nothing to a connection that is let in, and what arrives on it; then its end.
//!
//! The phases are named for what they wait for. Until the job data are here nothing but init is under way, so an end of the
//! connection fails init; later it fails everything that waits and raises `PMIX_ERR_LOST_CONNECTION`.

use std::fmt;

use phalanx_spec::{Range, Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::codec::DecodeError;
use phalanx_wire::frame::{self, Frame};
use phalanx_wire::{Info, Kval, Nspace, ProcId};

use super::pending::{Awaited, Pending, deadline_of};
use super::{Client, ClientReturn, Out};
use crate::explain::Waiting;
use crate::host::Event;
use crate::machine::{CallId, CloseReason, ConnId, Output, Time};

/// Where the client stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// Init has not been called.
    Idle,
    ExpectOpened(Start),
    ExpectHelloReply {
        start: Start,
        got: Vec<u8>,
    },
    ExpectJobData(Start),
    /// A debugger holds the process in init, for as long as it likes.
    ExpectRelease {
        since: Time,
    },
    Ready,
    /// No server; the process is a job of its own.
    Alone,
    /// Waits for the server to say goodbye.
    Finalizing,
    /// The connection has ended without a finalize.
    Lost,
    Ended,
}

/// Since when init is under way, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    since: Time,
    deadline: Time,
}

/// Why a process was not let in.
#[derive(Clone, Debug, PartialEq)]
pub enum InitError {
    /// Init was called before.
    Again,
    /// Nobody accepts connections at the server's address.
    Unreachable,
    /// Somebody accepts them who is not trusted; nothing was sent.
    Foreign,
    /// The server closed the connection instead of answering: it does not know this process, or not this user.
    TurnedAway,
    Refused(Status),
    /// No answer within the time given.
    TimedOut,
    /// The server's answer cannot be read.
    Malformed(DecodeError),
    /// A message longer than we accept.
    TooLong(frame::FrameTooLong),
    /// A tool has as many servers as it can have.
    TooManyServers,
    /// The server's answer to the handshake says what cannot be.
    BadWelcome(String),
    /// The server sent the data of another job.
    WrongJob {
        got: Nspace,
    },
}

impl Phase {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.start().map(|start| start.deadline)
    }

    fn start(&self) -> Option<Start> {
        match self {
            Phase::ExpectOpened(start)
            | Phase::ExpectHelloReply { start, .. }
            | Phase::ExpectJobData(start) => Some(*start),
            _ => None,
        }
    }

    pub(super) fn explain(&self, me: &ProcId) -> Option<Waiting> {
        let (subject, since, unblocked_by) = match self {
            Phase::ExpectOpened(start) => {
                ("the connection to the server", start.since, "the server accepting it")
            }
            Phase::ExpectHelloReply { start, .. } => {
                ("being let in", start.since, "the server's answer to the handshake")
            }
            Phase::ExpectJobData(start) => ("the job's data", start.since, "the server's reply"),
            Phase::ExpectRelease { since } => {
                ("held by a debugger", *since, "the debugger letting it go (PMIX_DEBUGGER_RELEASE)")
            }
            _ => return None,
        };
        Some(Waiting {
            operation: "init",
            subject: subject.into(),
            asked_by: vec![me.clone()],
            missing: Vec::new(),
            since,
            deadline: self.deadline(),
            unblocked_by,
        })
    }
}

impl Client {
    pub(super) fn on_init(&mut self, now: Time, id: CallId, out: &mut Out) {
        if !matches!(self.phase, Phase::Idle) {
            return out.push(Output::Return { id, result: ClientReturn::Init(Err(InitError::Again)) });
        }
        self.starting = Some(id);
        let Some(server) = &self.config.server else {
            self.begin_alone();
            return self.end_init(Ok(()), out);
        };
        out.push(Output::Connect { conn: SERVER, address: server.address_text() });
        self.phase = Phase::ExpectOpened(Start { since: now, deadline: now.after(self.config.patience) });
    }

    pub(super) fn on_opened(&mut self, out: &mut Out) {
        let Phase::ExpectOpened(start) = self.phase else { return };
        out.push(Output::Send { conn: SERVER, frame: self.hello() });
        self.phase = Phase::ExpectHelloReply { start, got: Vec::new() };
    }

    pub(super) fn on_bytes(&mut self, now: Time, data: &[u8], out: &mut Out) {
        match &mut self.phase {
            Phase::Idle | Phase::ExpectOpened(_) | Phase::Alone | Phase::Lost | Phase::Ended => return,
            Phase::ExpectHelloReply { start, got } => {
                got.extend_from_slice(data);
                let (start, mut got) = (*start, std::mem::take(got));
                let rest = match self.take_welcome(&got) {
                    Err(error) => return self.fail_init(error, out),
                    Ok(Some(length)) => got.split_off(length),
                    Ok(None) => return self.phase = Phase::ExpectHelloReply { start, got },
                };
                self.phase = Phase::ExpectJobData(start);
                self.ask(now, None, &Request::JobData, Awaited::JobData, &[], out);
                self.frames.feed(&rest);
            }
            _ => self.frames.feed(data),
        }
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => self.on_frame(now, &frame, out),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the server sent what cannot be accepted");
                    out.push(Output::Close { conn: SERVER });
                    return match self.starting {
                        Some(_) => self.fail_init(InitError::TooLong(error), out),
                        None => self.lose(now, out),
                    };
                }
            }
        }
    }

    fn on_frame(&mut self, now: Time, frame: &Frame, out: &mut Out) {
        match frame.tag {
            frame::TAG_EVENT => self.on_notification(now, &frame.payload, out),
            frame::TAG_IOF => self.on_output(&frame.payload, out),
            tag if tag >= frame::FIRST_REQUEST_TAG => match self.pending.remove(tag) {
                Some(entry) => self.on_reply(now, tag, entry, &frame.payload, out),
                None => tracing::warn!(tag, "the server answered what was not asked"),
            },
            tag => tracing::debug!(tag, "a message that a client does not take"),
        }
    }

    fn on_reply(&mut self, now: Time, tag: u32, entry: Pending, payload: &[u8], out: &mut Out) {
        let dialect = self.config.dialect;
        if let Awaited::Get { request } = &entry.what
            && self.shared_gets.is_led_by(tag, &request.proc)
        {
            return self.on_shared_values(now, tag, entry, payload, out);
        }
        let Pending { call, what, .. } = entry;
        if what.tells_of_others() {
            self.store.outdate_collected();
        }
        let result = match what {
            Awaited::JobData => return self.on_job_data(now, payload, out),
            Awaited::Hold => return self.on_hold(now, payload, out),
            Awaited::LastFence => return self.say_goodbye(now, call, out),
            Awaited::Finalize => return self.on_goodbye(call, out),
            Awaited::Registration { handler } => self.registered(handler, payload),
            Awaited::Get { ref request } => self.got(request, payload),
            Awaited::Refresh { ref request } => self.refreshed(request, payload),
            Awaited::Fence { .. } => self.fenced(payload),
            Awaited::Status { .. } => super::commit::status(payload, dialect),
            Awaited::Infos { .. } => super::query::infos(payload, dialect),
            Awaited::Query { ref own, .. } => super::query::answered(own.clone(), payload, dialect),
            Awaited::Lookup { .. } => super::publish::found(payload, dialect),
            Awaited::Peers { .. } => super::resolve::peers(payload, dialect),
            Awaited::Nodes { .. } => super::resolve::nodes(payload, dialect),
            Awaited::Spawned { .. } => self.spawned(payload),
            Awaited::Connected { .. } => self.connected(payload),
            Awaited::Group { ref id, ref procs } => self.group_constructed(id, procs, payload),
            Awaited::ContextId { id, members, given } => {
                return self.on_context_id(now, call, id, (members, given), payload, out);
            }
            // Nobody answers these: events end them.
            Awaited::Invitation(_) | Awaited::Join { .. } => return,
            Awaited::Pull { handler } => self.pulled(handler, payload),
            Awaited::EndOfPull { handler } => self.pull_ended(handler, payload),
            Awaited::Push { .. } => super::iof::pushed(payload, dialect),
            Awaited::Credential => super::credential::given(payload, dialect),
        };
        let result = result.unwrap_or_else(|error| {
            tracing::warn!(%error, ?what, "the server's reply cannot be read");
            what.failed(Status::ERR_UNPACK_FAILURE)
        });
        self.give_back(call, result, out);
    }

    fn on_job_data(&mut self, now: Time, payload: &[u8], out: &mut Out) {
        match self.load_job_data(payload) {
            Err(error) => self.fail_init(error, out),
            Ok(()) if self.is_to_be_held() => self.hold(now, out),
            Ok(()) => self.become_ready(out),
        }
    }

    fn load_job_data(&self, payload: &[u8]) -> Result<(), InitError> {
        let (nspace, items) = JobData::items(payload, self.config.dialect).map_err(InitError::Malformed)?;
        if nspace != self.config.proc.nspace {
            return Err(InitError::WrongJob { got: nspace });
        }
        self.store.load_items(&nspace, items).map_err(InitError::Malformed)?;
        if let Some(server) = &self.config.server {
            self.store.keep(&self.config.proc, Kval::new(keys::SERVER_URI, server.to_string()));
        }
        Ok(())
    }

    pub(super) fn become_ready(&mut self, out: &mut Out) {
        self.phase = Phase::Ready;
        self.end_init(Ok(()), out);
    }

    pub(super) fn on_closed(&mut self, now: Time, reason: CloseReason, out: &mut Out) {
        match &self.phase {
            Phase::Idle | Phase::Alone | Phase::Lost | Phase::Ended => {}
            Phase::ExpectOpened(_) if reason == CloseReason::Foreign => self.give_up(InitError::Foreign, out),
            Phase::ExpectOpened(_) => self.give_up(InitError::Unreachable, out),
            Phase::ExpectHelloReply { .. } | Phase::ExpectJobData(_) | Phase::ExpectRelease { .. } => {
                self.give_up(InitError::TurnedAway, out);
            }
            Phase::Ready | Phase::Finalizing => {
                tracing::debug!(?reason, "the connection to the server has ended");
                self.lose(now, out);
            }
        }
    }

    /// Ends what waits for the server, then tells the program, through the handlers that it has registered for this.
    fn lose(&mut self, now: Time, out: &mut Out) {
        let finalizing = matches!(self.phase, Phase::Finalizing);
        self.phase = if finalizing { Phase::Ended } else { Phase::Lost };
        self.shared_gets.clear();
        for entry in self.pending.take_all() {
            let result = entry.what.failed(Status::ERR_LOST_CONNECTION);
            self.give_back(entry.call, result, out);
        }
        if !finalizing && let Some(source) = self.server() {
            let event = Event {
                code: Status::ERR_LOST_CONNECTION,
                source: source.clone(),
                range: Range::PROC_LOCAL,
                info: Vec::new(),
            };
            self.run_chain(now, event, out);
        }
    }

    /// Who serves this process.
    pub(crate) fn server(&self) -> Option<&ProcId> {
        self.server.as_ref().or(self.config.server.as_ref().map(|uri| &uri.server))
    }

    /// It has been let in, or goes on alone.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Alone)
    }

    /// The connection has ended without a finalize.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost)
    }

    /// From now on this stands for a server that is out of reach.
    pub(crate) fn retire(&mut self) {
        self.phase = Phase::Lost;
    }

    pub(super) fn fail_init(&mut self, error: InitError, out: &mut Out) {
        out.push(Output::Close { conn: SERVER });
        self.give_up(error, out);
    }

    fn give_up(&mut self, error: InitError, out: &mut Out) {
        self.phase = Phase::Ended;
        self.pending.take_all();
        self.shared_gets.clear();
        self.end_init(Err(error), out);
    }

    fn end_init(&mut self, result: Result<(), InitError>, out: &mut Out) {
        if let Some(id) = self.starting.take() {
            out.push(Output::Return { id, result: ClientReturn::Init(result) });
        }
    }

    /// Ends whatever has waited too long.
    pub(super) fn on_time(&mut self, now: Time, out: &mut Out) {
        if self.phase.deadline().is_some_and(|deadline| deadline <= now) {
            return self.fail_init(InitError::TimedOut, out);
        }
        while let Some(tag) = self.pending.take_overdue(now) {
            let Some(entry) = self.pending.get_mut(tag) else { continue };
            if let Awaited::Invitation(_) = entry.what {
                self.on_invitation_overdue(now, tag, out);
                continue;
            }
            let call = entry.call.take();
            match &entry.what {
                Awaited::LastFence => self.say_goodbye(now, call, out),
                Awaited::Finalize => self.on_goodbye(call, out),
                Awaited::Join { .. } => {
                    // No reply will come: the entry goes at once.
                    self.pending.remove(tag);
                    self.give_back(call, ClientReturn::Group(Err(Status::ERR_TIMEOUT)), out);
                }
                what => {
                    let result = what.failed(Status::ERR_TIMEOUT);
                    self.give_back(call, result, out);
                }
            }
        }
    }

    /// Sends a request, to be answered as `what`; the infos may hold a timeout. Without a connection it fails at once.
    pub(super) fn ask(
        &mut self,
        now: Time,
        call: Option<CallId>,
        request: &Request,
        what: Awaited,
        info: &[Info],
        out: &mut Out,
    ) {
        self.ask_until(now, call, request, what, deadline_of(now, info), out);
    }

    pub(super) fn ask_until(
        &mut self,
        now: Time,
        call: Option<CallId>,
        request: &Request,
        what: Awaited,
        deadline: Option<Time>,
        out: &mut Out,
    ) {
        if let Err(status) = self.can_ask(call) {
            return self.give_back(call, what.failed(status), out);
        }
        let tag = self.pending.insert(Pending { call, since: now, deadline, what });
        self.send(tag, &request.encode(self.config.dialect), out);
    }

    /// Sends a request that the server does not answer.
    pub(super) fn tell(&mut self, request: &Request, out: &mut Out) {
        if self.can_ask(None).is_ok() {
            let tag = self.pending.next_tag();
            self.send(tag, &request.encode(self.config.dialect), out);
        }
    }

    /// The program can ask once it has been let in; the client itself as soon as the server listens.
    pub(super) fn can_ask(&self, call: Option<CallId>) -> Result<(), Status> {
        match self.phase {
            _ if !self.pending.has_room() => Err(Status::ERR_OUT_OF_RESOURCE),
            Phase::Ready | Phase::Finalizing => Ok(()),
            Phase::ExpectJobData(_) | Phase::ExpectRelease { .. } if call.is_none() => Ok(()),
            Phase::Alone | Phase::Lost => Err(Status::ERR_UNREACH),
            _ => Err(Status::ERR_INIT),
        }
    }

    /// Whether what needs no answer can be sent.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Finalizing)
    }

    pub(super) fn send(&self, tag: u32, payload: &[u8], out: &mut Out) {
        out.push(Output::Send { conn: SERVER, frame: frame::encode_frame(self.index, tag, payload) });
    }

    pub(super) fn give_back(&self, call: Option<CallId>, result: ClientReturn, out: &mut Out) {
        if let Some(id) = call {
            out.push(Output::Return { id, result });
        }
    }
}

impl InitError {
    /// The nearest code of the standard.
    pub fn status(&self) -> Status {
        match self {
            InitError::Again => Status::ERR_INIT,
            InitError::Unreachable | InitError::TurnedAway => Status::ERR_UNREACH,
            InitError::Foreign => Status::ERR_NO_PERMISSIONS,
            InitError::Refused(status) => *status,
            InitError::TimedOut => Status::ERR_TIMEOUT,
            InitError::Malformed(_) | InitError::TooLong(_) => Status::ERR_UNPACK_FAILURE,
            InitError::TooManyServers => Status::ERR_OUT_OF_RESOURCE,
            InitError::WrongJob { .. } | InitError::BadWelcome(_) => Status::ERR_HANDSHAKE_FAILED,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Again => f.write_str("init was called before"),
            InitError::Unreachable => f.write_str("nobody accepts connections there"),
            InitError::Foreign => f.write_str("the server there is a stranger's"),
            InitError::TurnedAway => f.write_str(
                "the server closed the connection: it does not expect this process, or not this user",
            ),
            InitError::Refused(status) => write!(f, "the server refused: {status}"),
            InitError::TimedOut => f.write_str("the server did not answer in time"),
            InitError::Malformed(error) => write!(f, "the server's answer cannot be read: {error}"),
            InitError::TooLong(error) => write!(f, "the server's answer cannot be read: {error}"),
            InitError::TooManyServers => f.write_str("this tool has as many servers as it can have"),
            InitError::BadWelcome(problem) => {
                write!(f, "the server's answer to the handshake makes no sense: {problem}")
            }
            InitError::WrongJob { got } => write!(f, "the server sent the data of another job, {got}"),
        }
    }
}

impl std::error::Error for InitError {}

/// A client has one connection in its life.
pub(super) const SERVER: ConnId = ConnId(0);
