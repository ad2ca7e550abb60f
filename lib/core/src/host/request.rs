//! What a host is asked, one struct per request. They own their data: a host may keep them for as long as it likes.
//!
//! What a client says to the host, and the server only passes on, is not listed again: it is the client's own request with who
//! asks ([`Asked`]). Here are the requests that servers make of what several processes say, or that they add something to.

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

/// What a client has asked for, as it has said it.
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
/// What the server itself could not answer.
pub type QueryRequest = Asked<Queries>;
pub type SpawnRequest = Asked<Spawn>;
pub type LogRequest = Asked<Log>;
pub type PublishRequest = Asked<Publish>;
/// What somebody wants to have that was published, or to be withdrawn. A lookup waits if asked to (`pmix.wait`), within `pmix.timeout`.
pub type PublishedRequest = Asked<Published>;
/// `handle`: the server's number for the registration. What arrives is given to the server by
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

/// All local participants are in; `data` is what this server contributes. `procs` is sorted: the same set, in whatever order
/// it was given, is the same fence; the next fence of the same set is the next request. With `pmix.loc.col.st` in `info` the
/// fence has failed here with that status: it must fail everywhere, and the answer is ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct FenceRequest {
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
    pub data: Blob,
}

/// The values that `proc`, a process of another node, has committed are wanted; `pmix.req.key` names the one that is missing.
/// That node's host has them from its own server. Rank WILDCARD, or a namespace
/// that was not registered here: the host registers it before it answers, and may then answer without bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectModexRequest {
    pub proc: ProcId,
    pub info: Vec<Info>,
}

/// Connect or disconnect. The host registers all jobs that take part before it grants a connect, so that each process learns
/// of the others' jobs.
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

/// `claims`: the name that the tool says it has; without one the host gives it a name.
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
    /// With its reader, so that what it held ([`ServerReturn::Held`](crate::ServerReturn::Held)) is for somebody else.
    pub died: bool,
}

/// All local members are in; `info` holds what each of them gave.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRequest {
    /// Only this one is in, of a group whose members do not all know of each other: it is a leader
    /// (`PMIX_GROUP_BOOTSTRAP`), or, without `procs`, one whom a leader brings (`PMIX_GROUP_ADD_MEMBERS`).
    pub from: Option<ProcId>,
    pub id: String,
    pub procs: Vec<ProcId>,
    pub info: Vec<Info>,
}

/// In what processes meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollectiveKind {
    Fence,
    Connect,
    Disconnect,
    GroupConstruct,
    GroupDestruct,
}

/// The call that the host has not answered in time, by its number ([`crate::HostCall`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverdueCall {
    pub call: u64,
}

/// A client has called finalize; it is answered when the host has.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFinalized {
    pub proc: ProcId,
    /// Further connections of the same rank go on, so that the rank has not finalized yet.
    pub others: bool,
}

/// A client's connection has closed without finalize, and no other connection of the rank goes on or has finalized. Whoever waits for
/// it is told when the host has answered, which may find out before that the process has died.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLost {
    pub proc: ProcId,
    /// The server has closed it, for this reason.
    pub cut_off: Option<String>,
}

/// What is the same of all requests.
pub(super) trait Upcall {
    /// The process that has asked, if it is one that asks for itself alone.
    fn asked_by(&self) -> Option<&ProcId> {
        None
    }

    /// How it is to be done, as the caller has said it.
    fn directives_mut(&mut self) -> Vec<&mut Info> {
        Vec::new()
    }

    /// What it is about, where that helps to tell two of them apart.
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
    ConnectRequest { as info }
    DirectModexRequest { on |it| it.proc.to_string() }
    EventsRequest { as info }
    FenceRequest { as info }
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
