//! The body of every command of the client protocol: the request and its reply, side by side, one file per verb.
//!
//! `Request` is what a client or tool sends; each verb's `Reply` is what comes back on the same tag. A failed request is
//! answered by its status alone, so every reply carries one first and leaves the rest at its default.

pub mod abort;
pub mod allocate;
pub mod commit;
pub mod connect;
pub mod control;
pub mod credential;
pub mod event;
pub mod fabric;
pub mod fence;
pub mod get;
pub mod group;
#[macro_use]
mod host;
pub mod iof;
pub mod job_data;
pub mod log;
pub mod monitor;
pub mod publish;
pub mod query;
pub mod resolve;
pub mod session;
pub mod spawn;

use phalanx_spec::{Command, Status};

pub use host::{AnswerBody, ForHost};

use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::text::Text;

/// The fields of a message.
///
/// The layout follows the release of the *peer*, whichever side encodes: both OpenPMIx clients and our own
/// expect that. Bytes behind the last known field are ignored when reading, because newer releases append to requests
/// without checking the server's release.
pub trait Body: Sized {
    fn write(&self, to: &mut Writer, dialect: Dialect);
    fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Self, DecodeError>;

    /// The payload of a frame.
    fn encode(&self, dialect: Dialect) -> Vec<u8> {
        let mut writer = Writer::new(dialect.format);
        self.write(&mut writer, dialect);
        writer.into_bytes()
    }

    fn decode(payload: &[u8], dialect: Dialect) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(dialect.format, payload), dialect)
    }
}

macro_rules! requests {
    ($($variant:ident($body:ty) = $command:ident)+) => {
        /// Any request of a client or tool to a server.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            /// The job data of the requester's own namespace: REQ.
            JobData,
            /// The same again, after the requester could not use the named store: GDS_FALLBACK.
            JobDataFallback {
                store: Option<Text>,
            },
            Finalize,
            $($variant($body),)+
            /// A request that the host answers.
            Host(HostRequest),
        }

        impl Request {
            fn read(from: &mut Reader<'_>, dialect: Dialect) -> Result<Request, DecodeError> {
                Ok(match from.get::<Command>()? {
                    Command::REQ => Request::JobData,
                    Command::GDS_FALLBACK => {
                        Request::JobDataFallback { store: if from.is_at_end() { None } else { from.get()? } }
                    }
                    Command::FINALIZE => Request::Finalize,
                    $(Command::$command => Request::$variant(Body::read(from, dialect)?),)+
                    command => match HostRequest::of(command, from, dialect) {
                        Some(request) => Request::Host(request?),
                        None => return Err(DecodeError::UnknownCommand { code: command.0 }),
                    },
                })
            }

            fn write(&self, to: &mut Writer, dialect: Dialect) {
                to.put(&self.command());
                match self {
                    Request::JobData | Request::Finalize => {}
                    Request::JobDataFallback { store } => {
                        to.put(store);
                    }
                    $(Request::$variant(body) => body.write(to, dialect),)+
                    Request::Host(request) => request.write_body(to, dialect),
                }
            }

            pub fn command(&self) -> Command {
                match self {
                    Request::JobData => Command::REQ,
                    Request::JobDataFallback { .. } => Command::GDS_FALLBACK,
                    Request::Finalize => Command::FINALIZE,
                    $(Request::$variant(_) => Command::$command,)+
                    Request::Host(request) => request.command(),
                }
            }
        }
    };
}

// Requests that a server passes on to its host, and the host's answer back.
host_requests! {
    Allocate(allocate::Allocate)
    ResourceBlock(allocate::ResourceBlock)
    JobControl(control::JobControl)
    SessionControl(session::SessionControl)
    GetCredential(credential::GetCredential)
    ValidateCredential(credential::ValidateCredential)
    FabricRegister(fabric::Register)
    FabricUpdate(fabric::Update)
}

// Requests that the server handles itself.
requests! {
    Abort(abort::Abort) = ABORT
    Commit(commit::Commit) = COMMIT
    Fence(fence::Fence) = FENCENB
    Get(get::Get) = GETNB
    RefreshCache(get::RefreshCache) = REFRESH_CACHE
    Publish(publish::Publish) = PUBLISHNB
    Lookup(publish::Published) = LOOKUPNB
    Unpublish(publish::Published) = UNPUBLISHNB
    Spawn(spawn::Spawn) = SPAWNNB
    Connect(connect::Connect) = CONNECTNB
    Disconnect(connect::Connect) = DISCONNECTNB
    Notify(event::Notify) = NOTIFY
    RegisterEvents(event::RegisterEvents) = REGEVENTS
    DeregisterEvents(event::DeregisterEvents) = DEREGEVENTS
    Query(query::Queries) = QUERY
    Log(log::Log) = LOG
    Monitor(monitor::Monitor) = MONITOR
    IofPull(iof::Pull) = IOF_PULL
    IofPush(iof::Push) = IOF_PUSH
    IofDeregister(iof::Deregister) = IOF_DEREG
    GroupConstruct(group::Construct) = GROUP_CONSTRUCT
    GroupDestruct(group::Destruct) = GROUP_DESTRUCT
    GroupLeave(group::Leave) = GROUP_LEAVE
    DeviceDistances(fabric::DeviceDistances) = COMPUTE_DEVICE_DISTANCES
    ResolvePeers(resolve::Peers) = RESOLVE_PEERS
    ResolveNode(resolve::Node) = RESOLVE_NODE
}

/// A reply of a status alone: ABORT, COMMIT, FENCE, FINALIZE, PUBLISH, UNPUBLISH, NOTIFY, LOG, IOF_PUSH ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusReply(pub Status);

/// A reply of a status and infos: QUERY, ALLOC, JOB_CONTROL, MONITOR, VALIDATE_CRED, SESSION_CTRL, FABRIC_*.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoReply {
    pub status: Status,
    pub info: Vec<Info>,
}

impl Request {
    pub fn decode(payload: &[u8], dialect: Dialect) -> Result<Request, DecodeError> {
        Request::read(&mut Reader::new(dialect.format, payload), dialect)
    }

    /// The command of a payload, even if the rest cannot be read: it decides whether a failure is answered.
    pub fn command_of(payload: &[u8], dialect: Dialect) -> Result<Command, DecodeError> {
        Reader::new(dialect.format, payload).get()
    }

    /// The payload of a frame.
    pub fn encode(&self, dialect: Dialect) -> Vec<u8> {
        let mut writer = Writer::new(dialect.format);
        self.write(&mut writer, dialect);
        writer.into_bytes()
    }
}

impl<T: Into<HostRequest>> From<T> for Request {
    fn from(request: T) -> Request {
        Request::Host(request.into())
    }
}

impl Body for StatusReply {
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.0);
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        from.get().map(StatusReply)
    }
}

impl Body for InfoReply {
    /// Successes always contain the number of infos; failures only if there are any.
    fn write(&self, to: &mut Writer, _: Dialect) {
        to.put(&self.status);
        if self.status.is_success() || !self.info.is_empty() {
            to.put_list(&self.info);
        }
    }
    fn read(from: &mut Reader<'_>, _: Dialect) -> Result<Self, DecodeError> {
        let status = from.get()?;
        let info = if from.is_at_end() { Vec::new() } else { from.get_list()? };
        Ok(InfoReply { status, info })
    }
}

#[cfg(test)]
mod tests;
