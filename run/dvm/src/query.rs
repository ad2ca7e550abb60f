//! What the runtime answers when a process queries it: jobs, their states, their processes.

use phalanx_core::HostReply;
use phalanx_core::support::{self, Layer};
use phalanx_spec::{DataType, ProcState, Rank, Status, keys};
use phalanx_wire::{DataArray, Info, InfoList, Key, Nspace, ProcId, ProcInfo, Query, Text, Value};

use crate::daemon::Daemon;
use crate::host::FUNCTIONS;
use crate::msg::NodeId;
use crate::root::RootJob;

/// What is answered.
pub(crate) const KEYS: &[&str] = &[
    keys::QUERY_ATTRIBUTE_SUPPORT,
    keys::HOST_FUNCTIONS,
    keys::QUERY_NAMESPACES,
    keys::QUERY_JOB_STATUS,
    keys::QUERY_PROC_TABLE,
    keys::QUERY_LOCAL_PROC_TABLE,
    keys::QUERY_SPAWN_SUPPORT,
];

/// What may be said about which.
pub(crate) const QUALIFIERS: &[&str] = &[keys::HOST_ATTRIBUTES, keys::NSPACE, keys::HOSTNAME];

impl Daemon {
    /// Root only.
    pub(crate) fn query(&self, from: &ProcId, queries: &[Query]) -> HostReply {
        let (mut results, mut missing) = (Vec::new(), 0);
        for query in queries {
            for name in &query.keys {
                let value = name.as_str().and_then(|key| self.answer_query(from, key, &query.qualifiers));
                match (value, name.as_str().and_then(|name| Key::new(name).ok())) {
                    (Some(value), Some(key)) => results.push(Info { key, flags: Default::default(), value }),
                    _ => missing += 1,
                }
            }
        }
        let status = match (results.is_empty(), missing) {
            (_, 0) => Status::SUCCESS,
            (true, _) => Status::ERR_NOT_FOUND,
            (false, _) => Status::QUERY_PARTIAL_SUCCESS,
        };
        HostReply::Infos(status, results)
    }

    fn answer_query(&self, from: &ProcId, key: &str, qualifiers: &[Info]) -> Option<Value> {
        let root = self.root.as_ref()?;
        let nspace = qualified_nspace(qualifiers).unwrap_or_else(|| from.nspace.clone());
        match key {
            keys::QUERY_ATTRIBUTE_SUPPORT => {
                Some(DataArray::of_infos(Layer::Host.answer(FUNCTIONS, qualifiers)).into())
            }
            keys::HOST_FUNCTIONS => Some(support::names(FUNCTIONS).into()),
            keys::QUERY_NAMESPACES => {
                let names: Vec<&str> = root.jobs.keys().map(Nspace::as_str).collect();
                Some(names.join(",").into())
            }
            keys::QUERY_JOB_STATUS => Some(root.jobs.get(&nspace)?.status().into()),
            keys::QUERY_PROC_TABLE => {
                let job = root.jobs.get(&nspace)?;
                Some(self.proc_table(job, |_| true).into())
            }
            keys::QUERY_LOCAL_PROC_TABLE => {
                let job = root.jobs.get(&nspace)?;
                let here = match qualifiers.find(keys::HOSTNAME).and_then(Value::as_str) {
                    Some(name) => self.booted_nodes().find(|(report, _)| *report.hostname == *name)?.0.node,
                    None => self.node_of(from)?,
                };
                Some(self.proc_table(job, |node| node == here).into())
            }
            keys::QUERY_SPAWN_SUPPORT => Some(crate::spawn::ATTRIBUTES.join(",").into()),
            _ => None,
        }
    }

    fn proc_table(&self, job: &RootJob, wanted: impl Fn(NodeId) -> bool) -> DataArray {
        let desc = &job.desc;
        let line = |rank: u32| {
            let node = desc.node_of(Rank(rank)).filter(|node| wanted(*node))?;
            let pid = job.pids.binary_search_by_key(&rank, |(rank, _)| *rank);
            let pid = pid.ok().and_then(|at| job.pids.get(at)).map(|(_, pid)| *pid);
            let executable = desc.app(Rank(rank)).and_then(|app| app.argv.first().cloned());
            let state = if pid.is_some() { ProcState::RUNNING } else { ProcState::LAUNCH_UNDERWAY };
            Some(Value::ProcInfo(Box::new(ProcInfo {
                proc: ProcId::new(&desc.nspace, Rank(rank)),
                hostname: Some(Text::from(&*self.node_name(node))),
                executable,
                pid: pid.unwrap_or(0),
                state,
            })))
        };
        DataArray { of: DataType::PROC_INFO, items: (0..desc.size).filter_map(line).collect() }
    }
}

fn qualified_nspace(qualifiers: &[Info]) -> Option<Nspace> {
    match qualifiers.find(keys::NSPACE)? {
        Value::String(text) => Nspace::new(text.as_str()?).ok(),
        Value::ProcNspace(nspace) => Some(nspace.clone()),
        Value::Proc(proc) => Some(proc.nspace.clone()),
        _ => None,
    }
}
