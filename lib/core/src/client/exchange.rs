//! What the members of a group that forms by invitation exchange: the values that each has put for other nodes, and its own
//! group information (`PMIX_GROUP_INFO`).
//!
//! No collective carries it: a process that accepts sends it along, and the leader passes all of it on with the event that the
//! group is formed. Each member keeps it under the group's context id, or unqualified if there is none. Values that a process
//! sends about others are ignored.

use phalanx_spec::{Scope, keys};
use phalanx_wire::cmd::get::OwnerData;
use phalanx_wire::{DataArray, Info, Kval, ProcId, Value};

use super::group::{keep_what_members_say, signed};
use super::link::Link;

/// This process's contribution for the members.
pub(super) fn contribution(link: &Link, info: &[Info]) -> Vec<Info> {
    let said = info.iter().filter(|one| one.key == keys::GROUP_INFO).cloned().collect();
    let values = link.store.offered();
    let endpoints = (!values.is_empty()).then(|| {
        let me = Info::new(keys::PROCID, link.config.proc.clone());
        let scope = Info::new(keys::DATA_SCOPE, Scope::REMOTE);
        let values =
            values.into_iter().map(|Kval { key, value }| Info { key, flags: Default::default(), value });
        Info::new(keys::PROC_INFO_ARRAY, DataArray::of_infos([me, scope].into_iter().chain(values)))
    });
    signed(link, said).into_iter().chain(endpoints).collect()
}

/// The group is formed: stores the members' contributions.
pub(super) fn keep_contributions(link: &Link, context_id: Option<u64>, given: &[Info]) {
    let me = &link.config.proc;
    for info in given.iter().filter(|info| info.key == keys::PROC_INFO_ARRAY) {
        let Some((owner, array)) = owner_of(info).filter(|(owner, _)| *owner != me) else { continue };
        // Only hosts provide values of the standard's keys.
        let values = array.infos().filter(|one| !one.key.is_reserved());
        let kvals = values.map(|one| Kval { key: one.key.clone(), value: one.value.clone() });
        match context_id {
            None => {
                let (owner, values) = (owner.clone(), kvals.collect());
                link.store.load_owner(OwnerData { owner, values });
            }
            Some(id) => {
                let qualifier = [Info::new(keys::GROUP_CONTEXT_ID, Value::Size(id))];
                kvals.for_each(|kval| {
                    link.store.keep_qualified(owner, &kval.key, &qualifier, kval.value);
                });
            }
        }
    }
    if let Some(id) = context_id {
        keep_what_members_say(link, id, given);
    }
}

/// The contributions of these processes about themselves.
pub(super) fn given_by(members: &[ProcId], info: &[Info]) -> Vec<Info> {
    let is_theirs = |info: &&Info| {
        let is_given = [keys::PROC_INFO_ARRAY, keys::GROUP_INFO].iter().any(|key| info.key == *key);
        is_given && owner_of(info).is_some_and(|(owner, _)| members.contains(owner))
    };
    info.iter().filter(is_theirs).cloned().collect()
}

/// The members' group information, for the program.
pub(super) fn said_in(given: &[Info]) -> Vec<Info> {
    given.iter().filter(|info| info.key == keys::GROUP_INFO).cloned().collect()
}

fn owner_of(info: &Info) -> Option<(&ProcId, &DataArray)> {
    let array = info.value.as_array()?;
    let first = array.infos().next().filter(|first| first.key == keys::PROCID)?;
    match &first.value {
        Value::Proc(owner) => Some((owner, array)),
        _ => None,
    }
}
