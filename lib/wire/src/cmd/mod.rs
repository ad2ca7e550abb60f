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

use crate::codec::{DecodeError, Dialect, Reader, Writer};
use crate::info::Info;
use crate::text::Text;

/// What stands in a message, field by field.
///
/// The layout follows the release of the *peer*, whichever side encodes: that is what both OpenPMIx clients and our own
/// expect. Bytes behind the last known field are ignored when reading, because newer releases append to requests
/// without looking at the server's release.
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

/// Everything that a client or tool can ask of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// The job data of the asker's own namespace: REQ.
    JobData,
    /// The same again, after the asker could not use the named store: GDS_FALLBACK.
    JobDataFallback {
        store: Option<Text>,
    },
    Abort(abort::Abort),
    Commit(commit::Commit),
    Fence(fence::Fence),
    Get(get::Get),
    RefreshCache(get::RefreshCache),
    Finalize,
    Publish(publish::Publish),
    Lookup(publish::Lookup),
    Unpublish(publish::Unpublish),
    Spawn(spawn::Spawn),
    Connect(connect::Connect),
    Disconnect(connect::Connect),
    Notify(event::Notify),
    RegisterEvents(event::RegisterEvents),
    DeregisterEvents(event::DeregisterEvents),
    Query(query::QueryRequest),
    Log(log::Log),
    Allocate(allocate::Allocate),
    ResourceBlock(allocate::ResourceBlock),
    JobControl(control::JobControl),
    SessionControl(session::SessionControl),
    Monitor(monitor::Monitor),
    GetCredential(credential::GetCredential),
    ValidateCredential(credential::ValidateCredential),
    IofPull(iof::Pull),
    IofPush(iof::Push),
    IofDeregister(iof::Deregister),
    GroupConstruct(group::Construct),
    GroupDestruct(group::Destruct),
    GroupLeave(group::Leave),
    FabricRegister(fabric::Register),
    FabricUpdate(fabric::Update),
    DeviceDistances(fabric::DeviceDistances),
    ResolvePeers(resolve::Peers),
    ResolveNode(resolve::Node),
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
        let mut reader = Reader::new(dialect.format, payload);
        let from = &mut reader;
        Ok(match from.get::<Command>()? {
            Command::REQ => Request::JobData,
            Command::GDS_FALLBACK => {
                Request::JobDataFallback { store: if from.is_at_end() { None } else { from.get()? } }
            }
            Command::FINALIZE => Request::Finalize,
            Command::ABORT => Request::Abort(Body::read(from, dialect)?),
            Command::COMMIT => Request::Commit(Body::read(from, dialect)?),
            Command::FENCENB => Request::Fence(Body::read(from, dialect)?),
            Command::GETNB => Request::Get(Body::read(from, dialect)?),
            Command::REFRESH_CACHE => Request::RefreshCache(Body::read(from, dialect)?),
            Command::PUBLISHNB => Request::Publish(Body::read(from, dialect)?),
            Command::LOOKUPNB => Request::Lookup(Body::read(from, dialect)?),
            Command::UNPUBLISHNB => Request::Unpublish(Body::read(from, dialect)?),
            Command::SPAWNNB => Request::Spawn(Body::read(from, dialect)?),
            Command::CONNECTNB => Request::Connect(Body::read(from, dialect)?),
            Command::DISCONNECTNB => Request::Disconnect(Body::read(from, dialect)?),
            Command::NOTIFY => Request::Notify(Body::read(from, dialect)?),
            Command::REGEVENTS => Request::RegisterEvents(Body::read(from, dialect)?),
            Command::DEREGEVENTS => Request::DeregisterEvents(Body::read(from, dialect)?),
            Command::QUERY => Request::Query(Body::read(from, dialect)?),
            Command::LOG => Request::Log(Body::read(from, dialect)?),
            Command::ALLOC => Request::Allocate(Body::read(from, dialect)?),
            Command::RESBLK => Request::ResourceBlock(Body::read(from, dialect)?),
            Command::JOB_CONTROL => Request::JobControl(Body::read(from, dialect)?),
            Command::SESSION_CTRL => Request::SessionControl(Body::read(from, dialect)?),
            Command::MONITOR => Request::Monitor(Body::read(from, dialect)?),
            Command::GET_CREDENTIAL => Request::GetCredential(Body::read(from, dialect)?),
            Command::VALIDATE_CRED => Request::ValidateCredential(Body::read(from, dialect)?),
            Command::IOF_PULL => Request::IofPull(Body::read(from, dialect)?),
            Command::IOF_PUSH => Request::IofPush(Body::read(from, dialect)?),
            Command::IOF_DEREG => Request::IofDeregister(Body::read(from, dialect)?),
            Command::GROUP_CONSTRUCT => Request::GroupConstruct(Body::read(from, dialect)?),
            Command::GROUP_DESTRUCT => Request::GroupDestruct(Body::read(from, dialect)?),
            Command::GROUP_LEAVE => Request::GroupLeave(Body::read(from, dialect)?),
            Command::FABRIC_REGISTER => Request::FabricRegister(Body::read(from, dialect)?),
            Command::FABRIC_UPDATE => Request::FabricUpdate(Body::read(from, dialect)?),
            Command::COMPUTE_DEVICE_DISTANCES => Request::DeviceDistances(Body::read(from, dialect)?),
            Command::RESOLVE_PEERS => Request::ResolvePeers(Body::read(from, dialect)?),
            Command::RESOLVE_NODE => Request::ResolveNode(Body::read(from, dialect)?),
            Command(code) => return Err(DecodeError::UnknownCommand { code }),
        })
    }

    /// What a payload asks for, even if the rest of it cannot be read: whether a failure is to be answered depends on it.
    pub fn command_of(payload: &[u8], dialect: Dialect) -> Result<Command, DecodeError> {
        Reader::new(dialect.format, payload).get()
    }

    /// The payload of a frame.
    pub fn encode(&self, dialect: Dialect) -> Vec<u8> {
        let mut writer = Writer::new(dialect.format);
        let to = writer.put(&self.command());
        match self {
            Request::JobData | Request::Finalize => {}
            Request::JobDataFallback { store } => {
                to.put(store);
            }
            Request::Abort(body) => body.write(to, dialect),
            Request::Commit(body) => body.write(to, dialect),
            Request::Fence(body) => body.write(to, dialect),
            Request::Get(body) => body.write(to, dialect),
            Request::RefreshCache(body) => body.write(to, dialect),
            Request::Publish(body) => body.write(to, dialect),
            Request::Lookup(body) => body.write(to, dialect),
            Request::Unpublish(body) => body.write(to, dialect),
            Request::Spawn(body) => body.write(to, dialect),
            Request::Connect(body) => body.write(to, dialect),
            Request::Disconnect(body) => body.write(to, dialect),
            Request::Notify(body) => body.write(to, dialect),
            Request::RegisterEvents(body) => body.write(to, dialect),
            Request::DeregisterEvents(body) => body.write(to, dialect),
            Request::Query(body) => body.write(to, dialect),
            Request::Log(body) => body.write(to, dialect),
            Request::Allocate(body) => body.write(to, dialect),
            Request::ResourceBlock(body) => body.write(to, dialect),
            Request::JobControl(body) => body.write(to, dialect),
            Request::SessionControl(body) => body.write(to, dialect),
            Request::Monitor(body) => body.write(to, dialect),
            Request::GetCredential(body) => body.write(to, dialect),
            Request::ValidateCredential(body) => body.write(to, dialect),
            Request::IofPull(body) => body.write(to, dialect),
            Request::IofPush(body) => body.write(to, dialect),
            Request::IofDeregister(body) => body.write(to, dialect),
            Request::GroupConstruct(body) => body.write(to, dialect),
            Request::GroupDestruct(body) => body.write(to, dialect),
            Request::GroupLeave(body) => body.write(to, dialect),
            Request::FabricRegister(body) => body.write(to, dialect),
            Request::FabricUpdate(body) => body.write(to, dialect),
            Request::DeviceDistances(body) => body.write(to, dialect),
            Request::ResolvePeers(body) => body.write(to, dialect),
            Request::ResolveNode(body) => body.write(to, dialect),
        }
        writer.into_bytes()
    }

    pub fn command(&self) -> Command {
        match self {
            Request::JobData => Command::REQ,
            Request::JobDataFallback { .. } => Command::GDS_FALLBACK,
            Request::Finalize => Command::FINALIZE,
            Request::Abort(_) => Command::ABORT,
            Request::Commit(_) => Command::COMMIT,
            Request::Fence(_) => Command::FENCENB,
            Request::Get(_) => Command::GETNB,
            Request::RefreshCache(_) => Command::REFRESH_CACHE,
            Request::Publish(_) => Command::PUBLISHNB,
            Request::Lookup(_) => Command::LOOKUPNB,
            Request::Unpublish(_) => Command::UNPUBLISHNB,
            Request::Spawn(_) => Command::SPAWNNB,
            Request::Connect(_) => Command::CONNECTNB,
            Request::Disconnect(_) => Command::DISCONNECTNB,
            Request::Notify(_) => Command::NOTIFY,
            Request::RegisterEvents(_) => Command::REGEVENTS,
            Request::DeregisterEvents(_) => Command::DEREGEVENTS,
            Request::Query(_) => Command::QUERY,
            Request::Log(_) => Command::LOG,
            Request::Allocate(_) => Command::ALLOC,
            Request::ResourceBlock(_) => Command::RESBLK,
            Request::JobControl(_) => Command::JOB_CONTROL,
            Request::SessionControl(_) => Command::SESSION_CTRL,
            Request::Monitor(_) => Command::MONITOR,
            Request::GetCredential(_) => Command::GET_CREDENTIAL,
            Request::ValidateCredential(_) => Command::VALIDATE_CRED,
            Request::IofPull(_) => Command::IOF_PULL,
            Request::IofPush(_) => Command::IOF_PUSH,
            Request::IofDeregister(_) => Command::IOF_DEREG,
            Request::GroupConstruct(_) => Command::GROUP_CONSTRUCT,
            Request::GroupDestruct(_) => Command::GROUP_DESTRUCT,
            Request::GroupLeave(_) => Command::GROUP_LEAVE,
            Request::FabricRegister(_) => Command::FABRIC_REGISTER,
            Request::FabricUpdate(_) => Command::FABRIC_UPDATE,
            Request::DeviceDistances(_) => Command::COMPUTE_DEVICE_DISTANCES,
            Request::ResolvePeers(_) => Command::RESOLVE_PEERS,
            Request::ResolveNode(_) => Command::RESOLVE_NODE,
        }
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
    /// Successes always say how many infos follow; failures only if there are any.
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
