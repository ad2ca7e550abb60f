//! Requests to the server that have not been answered.
//!
//! A request has a tag, and its reply carries the same tag; replies come in any order. Each entry has its caller, its start,
//! its deadline and its subject. An entry whose time ran out stays, without a caller, until the reply comes after all: the
//! tag must not be taken for an unknown one, nor be used again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::frame::FIRST_REQUEST_TAG;
use phalanx_wire::{Info, InfoList, Key, ProcId, Text, Value};

use super::call::ClientReturn;
use super::invitation::Invitation;
use crate::explain::Waiting;
use crate::machine::{CallId, HandlerId, Time};
use crate::store::LookupRequest;

/// One request under way.
#[derive(Debug)]
pub(super) struct Pending {
    /// `None` if the client itself asks, or if the caller was answered with a timeout.
    pub(super) call: Option<CallId>,
    pub(super) since: Time,
    /// Within a table, only the table changes it.
    pub(super) deadline: Option<Time>,
    pub(super) what: Awaited,
}

/// What a reply is for: how it is decoded, and how the wait explains itself.
#[derive(Debug)]
pub(super) enum Awaited {
    JobData,
    /// The registration for the debugger's release.
    Hold,
    /// A status ends it.
    Status {
        operation: &'static str,
        subject: String,
    },
    /// A status and infos end it.
    Infos {
        operation: &'static str,
        subject: String,
    },
    /// `own`: what this library adds to the answer.
    Query {
        keys: String,
        own: Option<Info>,
    },
    Fence {
        procs: Vec<ProcId>,
    },
    /// The fence that finalize was asked to begin with.
    LastFence,
    Get {
        request: LookupRequest,
    },
    Refresh {
        request: LookupRequest,
    },
    Lookup {
        keys: Vec<Key>,
    },
    Registration {
        handler: HandlerId,
    },
    Peers {
        node: String,
    },
    Nodes {
        nspace: String,
    },
    Spawned {
        programs: String,
    },
    Connected {
        procs: Vec<ProcId>,
    },
    Group {
        id: Text,
        procs: Vec<ProcId>,
    },
    /// The answers of the invited processes.
    Invitation(Invitation),
    /// The context id of a group with known members.
    ContextId {
        given: Vec<Info>,
        id: Text,
        members: Vec<ProcId>,
    },
    /// The leader's announcement that the group is formed.
    Join {
        id: Text,
        leader: Option<ProcId>,
    },
    Pull {
        handler: HandlerId,
    },
    EndOfPull {
        handler: HandlerId,
    },
    /// OpenPMIx answers the end of a stream with the code of an event that is no error.
    Push {
        targets: Vec<ProcId>,
    },
    Credential,
    Finalize,
}

impl Awaited {
    /// The caller's result when no reply comes.
    pub(super) fn failed(&self, status: Status) -> ClientReturn {
        match self {
            Awaited::Infos { .. } | Awaited::Query { .. } => ClientReturn::Infos(status, Vec::new()),
            Awaited::Get { .. } | Awaited::Refresh { .. } => ClientReturn::Value(Err(status)),
            Awaited::Lookup { .. } => ClientReturn::Found(status, Vec::new()),
            Awaited::Peers { .. } => ClientReturn::Peers(Err(status)),
            Awaited::Nodes { .. } => ClientReturn::Nodes(Err(status)),
            Awaited::Spawned { .. } => ClientReturn::Spawned(Err(status)),
            Awaited::Group { .. }
            | Awaited::Invitation(_)
            | Awaited::ContextId { .. }
            | Awaited::Join { .. } => ClientReturn::Group(Err(status)),
            Awaited::Pull { .. } => ClientReturn::Pulled(Err(status)),
            Awaited::Credential => ClientReturn::Credential(Err(status)),
            // A server that is gone, or slow to answer finalize, must not keep the process from ending.
            Awaited::Finalize | Awaited::LastFence => ClientReturn::Done(Status::SUCCESS),
            Awaited::JobData
            | Awaited::Hold
            | Awaited::Status { .. }
            | Awaited::Fence { .. }
            | Awaited::Connected { .. }
            | Awaited::Registration { .. }
            | Awaited::EndOfPull { .. }
            | Awaited::Push { .. } => ClientReturn::Done(status),
        }
    }

    /// Whether the reply implies that other processes may have got further than an earlier fence.
    pub(super) fn tells_of_others(&self) -> bool {
        match self {
            Awaited::Status { operation, .. } => MEETINGS.contains(operation),
            Awaited::Lookup { .. }
            | Awaited::Spawned { .. }
            | Awaited::Connected { .. }
            | Awaited::Group { .. }
            | Awaited::ContextId { .. }
            | Awaited::Join { .. }
            | Awaited::Invitation(_) => true,
            _ => false,
        }
    }

    fn operation(&self) -> &'static str {
        match self {
            Awaited::JobData => "init",
            Awaited::Hold => "hold in init",
            Awaited::Status { operation, .. } | Awaited::Infos { operation, .. } => operation,
            Awaited::Query { .. } => "query",
            Awaited::Fence { .. } => "fence",
            Awaited::LastFence | Awaited::Finalize => "finalize",
            Awaited::Get { .. } | Awaited::Refresh { .. } => "get",
            Awaited::Lookup { .. } => "lookup",
            Awaited::Registration { .. } => "register event handler",
            Awaited::Peers { .. } => "resolve peers",
            Awaited::Nodes { .. } => "resolve nodes",
            Awaited::Spawned { .. } => "spawn",
            Awaited::Connected { .. } => "connect",
            Awaited::Group { .. } => "group construct",
            Awaited::Invitation(_) | Awaited::ContextId { .. } => "group invite",
            Awaited::Join { .. } => "group join",
            Awaited::Pull { .. } => "pull of output",
            Awaited::EndOfPull { .. } => "end of a pull",
            Awaited::Push { .. } => "push of input",
            Awaited::Credential => "get credential",
        }
    }

    fn subject(&self) -> String {
        match self {
            Awaited::JobData => "the job's data".into(),
            Awaited::Hold | Awaited::Finalize | Awaited::Credential => String::new(),
            Awaited::Status { subject, .. } | Awaited::Infos { subject, .. } => subject.clone(),
            Awaited::Query { keys, .. } => keys.clone(),
            Awaited::Fence { procs } | Awaited::Connected { procs } | Awaited::Push { targets: procs } => {
                list(procs)
            }
            Awaited::Group { id, .. }
            | Awaited::Invitation(Invitation { id, .. })
            | Awaited::ContextId { id, .. }
            | Awaited::Join { id, .. } => id.to_string_lossy(),
            Awaited::Spawned { programs } => programs.clone(),
            Awaited::LastFence => "the barrier before it".into(),
            Awaited::Get { request } | Awaited::Refresh { request } => match &request.key {
                Some(key) => format!("{key} of {}", request.proc),
                None => format!("everything of {}", request.proc),
            },
            Awaited::Lookup { keys } => list(keys),
            Awaited::Registration { handler }
            | Awaited::Pull { handler }
            | Awaited::EndOfPull { handler } => format!("handler {}", handler.0),
            Awaited::Peers { node: subject } | Awaited::Nodes { nspace: subject } => subject.clone(),
        }
    }

    /// The processes that it waits for.
    fn missing(&self) -> Vec<ProcId> {
        match self {
            Awaited::Invitation(Invitation { silent, .. }) => {
                silent.iter().take(MOST_SHOWN).cloned().collect()
            }
            Awaited::Join { leader, .. } => leader.iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    fn unblocked_by(&self) -> &'static str {
        match self {
            Awaited::Fence { .. } | Awaited::LastFence => "all participants having entered the fence",
            Awaited::Invitation(_) => "all who are invited having answered",
            Awaited::Join { .. } => "the leader's word that the group is formed",
            Awaited::Get { .. } => {
                "a commit of that process, or the server's word that there is no such value"
            }
            _ => "the server's reply",
        }
    }
}

/// All requests under way, by tag.
#[derive(Debug)]
pub(super) struct Table {
    by_tag: BTreeMap<u32, Pending>,
    /// The entries that have a deadline, by it.
    deadlines: BTreeSet<(Time, u32)>,
    last_tag: u32,
}

impl Default for Table {
    fn default() -> Table {
        Table { by_tag: BTreeMap::new(), deadlines: BTreeSet::new(), last_tag: FIRST_REQUEST_TAG }
    }
}

impl Table {
    pub(super) fn has_room(&self) -> bool {
        self.by_tag.len() < MOST_PENDING
    }

    /// Inserts an entry and returns its tag.
    pub(super) fn insert(&mut self, entry: Pending) -> u32 {
        let tag = self.next_tag();
        self.put_back(tag, entry);
        tag
    }

    /// Inserts an entry again under its old tag, which is still free.
    pub(super) fn put_back(&mut self, tag: u32, entry: Pending) {
        self.deadlines.extend(entry.deadline.map(|deadline| (deadline, tag)));
        self.by_tag.insert(tag, entry);
    }

    /// A tag that is not in use.
    pub(super) fn next_tag(&mut self) -> u32 {
        loop {
            self.last_tag = self.last_tag.checked_add(1).unwrap_or(FIRST_REQUEST_TAG);
            if !self.by_tag.contains_key(&self.last_tag) {
                return self.last_tag;
            }
        }
    }

    pub(super) fn remove(&mut self, tag: u32) -> Option<Pending> {
        let entry = self.by_tag.remove(&tag)?;
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, tag));
        }
        Some(entry)
    }

    /// Takes all entries, in the order in which they were made.
    pub(super) fn take_all(&mut self) -> Vec<Pending> {
        self.deadlines.clear();
        let mut all: Vec<_> = std::mem::take(&mut self.by_tag).into_values().collect();
        all.sort_by_key(|entry| entry.since);
        all
    }

    pub(super) fn get_mut(&mut self, tag: u32) -> Option<&mut Pending> {
        self.by_tag.get_mut(&tag)
    }

    /// The invitations that wait for answers, oldest first.
    pub(super) fn invitations(&mut self) -> impl Iterator<Item = (u32, &mut Invitation)> {
        self.by_tag.iter_mut().filter_map(|(tag, entry)| match &mut entry.what {
            Awaited::Invitation(invitation) => Some((*tag, invitation)),
            _ => None,
        })
    }

    /// Takes the joins with matching group and leader.
    pub(super) fn take_joins(&mut self, wanted: impl Fn(&Text, Option<&ProcId>) -> bool) -> Vec<Pending> {
        let wanted = |what: &Awaited| match what {
            Awaited::Join { id, leader } => wanted(id, leader.as_ref()),
            _ => false,
        };
        let joins: Vec<u32> =
            self.by_tag.iter().filter(|(_, entry)| wanted(&entry.what)).map(|(tag, _)| *tag).collect();
        joins.into_iter().filter_map(|tag| self.remove(tag)).collect()
    }

    /// The next overdue entry. From then on it has no deadline.
    pub(super) fn take_overdue(&mut self, now: Time) -> Option<u32> {
        let (deadline, tag) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now)?;
        self.deadlines.remove(&(deadline, tag));
        if let Some(entry) = self.by_tag.get_mut(&tag) {
            entry.deadline = None;
        }
        Some(tag)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub(super) fn explain(&self, me: &ProcId) -> impl Iterator<Item = Waiting> {
        self.by_tag.values().filter(|entry| entry.call.is_some()).map(|entry| Waiting {
            operation: entry.what.operation().into(),
            subject: entry.what.subject(),
            asked_by: vec![me.clone()],
            missing: entry.what.missing(),
            since: entry.since,
            deadline: entry.deadline,
            unblocked_by: entry.what.unblocked_by().into(),
        })
    }
}

/// The client's deadline for a call with a time limit. The server, which knows more about the cause, may answer first.
pub(super) fn deadline_of(now: Time, info: &[Info]) -> Option<Time> {
    let seconds = info.find(keys::TIMEOUT).and_then(Value::as_u64).filter(|seconds| *seconds > 0)?;
    Some(now.after(Duration::from_secs(seconds).saturating_add(HEAD_START)))
}

pub(super) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let shown: Vec<_> = items.iter().take(MOST_SHOWN).map(T::to_string).collect();
    let more = if items.len() > MOST_SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Collectives that are answered with a status.
const MEETINGS: [&str; 2] = ["disconnect", "group destruct"];
const HEAD_START: Duration = Duration::from_millis(250);
const MOST_SHOWN: usize = 8;
const MOST_PENDING: usize = 1 << 16;
