//! Finds the values that a get asks for, or what the get has to wait for.

use phalanx_spec::{Rank, Scope, Status, keys};
use phalanx_wire::{Info, InfoList, Key, Kval, ProcId, Value};

use super::known::{Known, Look, Waits, owned, to_kvals};
use super::levels::look_at_levels;
use super::told::{told_values, was_told};
use crate::qualified::{Name, name_of};
use crate::server::peer::Asker;
use crate::server::peers::Peers;
use crate::server::registry::{Client, Job, Stage, index};
use crate::server::values::Values;

/// Looks for values on behalf of a local process. `refresh`: stored values of remote ranks are not good enough.
pub(super) fn look(
    known: &Known,
    peers: &Peers,
    target: &ProcId,
    key: Option<&Key>,
    info: &[Info],
    asker: Option<&Asker>,
    refresh: bool,
) -> Look {
    let name = key.and_then(|key| Name::asked(key, info));
    let name = name.as_ref();
    let Some(job) = peers.jobs.get(&target.nspace) else {
        return match known.modex.get(target) {
            Some(values) if !refresh && has(&values, key, name) => Look::Found(vec![owned(target, values)]),
            _ => Look::Wait(Waits::Host { named: false }),
        };
    };
    if let Some(found) = look_at_levels(known, peers, job, target, key, info, asker) {
        return found;
    }
    if target.rank == Rank::UNDEF {
        return look_everywhere(known, job, key);
    }
    if index(target.rank).is_none_or(|i| i >= job.size()) {
        return Look::Never(Status::ERR_NOT_FOUND);
    }
    let foreign = asker.is_some_and(|asker| asker.proc.nspace != target.nspace);
    // The rank's location and the like: only reserved keys name it.
    let asked = foreign || key.is_none_or(Key::is_reserved);
    let mut placed = if asked { known.describer.proc_values(job, target.rank) } else { Vec::new() };
    if key.is_some_and(|key| *key == keys::PROC_PID) && !has(&placed, key, None) {
        let pid = job.client(target.rank).and_then(Client::pid);
        placed.extend(pid.map(|pid| Kval::new(keys::PROC_PID, Value::Pid(pid))));
    }
    let is_placed = name.is_none() && key.is_some_and(|key| has(&placed, Some(key), None));
    let found = |values: Vec<Kval>| {
        // Processes of the same job have the data that every rank starts with.
        let with_place = is_placed || foreign || key.is_none();
        let values = if with_place { placed.iter().cloned().chain(values).collect() } else { values };
        let job_data = asker.filter(|asker| foreign && !was_told(peers, asker, &target.nspace));
        Look::Found(
            job_data
                .map(|_| known.describer.job_as_owner(job, asker.map(|asker| &asker.proc)))
                .into_iter()
                .chain([owned(target, values)])
                .collect(),
        )
    };
    let Some(stage) = job.stage(target.rank) else {
        return match known.modex.get(target) {
            Some(values) if !refresh && (is_placed || has(&values, key, name)) => found(values),
            _ if is_placed => found(Vec::new()),
            _ => Look::Wait(Waits::Host { named: false }),
        };
    };
    let client = job.client(target.rank);
    // A local process gets the local values, unless it asks for the remote scope.
    let as_remote = info.find(keys::DATA_SCOPE) == Some(&Value::Scope(Scope::REMOTE));
    let told = asker.filter(|_| !refresh).and_then(|asker| told_values(peers, asker, target, info));
    let values = || match (client, told, key) {
        (Some(client), Some(told), Some(key)) => client.committed().local().since(told, key),
        (Some(client), ..) => to_kvals(client.committed().sides(as_remote).0),
        (None, ..) => Vec::new(),
    };
    if is_placed {
        return found(values());
    }
    match look_at_client(client, stage, key, name, as_remote) {
        None => found(values()),
        Some(look) => look,
    }
}

pub(super) fn look_for_others(peers: &Peers, target: &ProcId, key: Option<&Key>) -> Look {
    let Some(job) = peers.jobs.get(&target.nspace) else { return Look::Never(Status::ERR_NOT_FOUND) };
    let Some(stage) = job.stage(target.rank) else { return Look::Never(Status::ERR_NOT_FOUND) };
    let client = job.client(target.rank);
    // The request does not carry the qualifiers of the wanted value.
    if key.is_some_and(|key| client.is_some_and(|client| client.committed().remote().has_qualified(key))) {
        return Look::Found(Vec::new());
    }
    match look_at_client(client, stage, key, None, true) {
        None => Look::Found(Vec::new()),
        Some(look) => look,
    }
}

/// Looks for a key that is unique in its job, at any rank.
fn look_everywhere(known: &Known, job: &Job, key: Option<&Key>) -> Look {
    let Some(key) = key else { return Look::Never(Status::ERR_BAD_PARAM) };
    let nspace = &job.info().nspace;
    for (rank, client) in job.clients() {
        if client.committed().local().has(key, None) {
            let values = to_kvals(client.committed().local());
            return Look::Found(vec![owned(&ProcId::new(nspace, rank), values)]);
        }
    }
    match known.modex.find(nspace, key) {
        Some((rank, values)) => Look::Found(vec![owned(&ProcId::new(nspace, rank), values)]),
        None => Look::Wait(Waits::Key),
    }
}

/// Looks at the committed values of a local rank; `None` if the wanted one is there. `remote`: on behalf of processes of
/// other nodes. A key that exists only for the other side is never given to the asker.
fn look_at_client(
    client: Option<&Client>,
    stage: Stage,
    key: Option<&Key>,
    name: Option<&Name>,
    remote: bool,
) -> Option<Look> {
    let happened = client.is_some_and(|client| client.committed().happened());
    let (is_here, is_elsewhere) = client.map_or((false, false), |client| {
        let (here, elsewhere) = client.committed().sides(remote);
        let has = |values: &Values| key.is_some_and(|key| values.has(key, name));
        (has(here), has(elsewhere))
    });
    if is_here || (key.is_none() && (happened || stage == Stage::Finalized)) {
        return None;
    }
    let refused = client.and_then(|client| client.committed().refused());
    if let Some(status) = refused.filter(|_| !is_elsewhere && !key.is_some_and(Key::is_reserved)) {
        return Some(Look::Never(status));
    }
    Some(match stage {
        _ if is_elsewhere => Look::Never(Status::ERR_NOT_FOUND),
        Stage::Finalized | Stage::Lost | Stage::Gone => Look::Never(Status::ERR_NOT_FOUND),
        _ if key.is_some_and(|key| key.is_reserved() && *key != keys::QUALIFIED_VALUE) => {
            Look::Never(Status::ERR_NOT_FOUND)
        }
        _ if happened => Look::Wait(Waits::Key),
        _ => Look::Wait(Waits::Commit),
    })
}

fn has(values: &[Kval], key: Option<&Key>, name: Option<&Name>) -> bool {
    let is_named = |kval: &Kval| kval.key == keys::QUALIFIED_VALUE && name_of(&kval.value).as_ref() == name;
    match name {
        Some(_) => values.iter().any(is_named),
        None => key.is_none_or(|key| values.iter().any(|kval| kval.key == *key)),
    }
}
