//! The answers about the processes of a job: tables, single processes, memory.

use std::collections::BTreeMap;
use std::time::Duration;

use phalanx_spec::{DataType, ProcState, Rank, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, ProcInfo, Text, Value};

use super::inquiry::Inquiry;
use super::names;
use super::view::View;
use crate::id::NodeId;
use crate::job::JobVerdict;
use crate::msg::{ExitStatus, Usage, ended_state, exit_code};
use crate::ranges::Ranges;
use crate::root::dvm::Dvm;

/// What is known about a process.
pub(super) struct ProcView {
    pub(super) rank: Rank,
    pub(super) node: NodeId,
    state: ProcState,
    stopped: Option<&'static str>,
    unfinalized: bool,
    pub(super) pid: Option<u32>,
    status: Option<ExitStatus>,
    pub(super) usage: Option<Usage>,
    /// The time from the job's placement to its end.
    after: Option<Duration>,
}

/// A process table as debuggers read it.
pub(super) fn proc_table(dvm: &Dvm, view: View<'_>, wanted: impl Fn(NodeId) -> bool) -> DataArray {
    let desc = view.desc();
    let line = |proc: ProcView| {
        Value::ProcInfo(Box::new(ProcInfo {
            proc: ProcId::new(&desc.nspace, proc.rank),
            hostname: Some(Text::from(&*dvm.nodes.name(proc.node))),
            executable: program(view, proc.rank),
            pid: proc.pid.unwrap_or(0),
            state: proc.state,
        }))
    };
    let procs = procs(view).filter(|proc| wanted(proc.node));
    DataArray { of: DataType::PROC_INFO, items: procs.map(line).collect() }
}

/// The same, with details that the standard's table has no room for.
pub(super) fn ranks(dvm: &Dvm, view: View<'_>) -> DataArray {
    let restarts = view.journal().restarts();
    DataArray::of_infos(procs(view).map(|proc| {
        let mut about = vec![
            Info::new(keys::RANK, proc.rank),
            Info::new(keys::HOSTNAME, &*dvm.nodes.name(proc.node)),
            Info::new(keys::PROC_STATE_STATUS, proc.state),
        ];
        about.extend(proc.pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid))));
        about.extend(proc.stopped.map(|how| Info::new(names::STOPPED, how)));
        about.extend(restarts.get(&proc.rank.0).map(|times| Info::new(names::RESTARTS, *times)));
        about.extend(proc.unfinalized.then(|| Info::new(names::UNFINALIZED, true)));
        about.extend(proc.status.map(|status| exit_code(status.shell_code())));
        about.extend(proc.after.map(|after| Info::new(names::AGE, after.as_millis() as u64)));
        if let Some(ExitStatus::Signal { number, .. }) = proc.status {
            about.push(Info::new(names::SIGNAL, number));
        }
        Info::new(keys::PROC_INFO_ARRAY, DataArray::of_infos(about))
    }))
}

pub(super) fn answer_of_rank(dvm: &Dvm, view: View<'_>, rank: Rank, key: &str) -> Option<Value> {
    let desc = view.desc();
    let node = desc.node_of(rank)?;
    let of = |column: &crate::column::Column| column.get(rank.0);
    Some(match key {
        keys::HOSTNAME => (*dvm.nodes.name(node)).into(),
        keys::NODEID => node.0.into(),
        keys::LOCAL_RANK => (of(&desc.places.local_rank) as u16).into(),
        keys::NODE_RANK => (of(&desc.places.node_rank) as u16).into(),
        keys::APPNUM => of(&desc.places.app).into(),
        keys::APP_RANK => Rank(of(&desc.places.app_rank)).into(),
        keys::CPUSET => Value::Cpuset(desc.binding(rank)?.cpuset.as_deref().map(Text::from)),
        keys::LOCALITY_STRING => (**desc.binding(rank)?.locality.as_ref()?).into(),
        keys::PROC_STATE_STATUS => proc(view, rank)?.state.into(),
        keys::PROC_PID => Value::Pid(proc(view, rank)?.pid?),
        keys::EXIT_CODE => proc(view, rank)?.status?.shell_code().into(),
        _ => return None,
    })
}

/// The node that the qualifiers name, or else that of the requester.
pub(super) fn named_node(dvm: &Dvm, asked: &Inquiry<'_>, qualifiers: &[Info]) -> Option<NodeId> {
    if let Some(name) = qualifiers.find(keys::HOSTNAME).and_then(Value::as_str) {
        return dvm.nodes.living().find(|node| *dvm.nodes.name(*node) == *name);
    }
    match qualifiers.find(keys::NODEID).and_then(Value::as_u32) {
        Some(id) => Some(NodeId(id)).filter(|id| id.0 < dvm.nodes.size()),
        None => dvm.node_of(asked.from),
    }
}

/// The node that a query is limited to, if it is. None: there is no such node.
pub(super) fn only_node(dvm: &Dvm, asked: &Inquiry<'_>, qualifiers: &[Info]) -> Option<Option<NodeId>> {
    let local = qualifiers.is_set(keys::QUERY_LOCAL_ONLY)
        || qualifiers.find(keys::HOSTNAME).is_some()
        || qualifiers.find(keys::NODEID).is_some();
    if local { named_node(dvm, asked, qualifiers).map(Some) } else { Some(None) }
}

/// The processes of a job that a query asks for: one rank or all, on one node or all. None: there is no such node.
pub(super) fn wanted_procs(
    dvm: &Dvm,
    asked: &Inquiry<'_>,
    view: View<'_>,
    rank: Option<Rank>,
    qualifiers: &[Info],
) -> Option<impl Iterator<Item = ProcView>> {
    let only = only_node(dvm, asked, qualifiers)?;
    let is_rank = move |it: Rank| rank.is_none_or(|rank| rank == Rank::WILDCARD || rank == it);
    let is_node = move |node| only.is_none_or(|only| only == node);
    Some(procs(view).filter(move |proc| is_rank(proc.rank) && is_node(proc.node)))
}

/// For each node, the memory of the daemon and the average of its processes; each process, too, unless only averages or
/// extremes are wanted.
pub(super) fn memory_usage(
    dvm: &Dvm,
    view: View<'_>,
    wanted: impl Iterator<Item = ProcView>,
    qualifiers: &[Info],
) -> Option<DataArray> {
    let View::Live(_, Some(found)) = view else { return None };
    let (average, extremes) =
        (qualifiers.is_set(keys::QUERY_REPORT_AVG), qualifiers.is_set(keys::QUERY_REPORT_MINMAX));
    let mut by_node: BTreeMap<NodeId, Vec<(Rank, u64)>> = BTreeMap::new();
    for proc in wanted {
        if let Some(usage) = proc.usage {
            by_node.entry(proc.node).or_default().push((proc.rank, usage.resident));
        }
    }
    Some(DataArray::of_infos(by_node.into_iter().map(|(node, procs)| {
        let mut about =
            vec![Info::new(keys::HOSTNAME, &*dvm.nodes.name(node)), Info::new(keys::NODEID, node.0)];
        let daemon = found.daemons.iter().find(|(id, _)| *id == node);
        about.extend(daemon.map(|(_, bytes)| megabytes(keys::DAEMON_MEMORY, *bytes as f64)));
        let bytes = || procs.iter().map(|(_, bytes)| *bytes);
        about.push(megabytes(
            keys::CLIENT_AVG_MEMORY,
            bytes().sum::<u64>() as f64 / procs.len().max(1) as f64,
        ));
        if extremes {
            about.extend(bytes().min().map(|least| Info::new(names::MEMORY_LEAST, least)));
            about.extend(bytes().max().map(|most| Info::new(names::MEMORY_MOST, most)));
        }
        if !average && !extremes {
            about.extend(procs.iter().map(|(rank, bytes)| {
                let of = [Info::new(keys::RANK, *rank), Info::new(names::MEMORY, *bytes)];
                Info::new(keys::PROC_INFO_ARRAY, DataArray::of_infos(of))
            }));
        }
        Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(about))
    })))
}

pub(super) fn megabytes(key: &'static str, bytes: f64) -> Info {
    Info { value: Value::Float((bytes / (1024.0 * 1024.0)) as f32), ..Info::new(key, false) }
}

/// The file that a process was started from; the program as it was requested, if it has not started.
fn program(view: View<'_>, rank: Rank) -> Option<Text> {
    let requested = || view.desc().app(rank)?.argv.first();
    view.journal().program(rank).or_else(requested).cloned()
}

fn proc(view: View<'_>, rank: Rank) -> Option<ProcView> {
    procs(view).nth(rank.0 as usize)
}

/// The processes in the order of their ranks.
pub(super) fn procs(view: View<'_>) -> impl Iterator<Item = ProcView> {
    let desc = view.desc();
    let found: BTreeMap<u32, _> = match view {
        View::Live(_, Some(found)) => found.procs.iter().map(|proc| (proc.rank, proc)).collect(),
        _ => BTreeMap::new(),
    };
    let aborted = match view.verdict() {
        Some(JobVerdict::Aborted { by, .. }) if by.nspace == desc.nspace => Some(by.rank),
        _ => None,
    };
    let ends = match view {
        View::Over(journal) => journal.ends_by_rank(),
        View::Live(..) => Vec::new(),
    };
    (0..desc.size).map(move |rank| {
        let mut proc = ProcView {
            rank: Rank(rank),
            node: NodeId(desc.places.node.get(rank)),
            state: ProcState::UNDEF,
            stopped: None,
            unfinalized: false,
            pid: None,
            status: None,
            usage: None,
            after: None,
        };
        match view {
            View::Over(journal) => {
                let end = ends.get(rank as usize).copied().flatten();
                proc.state = end.map_or(ProcState::FAILED_TO_START, |end| {
                    ended_state(end.status, end.killed_by_us, end.lost_connection)
                });
                proc.unfinalized = end.is_some_and(|end| end.lost_connection);
                proc.status = end.and_then(|end| end.status);
                let lost = || journal.lost_after(rank).or_else(|| journal.duration());
                proc.after = end.map_or_else(lost, |end| Some(end.after));
                proc.pid = journal.pid(proc.rank);
            }
            View::Live(job, _) => match found.get(&rank) {
                Some(found) => {
                    let how = || job.pauses.word(&Ranges::single(rank)).unwrap_or("paused");
                    (proc.state, proc.stopped) = (found.state, found.stopped.then(how));
                    (proc.pid, proc.status, proc.usage) = (found.pid, found.status, found.usage.clone());
                }
                // Its daemon is gone, or has not reported.
                None => proc.pid = job.journal.pid(proc.rank),
            },
        }
        if aborted == Some(proc.rank) && proc.state >= ProcState::TERMINATED {
            proc.state = ProcState::CALLED_ABORT;
        }
        proc
    })
}
