//! The attributes that place ranks, with the words of the launcher's options as values.

use phalanx_spec::keys;
use phalanx_topo::CpuSet;
use phalanx_wire::Info;

use super::{Attribute, listed, read, set, words};
use crate::map::{BindPolicy, MapPolicy, Policy};

pub(super) const TABLE: [Attribute<Policy>; 6] = [
    Attribute {
        key: keys::MAPBY,
        read: |policy, value| set(&mut policy.map, words(value)?.parse().map_err(said)?),
        write: |policy| (policy.map != MapPolicy::default()).then(|| policy.map.to_string().into()),
        required: false,
    },
    Attribute {
        key: keys::RANKBY,
        read: |policy, value| set(&mut policy.rank, Some(words(value)?.parse().map_err(said)?)),
        write: |policy| policy.rank.map(|rank| rank.to_string().into()),
        required: false,
    },
    Attribute {
        key: keys::BINDTO,
        read: |policy, value| set(&mut policy.bind, words(value)?.parse().map_err(said)?),
        write: |policy| (policy.bind != BindPolicy::default()).then(|| policy.bind.to_string().into()),
        required: false,
    },
    Attribute {
        key: keys::CPU_LIST,
        read: |policy, value| set(&mut policy.cpu_set, Some(CpuSet::from_list(words(value)?).map_err(said)?)),
        write: |policy| policy.cpu_set.as_ref().map(|cpus| cpus.to_string().into()),
        required: false,
    },
    Attribute {
        key: SEQUENCE,
        read: |policy, value| {
            let file = policy.map.file.clone().unwrap_or_default();
            set(&mut policy.sequence, Some(listed::read_sequence(file, value)?))
        },
        write: |policy| policy.sequence.as_ref().map(listed::write_sequence),
        required: true,
    },
    Attribute {
        key: RANKFILE,
        read: |policy, value| {
            let file = policy.map.file.clone().unwrap_or_default();
            set(&mut policy.rankfile, Some(listed::read_rankfile(file, value)?))
        },
        write: |policy| policy.rankfile.as_ref().map(listed::write_rankfile),
        required: true,
    },
];

/// The contents of the file that `PMIX_MAPBY` names, read by the launcher.
pub const SEQUENCE: &str = "phalanx.sequence";
pub const RANKFILE: &str = "phalanx.rankfile";

/// The placement that the attributes request.
pub(super) fn policy(said: &[Info]) -> Result<Policy, String> {
    let mut policy = Policy::default();
    read(&TABLE, &mut policy, said)?;
    match policy.map.file.is_some() && policy.sequence.is_none() && policy.rankfile.is_none() {
        true => Err(format!(
            "{}: files are read by the launcher that is told of them, not by this server",
            keys::MAPBY
        )),
        false => Ok(policy),
    }
}

fn said(error: impl ToString) -> String {
    error.to_string()
}
