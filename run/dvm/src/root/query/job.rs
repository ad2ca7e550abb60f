//! The answers about a job, about all jobs, and about nodes.

use phalanx_core::Time;
use phalanx_spec::{Rank, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Value};

use super::inquiry::{Inquiry, nspace};
use super::view::{View, view};
use super::{names, procs, usage};
use crate::hosts::Slots;
use crate::job::JobVerdict;
use crate::msg::{JobDesc, Subject, exit_code};
use crate::ranges::Ranges;
use crate::root::about::{about_tool, about_verdict};
use crate::root::descent::Separation;
use crate::root::dvm::Dvm;
use crate::root::journal::{self, Journal};
use crate::root::placing;

/// Answers a key about one job, or about one of its processes.
pub(super) fn answer_of_job(dvm: &Dvm, asked: &Inquiry<'_>, key: &str, qualifiers: &[Info]) -> Option<Value> {
    let nspace = nspace(qualifiers).unwrap_or_else(|| asked.from.nspace.clone());
    let usage = [keys::QUERY_MEMORY_USAGE, keys::QUERY_PROC_RESOURCE_USAGE].contains(&key);
    let found = asked.found.get(&Subject::Procs { nspace: nspace.clone(), usage });
    let view = view(dvm, &nspace, found)?;
    let rank = match (qualifiers.find(keys::RANK), qualifiers.find(keys::PROCID)) {
        (Some(Value::Rank(rank)), _) => Some(*rank),
        (Some(value), _) => value.as_u32().map(Rank),
        (None, Some(Value::Proc(proc))) => Some(proc.rank),
        _ => None,
    };
    if let Some(rank) = rank.filter(|rank| *rank != Rank::WILDCARD)
        && let Some(value) = procs::answer_of_rank(dvm, view, rank, key)
    {
        return Some(value);
    }
    let desc = view.desc();
    let wanted = || procs::wanted_procs(dvm, asked, view, rank, qualifiers);
    Some(match key {
        keys::QUERY_PROC_TABLE => procs::proc_table(dvm, view, |_| true).into(),
        keys::QUERY_LOCAL_PROC_TABLE => {
            let here = procs::named_node(dvm, asked, qualifiers)?;
            procs::proc_table(dvm, view, |node| node == here).into()
        }
        keys::QUERY_PROC_RESOURCE_USAGE => usage::proc_usage(dvm, view, wanted()?)?.into(),
        keys::QUERY_MEMORY_USAGE => procs::memory_usage(dvm, view, wanted()?, qualifiers)?.into(),
        names::RANKS => procs::ranks(dvm, view).into(),
        names::END => match view {
            View::Over(journal) => {
                let end = journal::end_of(journal, journal.ended()?, |node| dvm.nodes.name(node).to_string());
                Value::ByteObject(end.to_bytes().into())
            }
            View::Live(..) => return None,
        },
        keys::QUERY_JOB_STATUS => view.status().into(),
        keys::JOB_TERM_STATUS => view.verdict().map(JobVerdict::status)?.into(),
        keys::EXIT_CODE => view.journal().exit_code()?.into(),
        keys::TIME_REMAINING => match view {
            View::Live(job, _) => {
                let left = job.limit?.saturating_sub(asked.now.since(job.journal.since()));
                u32::try_from(left.as_secs()).unwrap_or(u32::MAX).into()
            }
            View::Over(_) => return None,
        },
        keys::QUERY_RESOLVE_NODE | keys::NODE_LIST => node_names(dvm, &desc.nodes).into(),
        keys::ALLOCATED_NODELIST => node_names(dvm, &desc.allocated).into(),
        keys::QUERY_RESOLVE_PEERS => {
            let here = procs::named_node(dvm, asked, qualifiers)?;
            let procs =
                desc.ranks_on(here).iter().map(|rank| ProcId::new(&nspace, Rank(rank)).into()).collect();
            DataArray { of: phalanx_spec::DataType::PROC, items: procs }.into()
        }
        keys::NSPACE => nspace.as_str().into(),
        keys::JOB_SIZE => desc.size.into(),
        keys::JOB_NUM_APPS => (desc.apps.len() as u32).into(),
        keys::NUM_NODES => desc.nodes.count().into(),
        keys::CMD_LINE => command_line(desc).into(),
        key => {
            let here = desc.directories(&dvm.config.scratch);
            let values = desc.job.iter().chain(desc.session.iter()).chain(&here);
            values.into_iter().find(|kval| kval.key == *key)?.value.clone()
        }
    })
}

/// The running namespaces: their command lines, their sizes, where their ranks are. PRRTE uses these names and keys for the
/// elements, and its tools read them.
pub(super) fn namespace_info(dvm: &Dvm, qualifiers: &[Info]) -> DataArray {
    let wanted = nspace(qualifiers);
    let jobs = dvm.jobs.iter().filter(|(nspace, _)| wanted.as_ref().is_none_or(|wanted| wanted == *nspace));
    DataArray::of_infos(jobs.map(|(nspace, job)| {
        let about = [
            Info::new(keys::NSPACE, nspace.as_str()),
            Info::new(keys::CMD_LINE, command_line(&job.desc)),
            Info::new(keys::JOB_SIZE, job.desc.size),
        ];
        let ranks = (0..job.desc.size).map(|rank| place_of(dvm, &job.desc, Rank(rank)));
        Info::new(keys::JOB_INFO_ARRAY, DataArray::of_infos(about.into_iter().chain(ranks)))
    }))
}

fn place_of(dvm: &Dvm, desc: &JobDesc, rank: Rank) -> Info {
    let node = crate::id::NodeId(desc.places.node.get(rank.0));
    let about = [
        Info::new(keys::RANK, rank),
        Info::new(keys::HOSTNAME, &*dvm.nodes.name(node)),
        Info::new(keys::LOCAL_RANK, desc.places.local_rank.get(rank.0) as u16),
    ];
    Info::new(keys::PROC_INFO_ARRAY, DataArray::of_infos(about))
}

/// Every known job.
pub(super) fn all_jobs(dvm: &Dvm, now: Time) -> DataArray {
    let past = dvm.journals.iter().map(View::Over);
    let jobs = past.chain(dvm.jobs.values().map(|job| View::Live(job, None)));
    DataArray::of_infos(jobs.map(|view| Info::new(keys::JOB_INFO_ARRAY, about_job(view, now))))
}

fn about_job(view: View<'_>, now: Time) -> DataArray {
    let desc = view.desc();
    let (word, state) = view.state();
    let mut about = vec![
        Info::new(keys::NSPACE, desc.nspace.as_str()),
        Info::new(keys::JOB_SIZE, desc.size),
        Info::new(keys::NUM_NODES, desc.nodes.count()),
        Info::new(keys::CMD_LINE, command_line(desc)),
        Info::new(keys::QUERY_JOB_STATUS, view.status()),
        Info::new(JOB_STATE, state),
        Info::new(names::STATE, word),
    ];
    about.extend(desc.parent.clone().map(|parent| Info::new(keys::PARENT_ID, parent)));
    if let View::Live(job, _) = view
        && job.separation == Separation::Nohup
    {
        about.push(Info::new(keys::NOHUP, true));
    }
    about.extend(view.journal().run_by().map(|tool| Info::new(names::RUN_BY, tool.clone())));
    about.extend(view.verdict().into_iter().flat_map(|verdict| about_verdict(verdict, usize::MAX)));
    let journal = view.journal();
    let tool = view.verdict().and_then(JobVerdict::wanted_by).and_then(|by| journal.tool(by));
    about.extend(tool.map(about_tool));
    about.extend(journal.first_failed().map(|proc| Info::new(keys::PROCID, proc.clone())));
    about.extend(journal.exit_code().map(exit_code));
    if let Some(ended) = journal.ended() {
        about.push(Info::new(names::ENDED, now.since(ended).as_millis() as u64));
    }
    let age = journal.ended().unwrap_or(now).since(journal.since());
    about.push(Info::new(names::AGE, age.as_millis() as u64));
    about.extend(course(journal));
    DataArray::of_infos(about)
}

/// How far the job has come.
fn course(journal: &Journal) -> Vec<Info> {
    let phases = journal.phases();
    let phases = phases.iter().map(|(phase, at)| Info::new(phase, at.as_micros() as u64));
    let mut about = vec![Info::new(names::PHASES, DataArray::of_infos(phases))];
    about.extend(journal.mpi().map(|file| Info::new(names::MPI, file)));
    about
}

fn node_names(dvm: &Dvm, nodes: &Ranges) -> String {
    let names = nodes.iter().map(|node| dvm.nodes.name(crate::id::NodeId(node)).to_string());
    names.collect::<Vec<_>>().join(",")
}

/// The nodes with their slots.
pub(super) fn allocation(dvm: &Dvm) -> DataArray {
    let (ids, nodes) = placing::resources(dvm);
    DataArray::of_infos(ids.into_iter().zip(nodes).map(|(id, node)| {
        let about = [
            Info::new(keys::HOSTNAME, node.name.as_str()),
            Info::new(keys::NODEID, id.0),
            Info::new(keys::MAX_PROCS, slots(&node.slots, node.topology.cpus().count())),
        ];
        Info::new(keys::NODE_INFO_ARRAY, DataArray::of_infos(about))
    }))
}

/// Slots not taken by a process.
pub(super) fn available_slots(dvm: &Dvm) -> u32 {
    let (_, nodes) = placing::resources(dvm);
    let free = |slots: u32, used: u32| slots.saturating_sub(used);
    nodes.iter().map(|node| free(slots(&node.slots, node.topology.cpus().count()), node.in_use())).sum()
}

pub(super) fn slots(stated: &Slots, cpus: u32) -> u32 {
    match stated {
        Slots::Stated(slots) => *slots,
        Slots::Unstated | Slots::Mentioned(_) => cpus,
    }
}

/// The command line that a user would type: the programs with their arguments.
pub(super) fn command_line(desc: &JobDesc) -> String {
    let words = |argv: &[phalanx_wire::Text]| {
        argv.iter().map(phalanx_wire::Text::to_string_lossy).collect::<Vec<_>>().join(" ")
    };
    desc.apps.iter().map(|app| words(&app.argv)).collect::<Vec<_>>().join(" : ")
}

/// The key of a job's state; the standard defines only the type.
const JOB_STATE: &str = "phalanx.job_state";
