//! Values that belong to no rank: of a job, a session, an app, a node.

use phalanx_spec::{Rank, Status, keys};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{Info, InfoList, Key, Kval, ProcId, Value};

use super::known::{Known, Look};
use super::told::was_told;
use crate::server::debug::{is_stop, stops_of};
use crate::server::job_data::{app_array, name_of, ranks, session_array};
use crate::server::peer::Asker;
use crate::server::peers::Peers;
use crate::server::registry::{Job, index};
use crate::server::resources::NodeName;

/// Answers a get for a level; `None` if it is for a rank. Node and app values are answered as the array of their node or
/// app, under the job: that is where clients look for them.
pub(super) fn look_at_levels(
    known: &Known,
    peers: &Peers,
    job: &Job,
    target: &ProcId,
    key: Option<&Key>,
    info: &[Info],
    asker: Option<&Asker>,
) -> Option<Look> {
    let answer = |array: Option<Kval>| match array {
        Some(array) if key.is_none_or(|key| holds(&array, key)) => {
            Look::Found(vec![of_job(job, vec![array])])
        }
        _ => Look::Never(Status::ERR_NOT_FOUND),
    };
    if info.is_set(keys::NODE_INFO) {
        let array = match node_meant(job, target.rank, info) {
            Some(node) => complete_node(known, job, node),
            // The job has no processes there, but the host may have described the node.
            None => NodeName::named(info).and_then(|node| known.describer.resources.node_array(&node)),
        };
        return Some(answer(array));
    }
    if info.is_set(keys::APP_INFO) {
        let app = info.find(keys::APPNUM).and_then(Value::as_u32).or_else(|| {
            let of = if target.rank.is_process() { target.rank } else { asker?.proc.rank };
            job.info().procs.get(index(of)?).map(|proc| proc.app)
        });
        return Some(answer(app.and_then(|app| one_app(job, app))));
    }
    if info.is_set(keys::SESSION_INFO) {
        let session = session_array(job);
        let asked = info.find(keys::SESSION_ID).and_then(Value::as_u32);
        let id = session.value.as_array().and_then(|array| array.infos().next()?.value.as_u32());
        return Some(answer(Some(session).filter(|_| asked.is_none() || asked == id)));
    }
    (target.rank == Rank::WILDCARD).then(|| look_at_job(known, peers, job, key, asker))
}

fn look_at_job(known: &Known, peers: &Peers, job: &Job, key: Option<&Key>, asker: Option<&Asker>) -> Look {
    let foreign = asker.is_some_and(|asker| asker.proc.nspace != job.info().nspace);
    let told = asker.is_some_and(|asker| was_told(peers, asker, &job.info().nspace));
    let asker = asker.map(|asker| &asker.proc);
    // A client asks this way for any reserved key of another job, even for one of a single rank: it gets all data.
    if key.is_none() || (foreign && !told) {
        return Look::Found(vec![known.describer.job_as_owner(job, asker)]);
    }
    let Some(key) = key else { return Look::Never(Status::ERR_BAD_PARAM) };
    if let Some(topology) = known.describer.topology.value(key) {
        return Look::Found(vec![of_job(job, vec![topology])]);
    }
    let loose = match is_stop(key.as_str()) {
        true => stops_of(job, asker),
        false => known.describer.loose_values(job),
    };
    if let Some(kval) = loose.into_iter().find(|kval| kval.key == *key) {
        return Look::Found(vec![of_job(job, vec![kval])]);
    }
    let session = session_array(job);
    // Rank WILDCARD has no node, although each rank has one.
    let own_node = || complete_node(known, job, job.info().here.filter(|_| *key != keys::NODEID)?);
    let arrays = std::iter::once(session).chain(std::iter::once_with(own_node).flatten());
    match arrays.into_iter().find(|array| holds(array, key)) {
        Some(array) => Look::Found(vec![of_job(job, vec![array])]),
        None => Look::Never(Status::ERR_NOT_FOUND),
    }
}

/// A node of the job with all that is known of it.
fn complete_node(known: &Known, job: &Job, node: u32) -> Option<Kval> {
    let mut array = known.describer.node_array(job, node, &job.ranks_on(node).collect::<Vec<_>>())?;
    let described = job.node(node)?;
    known.describer.resources.complete(&mut array, &name_of(&described));
    Some(array)
}

/// The node named by number or by name, else the node of the rank, else our own.
fn node_meant(job: &Job, rank: Rank, info: &[Info]) -> Option<u32> {
    let position = |found: Option<usize>| found.and_then(|i| u32::try_from(i).ok());
    if let Some(id) = info.find(keys::NODEID).and_then(Value::as_u32) {
        return position(job.info().nodes.iter().position(|node| node.id == id));
    }
    if let Some(name) = info.find(keys::HOSTNAME).and_then(Value::as_str) {
        return position(job.node_named(name));
    }
    if rank.is_process() { job.node_of(rank) } else { job.info().here }
}

fn one_app(job: &Job, app: u32) -> Option<Kval> {
    let members = || ranks(job).zip(job.info().procs.iter()).filter(|(_, proc)| proc.app == app);
    let size = u32::try_from(members().count()).unwrap_or(u32::MAX);
    let leader = members().map(|(rank, _)| rank).next().unwrap_or(Rank::INVALID);
    app_array(job, app, size, leader)
}

fn holds(array: &Kval, key: &Key) -> bool {
    array.value.as_array().is_some_and(|array| array.infos().any(|info| info.key == *key))
}

fn of_job(job: &Job, values: Vec<Kval>) -> OwnerData {
    OwnerData { owner: ProcId::all(&job.info().nspace), values }
}
