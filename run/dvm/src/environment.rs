//! The environment of a process: what it inherits, the changes that a spawn requests, and what its server and we add.

use std::collections::BTreeMap;

use phalanx_spec::Rank;
use phalanx_wire::Text;

use crate::models;
use crate::msg::{AppDesc, Change, EnvChange, JobDesc, Life};

/// Whole entries, `NAME=VALUE`, by name.
#[derive(Debug, Default)]
struct Variables(BTreeMap<Vec<u8>, Text>);

impl Variables {
    fn enter(&mut self, entry: Text) {
        let name = entry.as_bytes().split(|b| *b == b'=').next().unwrap_or_default().to_vec();
        self.0.insert(name, entry);
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        self.0.insert(name.to_vec(), Text::from_bytes(&[name, b"=", value].concat()));
    }

    fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.0.get(name).and_then(|entry| entry.as_bytes().get(name.len() + 1..))
    }

    fn change(&mut self, EnvChange { name, how }: &EnvChange) {
        let name = name.as_bytes();
        let before = self.get(name).filter(|value| !value.is_empty());
        let joined = |first: &[u8], separator: u8, last: &[u8]| [first, &[separator], last].concat();
        let value = match (how, before) {
            (Change::Unset, _) => {
                self.0.remove(name);
                return;
            }
            (Change::Add(_), _) if self.0.contains_key(name) => return,
            (Change::Set(value) | Change::Add(value), _)
            | (Change::Prepend(value, _) | Change::Append(value, _) | Change::First(value, _), None) => {
                value.as_bytes().to_vec()
            }
            (Change::Prepend(value, separator), Some(before)) => joined(value.as_bytes(), *separator, before),
            (Change::Append(value, separator), Some(before)) => joined(before, *separator, value.as_bytes()),
            (Change::First(value, separator), Some(before)) => {
                let others = before.split(|byte| byte == separator).filter(|part| *part != value.as_bytes());
                let parts: Vec<&[u8]> = [value.as_bytes()].into_iter().chain(others).collect();
                parts.join(separator)
            }
        };
        self.set(name, &value);
    }
}

/// `NAME=VALUE`, each name once; later sources win: the job, the app, the requested changes, its prefix; then the variables
/// that identify the process: those of other launchers, of the server, and ours.
pub(crate) fn environment(
    desc: &JobDesc,
    app: &AppDesc,
    rank: Rank,
    (host, local_size): (&str, usize),
    life: Option<&Life>,
    server: Vec<(String, String)>,
) -> Vec<Text> {
    let mut env = Variables::default();
    desc.env.iter().cloned().for_each(|entry| env.enter(entry));
    // Some shells put the host of px here.
    if env.get(b"HOSTNAME").is_some() {
        env.set(b"HOSTNAME", host.as_bytes());
    }
    app.env.iter().cloned().for_each(|entry| env.enter(entry));
    app.changes.iter().for_each(|change| env.change(change));
    if let Some(prefix) = &app.prefix {
        for (name, below) in [("PATH", "/bin"), ("LD_LIBRARY_PATH", "/lib")] {
            let directory = Text::from_bytes(&[prefix.as_bytes(), below.as_bytes()].concat());
            env.change(&EnvChange { name: name.into(), how: Change::Prepend(directory, b':') });
        }
    }
    env.0.retain(|name, _| !is_identity(name));
    for (name, value) in models::variables(desc, rank, local_size) {
        env.set(name.as_bytes(), value.as_bytes());
    }
    for (name, value) in server {
        env.set(name.as_bytes(), value.as_bytes());
    }
    let places = &desc.places;
    for (name, value) in [
        ("PHALANX_JOB", desc.nspace.to_string()),
        ("PHALANX_RANK", rank.to_string()),
        ("PHALANX_SIZE", desc.size.to_string()),
        ("PHALANX_LOCAL_RANK", places.local_rank.get(rank.0).to_string()),
        ("PHALANX_LOCAL_SIZE", local_size.to_string()),
        ("PHALANX_NODE_RANK", places.node_rank.get(rank.0).to_string()),
        ("PHALANX_APP", places.app.get(rank.0).to_string()),
    ] {
        env.set(name.as_bytes(), value.as_bytes());
    }
    if let Some(Life { number, from }) = life {
        if *number > 0 {
            env.set(b"PHALANX_RESTARTS", number.to_string().as_bytes());
        }
        from.iter().for_each(|name| env.set(b"PHALANX_RESTART_FROM", name.as_bytes()));
    }
    env.0.into_values().collect()
}

/// Whether a variable identifies a process in its job, or its server. A program that passes on its whole environment to what it
/// starts does not mean these: each process has its own, or none.
pub fn is_identity(name: &[u8]) -> bool {
    IDENTITIES.iter().any(|known| match known.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == known.as_bytes(),
    })
}

/// Variables that shells set themselves are not listed: shells replace inherited ones.
const IDENTITIES: &[&str] = &[
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "PMIX_SERVER_URI*",
    "PMIX_KEEPALIVE_PIPE",
    "PHALANX_APP",
    "PHALANX_CHECKPOINT",
    "PHALANX_IN_BACKGROUND",
    "PHALANX_JOB",
    "PHALANX_LOCAL_RANK",
    "PHALANX_LOCAL_SIZE",
    "PHALANX_NODE_RANK",
    "PHALANX_PID",
    "PHALANX_RANK",
    "PHALANX_RESTARTS",
    "PHALANX_RESTART_FROM",
    "PHALANX_SERVER_URI",
    "PHALANX_SIZE",
];

#[cfg(test)]
mod tests {
    use phalanx_spec::keys;
    use phalanx_wire::{Envar, Info, Value};

    use super::*;

    /// Key, name and value.
    type Said = (&'static str, &'static str, &'static str);

    fn after(changes: &[Said]) -> Option<String> {
        let mut env = Variables::default();
        env.enter("LIST=one:two".into());
        for (key, name, value) in changes {
            let envar = Envar { name: Some((*name).into()), value: Some((*value).into()), separator: b':' };
            let change = EnvChange::of(&Info::new(key, Value::Envar(Box::new(envar)))).unwrap().unwrap();
            env.change(&change);
        }
        env.get(b"LIST").map(|value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let (set, unset, add) = (keys::SET_ENVAR, keys::UNSET_ENVAR, keys::ADD_ENVAR);
        let (prepend, append, first) = (keys::PREPEND_ENVAR, keys::APPEND_ENVAR, keys::FIRST_ENVAR);
        let list = "LIST";
        let cases: [(&[Said], Option<&str>); 9] = [
            (&[(unset, list, "")], None),
            (&[(set, list, "x"), (unset, list, "")], None),
            (&[(unset, list, ""), (set, list, "x")], Some("x")),
            (&[(add, list, "x")], Some("one:two")),
            (&[(unset, list, ""), (add, list, "x")], Some("x")),
            (&[(prepend, list, "0"), (append, list, "3")], Some("0:one:two:3")),
            (&[(first, list, "two")], Some("two:one")),
            (&[(unset, list, ""), (append, list, "x")], Some("x")),
            (&[(set, "OTHER", "x")], Some("one:two")),
        ];
        for (changes, expected) in cases {
            assert_eq!(after(changes).as_deref(), expected, "{changes:?}");
        }
    }

    #[test]
    fn malformed_changes_are_refused() {
        let of = |key, value| EnvChange::of(&Info::new(key, value)).unwrap();
        let envar =
            |name: &str| Value::Envar(Box::new(Envar { name: Some(name.into()), value: None, separator: 0 }));
        assert!(of(keys::SET_ENVAR, "A=1".into()).is_ok());
        assert!(of(keys::UNSET_ENVAR, "A".into()).is_ok());
        for (key, value) in [
            (keys::SET_ENVAR, "A".into()),
            (keys::UNSET_ENVAR, "A=1".into()),
            (keys::PREPEND_ENVAR, "A=1".into()),
            (keys::SET_ENVAR, 7_u32.into()),
            (keys::SET_ENVAR, envar("")),
            (keys::ADD_ENVAR, envar("A=B")),
        ] {
            assert!(of(key, value).is_err(), "{key}");
        }
        assert!(EnvChange::of(&Info::new(keys::WDIR, "/")).is_none());
    }
}
