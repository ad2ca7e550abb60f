//! Operations to which many daemons contribute: their names, what a part of them is, and how they end.
//!
//! Each daemon contributes for its own members and names those that will not come. A daemon with no members left would never speak, so an
//! operation that has waited for a while is announced to all daemons of its members. With [`Policy::Fixed`] a daemon that finds a member
//! gone says so, and the root fails the operation for all at once; with [`Policy::Shrinks`] (groups with `PMIX_GROUP_FT_COLLECTIVE`) it goes
//! on without it. Groups that grow while they form are the root's alone (`root/group.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phalanx_core::host::{CollectiveKind, GroupFormed};
use phalanx_spec::{Rank, Status};
use phalanx_wire::{Blob, Info, Nspace, ProcId, Value};

use super::{Ends, Found, JobDesc, Programs, Results, TaskId};
use crate::encoding::encoded;
use crate::ranges::Ranges;

/// Names one operation; equal on all daemons that take part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OpId {
    /// All processes of the job run, or could not be started.
    Started(Nspace),
    /// All processes of the job have ended and their output is out.
    Ended(Nspace),
    Collective(Collective),
    /// A task that the root has given to daemons.
    Task(TaskId),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Collective {
    pub kind: CollectiveKind,
    pub members: Arc<[Members]>,
    /// A group's name.
    pub id: Option<Arc<str>>,
    /// Sequence number among operations of the same kind, members, name and policy.
    pub round: u64,
    pub policy: Policy,
}

/// What becomes of an operation if a member ends before it has arrived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Policy {
    /// It fails.
    Fixed,
    /// It goes on without that member, and is carried by these daemons, even if none of their members is left.
    Shrinks { daemons: Ranges },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Members {
    pub nspace: Nspace,
    pub ranks: Ranges,
}

/// The contribution of a subtree.
#[derive(Clone, Debug, Default)]
pub(crate) enum Part {
    #[default]
    Nothing,
    Modex(Vec<Blob>),
    Group(GroupPart),
    /// Rank and pid of the processes that run, and the files that they were started from. `failed`: one could not be started; its daemon sends the details in
    /// [`Up::StartFailed`](crate::msg::Up::StartFailed), which may arrive later. `after`: when the last of them started, from
    /// the job's start.
    Started {
        pids: Vec<(u32, u32)>,
        programs: Programs,
        failed: bool,
        after: Duration,
    },
    Ends(Box<Ends>),
    Found(Box<Found>),
    /// The results for the targets of job control.
    Results(Results),
    /// The same for ranks of which nothing is left, with those of them that ran.
    Cleared {
        results: Results,
        ran: Ranges,
    },
    /// The same for ranks that were started again, with what is known of the new processes.
    Renewed {
        results: Results,
        pids: Vec<(u32, u32)>,
        programs: Programs,
    },
    /// A member could not take part.
    Failed(Status),
}

pub(crate) type Outcome = Result<Agreed, Status>;

#[derive(Clone, Debug)]
pub(crate) enum Agreed {
    Nothing,
    Modex(Blob),
    Group(GroupFormed),
}

impl Members {
    /// The processes by namespace, wildcards resolved, so that equal sets have equal values.
    pub(crate) fn of<'a>(
        procs: &[ProcId],
        desc_of: impl Fn(&Nspace) -> Option<&'a JobDesc>,
    ) -> Result<Arc<[Members]>, Status> {
        let mut by_nspace: BTreeMap<&Nspace, Ranges> = BTreeMap::new();
        for proc in procs {
            let desc = desc_of(&proc.nspace).ok_or(Status::ERR_NOT_FOUND)?;
            let ranks = by_nspace.entry(&proc.nspace).or_default();
            match proc.rank {
                Rank::WILDCARD => ranks.add(&desc.ranks()),
                rank if rank.0 < desc.size => ranks.insert(rank.0),
                _ => return Err(Status::ERR_BAD_PARAM),
            }
        }
        let members = by_nspace.into_iter().map(|(nspace, ranks)| Members { nspace: nspace.clone(), ranks });
        match members.collect::<Arc<[Members]>>() {
            none if none.is_empty() => Err(Status::ERR_BAD_PARAM),
            members => Ok(members),
        }
    }

    /// The targets of a request; none named means the whole job of the requester.
    pub(crate) fn targets<'a>(
        from: &ProcId,
        targets: &[ProcId],
        desc_of: impl Fn(&Nspace) -> Option<&'a JobDesc>,
    ) -> Result<Arc<[Members]>, Status> {
        let whole = ProcId::all(&from.nspace);
        let targets = if targets.is_empty() { std::slice::from_ref(&whole) } else { targets };
        Members::of(targets, desc_of).map_err(|_| Status::ERR_NOT_FOUND)
    }
}

impl Part {
    pub(crate) fn merge(&mut self, other: Part) {
        match (&mut *self, other) {
            (_, Part::Nothing) | (Part::Failed(_), _) => {}
            (_, Part::Failed(status)) => *self = Part::Failed(status),
            (Part::Nothing, other) => *self = other,
            (Part::Modex(blobs), Part::Modex(more)) => blobs.extend(more),
            (Part::Group(part), Part::Group(more)) => part.merge(more),
            (
                Part::Started { pids, programs, failed, after },
                Part::Started { pids: more, programs: files, failed: also, after: last },
            ) => {
                pids.extend(more);
                programs.merge(files);
                *failed |= also;
                *after = last.max(*after);
            }
            (Part::Ends(ends), Part::Ends(more)) => ends.merge(*more),
            (Part::Found(found), Part::Found(more)) => found.merge(*more),
            (Part::Results(results), Part::Results(more)) => results.merge(more),
            (Part::Cleared { results, ran }, Part::Cleared { results: more, ran: also }) => {
                results.merge(more);
                ran.add(&also);
            }
            (
                Part::Renewed { results, pids, programs },
                Part::Renewed { results: more, pids: also, programs: files },
            ) => {
                results.merge(more);
                pids.extend(also);
                programs.merge(files);
            }
            // All daemons run one binary: an operation has parts of one kind.
            (_, _) => {}
        }
    }
}

impl OpId {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            OpId::Started(_) => "start of a job",
            OpId::Ended(_) => "end of a job",
            OpId::Task(_) => "task",
            OpId::Collective(collective) => collective.kind.name(),
        }
    }

    pub(crate) fn subject(&self) -> String {
        match self {
            OpId::Started(nspace) | OpId::Ended(nspace) => nspace.to_string(),
            OpId::Task(task) => format!("{} of operation {}", task.number, task.operation),
            OpId::Collective(collective) => {
                let members = collective.members.iter().map(|m| format!("{}:{}", m.nspace, m.ranks));
                let mut subject = members.collect::<Vec<_>>().join(" ");
                if let Some(id) = &collective.id {
                    subject = format!("{id}: {subject}");
                }
                format!("{subject} (round {})", collective.round)
            }
        }
    }

    /// Whether it cannot complete without these processes.
    pub(crate) fn includes(&self, nspace: &Nspace, ranks: &Ranges) -> bool {
        match self {
            OpId::Collective(Collective { policy: Policy::Shrinks { .. }, .. }) => false,
            OpId::Collective(c) => c.members.iter().any(|m| m.nspace == *nspace && m.ranks.intersects(ranks)),
            OpId::Started(_) | OpId::Ended(_) | OpId::Task(_) => false,
        }
    }

    /// Whether the operation ends with this job.
    pub(crate) fn concerns(&self, nspace: &Nspace) -> bool {
        match self {
            OpId::Started(job) | OpId::Ended(job) => job == nspace,
            // Its daemons have yet to contribute.
            OpId::Task(_) => false,
            OpId::Collective(Collective { policy: Policy::Shrinks { .. }, members, .. }) => {
                members.iter().all(|m| m.nspace == *nspace)
            }
            OpId::Collective(collective) => collective.members.iter().any(|m| m.nspace == *nspace),
        }
    }
}

/// The contributions of members to a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPart {
    pub info: Vec<Info>,
    /// Members that have ended without having arrived, which their server has reported to the others.
    pub lost: Vec<ProcId>,
    /// The same, but unknown to any server: none of their daemon's members has arrived.
    pub silent: Vec<ProcId>,
}

impl GroupPart {
    fn merge(&mut self, more: GroupPart) {
        self.info.extend(more.info);
        self.lost.extend(more.lost);
        self.silent.extend(more.silent);
    }
}

/// The processes that a value names: one, or an array.
pub(crate) fn procs(value: Option<&Value>) -> impl Iterator<Item = ProcId> {
    let one = value.and_then(Value::as_proc).cloned();
    let many = value.and_then(Value::as_array).into_iter().flat_map(|array| &array.items);
    one.into_iter().chain(many.filter_map(Value::as_proc).cloned())
}

pub(crate) fn each(members: &[Members]) -> impl Iterator<Item = ProcId> {
    members.iter().flat_map(|m| m.ranks.iter().map(|rank| ProcId::new(&m.nspace, Rank(rank))))
}

encoded!(enum OpId { 0 Started(job), 1 Ended(job), 2 Collective(collective), 3 Task(task) });
encoded!(struct Collective { kind, members, id, round, policy });
encoded!(enum Policy { 0 Fixed, 1 Shrinks { daemons } });
encoded!(enum CollectiveKind { 0 Fence, 1 Connect, 2 Disconnect, 3 GroupConstruct, 4 GroupDestruct });
encoded!(struct Members { nspace, ranks });
encoded!(enum Part {
    0 Nothing,
    1 Modex(blobs),
    2 Group(part),
    3 Started { pids, programs, failed, after },
    4 Ends(ends),
    5 Found(found),
    6 Results(results),
    7 Failed(status),
    8 Renewed { results, pids, programs },
    9 Cleared { results, ran },
});
encoded!(enum Agreed { 0 Nothing, 1 Modex(blob), 2 Group(formed) });
encoded!(struct GroupPart { info, lost, silent });
