//! Requests to a host, one struct each. They own their data: a host may keep them as long as it likes.
//!
//! A client's request that the server only passes on has no struct here: it is the client's own request with the asker
//! ([`Asked`]). Here are the requests that servers combine from several processes, or add something to.

use std::ops::Deref;

use phalanx_spec::Status;
use phalanx_wire::cmd::HostRequest;
use phalanx_wire::cmd::iof::{Pull, Push};
use phalanx_wire::cmd::log::Log;
use phalanx_wire::cmd::monitor::Monitor;
use phalanx_wire::cmd::publish::{Publish, Published};
use phalanx_wire::cmd::query::Queries;
use phalanx_wire::cmd::spawn::Spawn;
use phalanx_wire::{Blob, Info, Key, ProcId};

/// A client's request, unchanged, and its asker.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked<T> {
    pub from: ProcId,
    pub request: T,
}

impl<T> Deref for Asked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.request
    }
}

/// `error`: the event to raise.
pub type MonitorRequest = Asked<Monitor>;
/// The part of a query that the server could not answer.
pub type QueryRequest = Asked<Queries>;
pub type SpawnRequest = Asked<Spawn>;
pub type LogRequest = Asked<Log>;
pub type PublishRequest = Asked<Publish>;
/// Keys to look up or to unpublish. A lookup waits if it has `pmix.wait`, within `pmix.timeout`.
pub type PublishedRequest = Asked<Published>;
/// `handle`: the server's number for the registration. The host passes the output to the server by
/// [`ServerCall::Output`](crate::ServerCall::Output).
pub type PullRequest = Asked<Pull>;
/// No bytes: end of file.
pub type StdinRequest = Asked<Push>;

/// `procs` empty: the caller's whole job.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortRequest {
    pub from: ProcId,
    pub status: Status,
    pub message: String,
    pub procs: Vec<ProcId>,
}

/// All local participants have arrived; `data` is this server's contribution. `procs` is sorted: the same set, given in any
/// order, is the same fence; the next fence of the same set is the next request. With `pmix.loc.col.st` in `info` the fence
/// has failed here with that status: it must fail everywhere, and the answer is ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct FenceRequest {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
    pub data: Blob,
}

/// Asks for the committed values of `proc`, a process of another node; `pmix.req.key` names the missing one. That node's host
/// gets them from its own server. For rank WILDCARD, or a namespace that was not registered here, the host registers the job
/// before it answers, and may then answer without bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectModexRequest {
    pub proc: ProcId,
    pub info: Vec<Info>,
}

/// Connect or disconnect. The host registers all participating jobs before it grants a connect, so that each process gets
/// the data of the others' jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectRequest {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// No codes: all events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventsRequest {
    pub codes: Vec<Status>,
    pub info: Vec<Info>,
}

/// `claims`: the name that the tool claims; without one the host gives it a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    pub uid: u32,
    pub gid: u32,
    /// As the kernel says it; unknown of tools on other machines.
    pub pid: Option<u32>,
    pub claims: Option<ProcId>,
    pub info: Vec<Info>,
}

/// The registration `handle` has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PullEnded {
    pub from: ProcId,
    pub handle: u64,
    pub directives: Vec<Info>,
    /// True if its reader died, so that output it held ([`ServerReturn::Held`](crate::ServerReturn::Held)) is for another
    /// reader.
    pub died: bool,
}

/// All local members have arrived; `info` holds the directives of each.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRequest {
    /// Set if only this process has arrived, and members of the group do not all know each other: it is a leader
    /// (`PMIX_GROUP_BOOTSTRAP`), or, without `procs`, a process that a leader adds (`PMIX_GROUP_ADD_MEMBERS`).
    pub from: Option<ProcId>,
    pub id: String,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// The kind of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollectiveKind {
    Fence,
    Connect,
    Disconnect,
    GroupConstruct,
    GroupDestruct,
}

impl CollectiveKind {
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::Fence => "fence",
            CollectiveKind::Connect => "connect",
            CollectiveKind::Disconnect => "disconnect",
            CollectiveKind::GroupConstruct => "group construct",
            CollectiveKind::GroupDestruct => "group destruct",
        }
    }

    /// The status if a member never comes, be it a member here or on another server.
    pub fn without_a_member(self) -> Status {
        match self {
            CollectiveKind::GroupConstruct => Status::GROUP_CONSTRUCT_ABORT,
            CollectiveKind::Fence
            | CollectiveKind::Connect
            | CollectiveKind::Disconnect
            | CollectiveKind::GroupDestruct => Status::ERR_LOST_CONNECTION,
        }
    }
}

/// The overdue call, by its number ([`crate::HostCall`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverdueCall {
    pub call: u64,
}

/// A client has called finalize; it is answered after the host.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFinalized {
    pub proc: ProcId,
    /// Other connections of the same rank go on, so that the rank has not finalized yet.
    pub others: bool,
}

/// A client's connection has closed without finalize, and no other connection of the rank goes on or has finalized. Requests that
/// wait for it fail when the host has answered; before that the host may find out that the process has died.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLost {
    pub proc: ProcId,
    /// Why the server closed it, if it did.
    pub cut_off: Option<String>,
}

/// A process has introduced itself as a rank whose user it is not, and was refused. It may be the rank, with a user that it has
/// changed, or a stranger.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRefused {
    pub proc: ProcId,
    /// The user and the pid of the process, as the kernel reports them.
    pub uid: u32,
    pub pid: Option<u32>,
    /// The rank's user, as registered.
    pub expected: u32,
}

/// Values that a process has committed were not taken; gets of them fail. Reported once for each reason.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitRefused {
    pub proc: ProcId,
    pub why: String,
}

/// A member of a collective has ended without joining it: those that have joined it here get an error.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberMissing {
    pub proc: ProcId,
    pub kind: CollectiveKind,
}

/// What all requests have in common.
pub(super) trait Upcall {
    /// The asking process, if it asks for itself alone.
    fn asked_by(&self) -> Option<&ProcId> {
        None
    }

    /// The caller's directives.
    fn directives_mut(&mut self) -> Vec<&mut Info> {
        Vec::new()
    }

    /// The subject, where it helps to distinguish two of them.
    fn subject(&self) -> String {
        String::new()
    }
}

macro_rules! upcalls {
    ($($type:ty { $(by $from:ident)? $(as $info:ident)? $(on |$it:ident| $subject:expr)? })+) => {
        $(impl Upcall for $type {
            $(fn asked_by(&self) -> Option<&ProcId> {
                Some(&self.$from)
            })?
            $(fn directives_mut(&mut self) -> Vec<&mut Info> {
                self.$info.iter_mut().collect()
            })?
            $(fn subject(&self) -> String {
                let $it = self;
                $subject
            })?
        })+
    };
}

upcalls! {
    AbortRequest { by from on |it| it.message.clone() }
    ClientFinalized { on |_it| String::new() }
    ClientLost { on |it| it.proc.to_string() }
    ClientRefused { on |it| it.proc.to_string() }
    CommitRefused { on |it| it.proc.to_string() }
    ConnectRequest { as info }
    DirectModexRequest { on |it| it.proc.to_string() }
    EventsRequest { as info }
    FenceRequest { as info }
    MemberMissing { on |it| it.proc.to_string() }
    OverdueCall { }
    ProcId { on |it| it.to_string() }
    PullEnded { by from as directives }
    ToolRequest { }
    super::Event { by source as info on |it| it.code.to_string() }
}

impl Upcall for GroupRequest {
    fn asked_by(&self) -> Option<&ProcId> {
        self.from.as_ref()
    }

    fn directives_mut(&mut self) -> Vec<&mut Info> {
        self.info.iter_mut().collect()
    }

    fn subject(&self) -> String {
        self.id.clone()
    }
}

macro_rules! asked {
    ($($request:ty { $list:ident $(on |$it:ident| $subject:expr)? })+) => {
        $(impl Upcall for Asked<$request> {
            fn asked_by(&self) -> Option<&ProcId> {
                Some(&self.from)
            }

            fn directives_mut(&mut self) -> Vec<&mut Info> {
                self.request.$list.iter_mut().collect()
            }

            $(fn subject(&self) -> String {
                let $it = &self.request;
                $subject
            })?
        })+
    };
}

asked! {
    Log { directives }
    Monitor { directives }
    Publish { info on |it| names(it.data().map(|info| &info.key)) }
    Published { info on |it| names(&it.keys) }
    Pull { directives on |it| it.channels.to_string() }
    Push { directives }
}

impl Upcall for QueryRequest {
    fn asked_by(&self) -> Option<&ProcId> {
        Some(&self.from)
    }

    fn directives_mut(&mut self) -> Vec<&mut Info> {
        self.request.queries.iter_mut().flat_map(|query| &mut query.qualifiers).collect()
    }
}

impl Upcall for SpawnRequest {
    fn asked_by(&self) -> Option<&ProcId> {
        Some(&self.from)
    }

    fn directives_mut(&mut self) -> Vec<&mut Info> {
        let Spawn { job, apps } = &mut self.request;
        job.iter_mut().chain(apps.iter_mut().flat_map(|app| &mut app.info)).collect()
    }
}

impl Upcall for Asked<HostRequest> {
    fn asked_by(&self) -> Option<&ProcId> {
        Some(&self.from)
    }

    fn directives_mut(&mut self) -> Vec<&mut Info> {
        self.request.directives_mut().into_iter().flatten().collect()
    }

    fn subject(&self) -> String {
        self.request.subject()
    }
}

fn names<'a>(keys: impl IntoIterator<Item = &'a Key>) -> String {
    keys.into_iter().map(|key| key.as_str()).collect::<Vec<_>>().join(" ")
}
