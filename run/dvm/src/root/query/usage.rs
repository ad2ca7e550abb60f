//! Resource usage of processes and nodes: bundles of figures in the standard's terms, each headed by the process or node.

use std::time::Duration;

use phalanx_spec::keys;
use phalanx_wire::{DataArray, Info, ProcId, Timeval, Value};

use super::inquiry::Inquiry;
use super::names;
use super::procs::{self, ProcView, megabytes};
use super::view::View;
use crate::msg::{NodeUsage, Subject, Usage};
use crate::root::dvm::Dvm;

/// The usage of these processes of a job, of those that live.
pub(super) fn proc_usage(
    dvm: &Dvm,
    view: View<'_>,
    wanted: impl Iterator<Item = ProcView>,
) -> Option<DataArray> {
    let View::Live(_, Some(_)) = view else { return None };
    Some(DataArray::of_infos(wanted.filter_map(|proc| {
        let mut about = vec![Info::new(keys::PROCID, ProcId::new(&view.desc().nspace, proc.rank))];
        about.push(Info::new(keys::HOSTNAME, &*dvm.nodes.name(proc.node)));
        about.extend(proc.pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid))));
        about.extend(of_proc(proc.usage.as_ref()?));
        Some(Info::new(keys::PROC_RESOURCE_USAGE, DataArray::of_infos(about)))
    })))
}

/// The usage of all nodes, or of the one that the query names.
pub(super) fn node_usage(dvm: &Dvm, asked: &Inquiry<'_>, qualifiers: &[Info]) -> Option<DataArray> {
    let only = procs::only_node(dvm, asked, qualifiers)?;
    let nodes = asked.found.get(&Subject::Nodes)?.nodes.iter();
    let wanted = nodes.filter(|(node, _)| only.is_none_or(|only| only == *node));
    Some(DataArray::of_infos(wanted.map(|(node, usage)| {
        let mut about =
            vec![Info::new(keys::HOSTNAME, &*dvm.nodes.name(*node)), Info::new(keys::NODEID, node.0)];
        about.extend(of_node(usage));
        about.extend(usage.link.as_deref().map(|link| Info::new(names::LINK, link)));
        Info::new(keys::NODE_RESOURCE_USAGE, DataArray::of_infos(about))
    })))
}

fn of_proc(usage: &Usage) -> [Info; 10] {
    let time = Timeval { sec: usage.time.as_secs() as i64, usec: usage.time.subsec_micros().into() };
    [
        Info::new(keys::PROC_OS_STATE, usage.state.to_string()),
        Info::new(keys::PROC_TIME, Value::Timeval(time)),
        Info::new(keys::PROC_PERCENT_CPU, Value::Float(percent(usage.time, usage.age))),
        Info::new(keys::PROC_PRIORITY, Value::Int32(usage.priority)),
        Info::new(keys::PROC_NUM_THREADS, usage.threads),
        megabytes(keys::PROC_RSS, usage.resident as f64),
        megabytes(keys::PROC_VSIZE, usage.size as f64),
        megabytes(keys::PROC_PEAK_VSIZE, usage.most_size as f64),
        Info::new(keys::PROC_CPU, usage.cpu),
        Info::new(keys::PROC_SAMPLE_TIME, Value::Time(usage.seen)),
    ]
}

/// As in `ps`: relative to one processor, over the whole life.
fn percent(time: Duration, age: Duration) -> f32 {
    if age.is_zero() { 0.0 } else { (100.0 * time.as_secs_f64() / age.as_secs_f64()) as f32 }
}

fn of_node(usage: &NodeUsage) -> [Info; 11] {
    let [one, five, fifteen] = usage.load;
    [
        Info::new(keys::NODE_LOAD_AVG, Value::Float(one)),
        Info::new(keys::NODE_LOAD_AVG5, Value::Float(five)),
        Info::new(keys::NODE_LOAD_AVG15, Value::Float(fifteen)),
        megabytes(keys::NODE_MEM_TOTAL, usage.memory as f64),
        megabytes(keys::NODE_MEM_FREE, usage.free as f64),
        megabytes(keys::NODE_MEM_BUFFERS, usage.buffers as f64),
        megabytes(keys::NODE_MEM_CACHED, usage.cached as f64),
        megabytes(keys::NODE_MEM_SWAP_TOTAL, usage.swap as f64),
        megabytes(keys::NODE_MEM_SWAP_FREE, usage.swap_free as f64),
        megabytes(keys::NODE_MEM_SWAP_CACHED, usage.swap_cached as f64),
        Info::new(keys::NODE_SAMPLE_TIME, Value::Time(usage.seen)),
    ]
}
