//! The answers of the runtime to queries of processes and tools.
//!
//! Keys are answered per job (`job.rs`), per process (`procs.rs`), or here if they concern the DVM. What only the daemons know
//! is collected from them first (`survey.rs`).

mod inquiry;
mod job;
mod map;
pub mod names;
mod nodes;
mod past;
mod procs;
mod stacks;
mod usage;
mod view;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use phalanx_core::HostReply;
use phalanx_core::support::{self, Layer};
use phalanx_spec::{Status, functions, keys};
use phalanx_wire::{DataArray, Info, InfoFlags, InfoList, Key, Nspace, ProcId, Query, Value};

use crate::msg::{Found, Subject};
use crate::root::answer::Asker;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::operations::Operations;
use crate::root::requests::Answered;
use crate::root::turn::Cx;
use inquiry::{Inquiry, nspace};

/// The keys that are answered.
pub(crate) const KEYS: &[&str] = &[
    keys::QUERY_ATTRIBUTE_SUPPORT,
    keys::HOST_FUNCTIONS,
    keys::QUERY_SUPPORTED_KEYS,
    keys::QUERY_SUPPORTED_QUALIFIERS,
    // The same, as releases 4.0 to 6.1 and the standard spell it.
    keys::QUERY_QUALIFIERS,
    keys::QUERY_NAMESPACES,
    keys::QUERY_NAMESPACE_INFO,
    keys::QUERY_SPAWN_SUPPORT,
    keys::QUERY_DEBUG_SUPPORT,
    keys::QUERY_ALLOCATION,
    keys::QUERY_ALLOC_STATUS,
    keys::QUERY_AVAILABLE_SLOTS,
    keys::QUERY_NODE_RESOURCE_USAGE,
    keys::QUERY_GROUP_NAMES,
    keys::QUERY_GROUP_MEMBERSHIP,
    names::JOBS,
    names::HAPPENINGS,
    names::REQUESTS,
    names::WAITS,
    names::LASTS,
    names::NODES,
    names::MAP,
    // Of one job.
    keys::QUERY_JOB_STATUS,
    keys::TIME_REMAINING,
    keys::QUERY_RESOLVE_NODE,
    keys::QUERY_RESOLVE_PEERS,
    keys::NSPACE,
    keys::JOBID,
    keys::JOB_SIZE,
    keys::MAX_PROCS,
    keys::JOB_NUM_APPS,
    keys::NUM_NODES,
    keys::NODE_LIST,
    keys::CMD_LINE,
    keys::PARENT_ID,
    keys::SPAWNED,
    keys::MAPBY,
    keys::RANKBY,
    keys::BINDTO,
    keys::TMPDIR,
    keys::NSDIR,
    keys::JOB_TERM_STATUS,
    // Of its session.
    keys::SESSION_ID,
    keys::UNIV_SIZE,
    keys::ALLOCATED_NODELIST,
    keys::RM_NAME,
    keys::RM_VERSION,
    // Of its processes.
    keys::QUERY_PROC_TABLE,
    keys::QUERY_LOCAL_PROC_TABLE,
    keys::QUERY_MEMORY_USAGE,
    keys::QUERY_PROC_RESOURCE_USAGE,
    names::RANKS,
    names::STACKS,
    names::END,
    // Of one process.
    keys::PROC_STATE_STATUS,
    keys::PROC_PID,
    keys::EXIT_CODE,
    keys::HOSTNAME,
    keys::NODEID,
    keys::LOCAL_RANK,
    keys::NODE_RANK,
    keys::APPNUM,
    keys::APP_RANK,
    keys::CPUSET,
    keys::LOCALITY_STRING,
];

/// The qualifiers that are honoured.
pub(crate) const QUALIFIERS: &[&str] = &[
    keys::HOST_ATTRIBUTES,
    keys::ALLOC_ID,
    keys::GROUP_ID,
    keys::JOB_CTRL_ID,
    keys::NSPACE,
    keys::JOBID,
    keys::RANK,
    keys::PROCID,
    keys::HOSTNAME,
    keys::NODEID,
    keys::QUERY_LOCAL_ONLY,
    keys::QUERY_REPORT_AVG,
    keys::QUERY_REPORT_MINMAX,
    keys::QUERY_REFRESH_CACHE,
    names::SINCE,
    names::STATE,
    names::WHICH,
    names::SPAWN_JOB,
    names::SPAWN_APPS,
];

/// What the daemons have to report for these queries.
pub(in crate::root) fn subjects(from: &ProcId, queries: &[Query]) -> BTreeSet<Subject> {
    let named = queries.iter().flat_map(|query| query.keys.iter().map(move |key| (key, &query.qualifiers)));
    named.filter_map(|(key, qualifiers)| subject(key.as_str()?, from, qualifiers)).collect()
}

/// Answers all askers of these queries: all that can be known is known.
pub(in crate::root) fn answer(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    (operations, answered): (&Operations, &Answered),
    askers: Vec<Asker>,
    queries: &[Query],
    found: &BTreeMap<Subject, Found>,
) {
    for Asker { by, answer, .. } in askers {
        let asked = Inquiry { now: cx.now, from: &by, found, operations, answered };
        answer.give(cx, answer_queries(dvm, &asked, queries));
    }
}

fn answer_queries(dvm: &Dvm, asked: &Inquiry<'_>, queries: &[Query]) -> HostReply {
    let (mut results, mut missing, mut known) = (Vec::new(), 0, false);
    for query in queries {
        for name in &query.keys {
            let name = name.as_str().unwrap_or_default();
            known |= KEYS.contains(&name);
            match (answer_query(dvm, asked, name, &query.qualifiers), Key::new(name)) {
                (Some(value), Ok(key)) => results.push(Info { key, flags: InfoFlags::empty(), value }),
                _ => missing += 1,
            }
        }
    }
    let status = match (results.is_empty(), missing) {
        (_, 0) => Status::SUCCESS,
        (true, _) if !known => Status::ERR_NOT_SUPPORTED,
        (true, _) => Status::ERR_NOT_FOUND,
        (false, _) => Status::QUERY_PARTIAL_SUCCESS,
    };
    HostReply::Infos(status, results)
}

fn answer_query(dvm: &Dvm, asked: &Inquiry<'_>, key: &str, qualifiers: &[Info]) -> Option<Value> {
    Some(match key {
        keys::QUERY_ATTRIBUTE_SUPPORT => {
            DataArray::of_infos(Layer::Host.answer(&[dvm.functions], qualifiers)).into()
        }
        keys::HOST_FUNCTIONS => support::names(&[dvm.functions]).into(),
        keys::QUERY_SUPPORTED_KEYS => KEYS.join(",").into(),
        keys::QUERY_SUPPORTED_QUALIFIERS | keys::QUERY_QUALIFIERS => QUALIFIERS.join(",").into(),
        keys::QUERY_NAMESPACES => dvm.jobs.keys().map(Nspace::as_str).collect::<Vec<_>>().join(",").into(),
        keys::QUERY_NAMESPACE_INFO => job::namespace_info(dvm, qualifiers).into(),
        keys::QUERY_SPAWN_SUPPORT => {
            let honoured = support::honoured(dvm.functions, functions::SPAWN);
            honoured.into_iter().flatten().collect::<Vec<_>>().join(",").into()
        }
        keys::QUERY_DEBUG_SUPPORT => debug::ATTRIBUTES.join(",").into(),
        keys::QUERY_ALLOCATION => job::allocation(dvm).into(),
        // This runtime allocates nothing, so there is no allocation of any name.
        keys::QUERY_ALLOC_STATUS => return None,
        keys::QUERY_AVAILABLE_SLOTS => job::available_slots(dvm).into(),
        keys::QUERY_NODE_RESOURCE_USAGE => usage::node_usage(dvm, asked, qualifiers)?.into(),
        keys::QUERY_GROUP_NAMES => dvm.relations.group_names().collect::<Vec<_>>().join(",").into(),
        keys::QUERY_GROUP_MEMBERSHIP => {
            let group = qualifiers.find(keys::GROUP_ID).and_then(Value::as_str)?;
            dvm.relations.members_of(group, asked.from)?.into()
        }
        names::JOBS => job::all_jobs(dvm, asked.now).into(),
        names::HAPPENINGS => past::happenings(dvm, asked.now, qualifiers).into(),
        names::REQUESTS => asked.answered.told(asked.operations, asked.now, qualifiers)?.into(),
        names::LASTS => dvm.config.lasts.into(),
        names::NODES => nodes::all_nodes(dvm, asked)?.into(),
        names::MAP => match map::map(dvm, asked, qualifiers)? {
            Ok(placed) => Value::ByteObject(placed.to_bytes().into()),
            Err(why) => why.into(),
        },
        names::STACKS => stacks::stacks(asked, qualifiers)?.into(),
        names::WAITS => waits::all_waits(dvm, asked.found.get(&Subject::Waits)?).into(),
        key => return job::answer_of_job(dvm, asked, key, qualifiers),
    })
}

/// What the daemons have to report for this key.
fn subject(key: &str, from: &ProcId, qualifiers: &[Info]) -> Option<Subject> {
    let usage = match key {
        names::WAITS => return Some(Subject::Waits),
        names::STACKS => return stacks::subject(from, qualifiers),
        keys::QUERY_NODE_RESOURCE_USAGE | names::NODES => return Some(Subject::Nodes),
        keys::QUERY_MEMORY_USAGE | keys::QUERY_PROC_RESOURCE_USAGE => true,
        keys::QUERY_PROC_TABLE
        | keys::QUERY_LOCAL_PROC_TABLE
        | keys::PROC_STATE_STATUS
        | keys::PROC_PID
        | keys::EXIT_CODE
        | names::RANKS => false,
        _ => return None,
    };
    Some(Subject::Procs { nspace: nspace(qualifiers).unwrap_or_else(|| from.nspace.clone()), usage })
}
