//! Answers a get from the store, or finds that the server must be asked.
//!
//! The standard lets a caller name the realm of a key (`pmix.node.info`, `pmix.app.info` ...). Without one, a reserved key is
//! looked up where it can be: at the rank, then at the job, then at the realms of this node, this app and the session.

use phalanx_spec::{Rank, keys};
use phalanx_wire::{DataArray, Info, InfoFlags, InfoList, Key, Nspace, ProcId, Value};

use super::space::{JobRealms, NodeRealm, Space};
use super::values::Values;
use super::{Store, read};
use crate::qualified::Name;

/// A get, in the terms of `PMIx_Get`.
#[derive(Clone, Debug, PartialEq)]
pub struct LookupRequest {
    pub proc: ProcId,
    /// None: all values of the process or realm, as an array of infos.
    pub key: Option<Key>,
    pub realm: Realm,
    /// `pmix.optional`: never ask the server.
    pub optional: bool,
    /// `pmix.get.refresh`: ignore stored values.
    pub refresh: bool,
    /// `pmix.scope`: only the server knows which of a key's values is meant.
    pub scoped: bool,
    /// The key with the qualifiers of the wanted value.
    pub qualified: Option<Name>,
}

/// Directives that decide where a value is looked up.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::SESSION_INFO,
    keys::JOB_INFO,
    keys::NODE_INFO,
    keys::HOSTNAME,
    keys::NODEID,
    keys::APP_INFO,
    keys::APPNUM,
    keys::DATA_SCOPE,
];

/// The realm that the caller names.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Realm {
    #[default]
    Unsaid,
    Session,
    Job,
    /// The caller's own node when neither is given.
    Node {
        name: Option<String>,
        id: Option<u32>,
    },
    /// The caller's own app when not given.
    App {
        number: Option<u32>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    Hit(Value),
    /// It is not here, and the caller does not want the server to be asked.
    Absent,
    AskServer,
}

impl LookupRequest {
    /// Reads the directives of `PMIx_Get`.
    pub fn new(proc: ProcId, key: Option<Key>, info: &[Info]) -> LookupRequest {
        LookupRequest {
            proc,
            qualified: key.as_ref().and_then(|key| Name::asked(key, info)),
            key,
            realm: Realm::of(info),
            optional: info.is_set(keys::OPTIONAL),
            refresh: info.is_set(keys::GET_REFRESH_CACHE),
            scoped: info.find(keys::DATA_SCOPE).is_some(),
        }
    }

    /// Whether the server knows at once that there is no such value: the host must provide reserved keys of a job before its
    /// processes start, while a user's key may be put at any time.
    pub fn is_for_job_data_of(&self, asker: &ProcId) -> bool {
        self.proc.nspace == asker.nspace && self.key.as_ref().is_some_and(Key::is_reserved)
    }
}

impl Realm {
    fn of(info: &[Info]) -> Realm {
        if info.is_set(keys::NODE_INFO) {
            Realm::Node {
                name: info.find(keys::HOSTNAME).and_then(Value::as_str).map(str::to_owned),
                id: info.find(keys::NODEID).and_then(Value::as_u32),
            }
        } else if info.is_set(keys::APP_INFO) {
            Realm::App { number: info.find(keys::APPNUM).and_then(Value::as_u32) }
        } else if info.is_set(keys::SESSION_INFO) {
            Realm::Session
        } else if info.is_set(keys::JOB_INFO) {
            Realm::Job
        } else {
            Realm::Unsaid
        }
    }
}

impl Store {
    pub fn lookup(&self, request: &LookupRequest) -> Lookup {
        let known = if request.refresh && !request.optional { None } else { self.known(request) };
        match known {
            Some(value) => Lookup::Hit(value),
            None if request.optional => Lookup::Absent,
            None => Lookup::AskServer,
        }
    }

    /// The result of a get after the server has answered.
    pub fn known(&self, request: &LookupRequest) -> Option<Value> {
        let LookupRequest { proc, key, realm, scoped, qualified, .. } = request;
        if let Some(name) = qualified {
            return self.qualified_value(proc, name);
        }
        let space = self.space(proc.nspace.as_str())?;
        let of = |values: &Values| match key {
            Some(key) => values.get(key.as_str()).cloned(),
            None => as_infos(values),
        };
        let realms = || read(&space.job);
        match realm {
            Realm::Unsaid => match key {
                Some(key) if *scoped => self.told_value(&space, proc.rank, key.as_str()),
                Some(key) => self.value(proc.nspace.as_str(), proc.rank, key.as_str()),
                None if proc.rank == Rank::WILDCARD => of(&realms().job),
                None => {
                    if !scoped {
                        self.catch_up(&space, proc.nspace.as_str(), proc.rank);
                    }
                    of(&read(&space.ranks).get(&proc.rank.0)?.values)
                }
            },
            // Slurm keeps some values of the job (the universe size) in the session only, PRRTE the other way round.
            Realm::Session => of(&realms().session).or_else(|| of(&realms().job)),
            Realm::Job => of(&realms().job),
            Realm::Node { name: host, id } => {
                let realms = realms();
                let node = match (host, id) {
                    (Some(host), _) => realms.node_named(host),
                    (None, Some(id)) => realms.node_numbered(*id),
                    (None, None) => self.my_node(&realms),
                };
                of(&node?.values)
            }
            Realm::App { number } => {
                let number = number.or_else(|| self.my_number(keys::APPNUM)).unwrap_or(0);
                of(realms().apps.get(&number)?)
            }
        }
    }

    /// The result of a get without directives. Allocates nothing, unless the value does.
    pub fn value(&self, nspace: &str, rank: Rank, key: &str) -> Option<Value> {
        let space = self.space(nspace)?;
        let collected = || self.collected_value(&space, nspace, rank, key);
        match key.starts_with(RESERVED) {
            _ if !rank.is_process() => self.told_value(&space, rank, key),
            // Values from hosts do not change. Some programs put such keys as well.
            true => self.told_value(&space, rank, key).or_else(collected),
            false => collected(),
        }
    }

    /// Looks only into the store, not into files of the server.
    fn told_value(&self, space: &Space, rank: Rank, key: &str) -> Option<Value> {
        match rank {
            // Rank WILDCARD has no node; a caller that means its own uses `pmix.node.info`.
            Rank::WILDCARD if key == keys::NODEID => None,
            Rank::WILDCARD => self.in_realms(&read(&space.job), key),
            // The only question about an unknown rank: the process's own.
            Rank::INVALID if key == keys::RANK => Some(Value::Rank(self.me.rank)),
            Rank::UNDEF => {
                let of_some_rank =
                    read(&space.ranks).values().find_map(|known| known.values.get(key).cloned());
                of_some_rank.or_else(|| self.in_realms(&read(&space.job), key))
            }
            rank => space.rank_value(rank, key).or_else(|| match key.starts_with(RESERVED) {
                true => {
                    let realms = read(&space.job);
                    self.in_realms(&realms, key)
                        .or_else(|| node_of(space, &realms, rank)?.values.get(key).cloned())
                }
                false => None,
            }),
        }
    }

    /// The hosts of a job, as far as they are known.
    pub fn node_names(&self, nspace: &Nspace) -> Vec<String> {
        self.space(nspace.as_str()).map(|space| read(&space.job).node_names()).unwrap_or_default()
    }

    /// Looks in all realms of the job: the job's own values, then this node's, this app's, the session's.
    fn in_realms(&self, realms: &JobRealms, key: &str) -> Option<Value> {
        let app = || realms.apps.get(&self.my_number(keys::APPNUM).unwrap_or(0));
        realms
            .job
            .get(key)
            .or_else(|| self.my_node(realms)?.values.get(key))
            .or_else(|| app()?.get(key))
            .or_else(|| realms.session.get(key))
            .cloned()
    }

    fn my_node<'a>(&self, realms: &'a JobRealms) -> Option<&'a NodeRealm> {
        let by_name = self.my_value(keys::HOSTNAME);
        let by_name = by_name.as_ref().and_then(Value::as_str).and_then(|name| realms.node_named(name));
        by_name.or_else(|| realms.node_numbered(self.my_number(keys::NODEID)?))
    }

    fn my_number(&self, key: &str) -> Option<u32> {
        self.my_value(key)?.as_u32()
    }

    fn my_value(&self, key: &str) -> Option<Value> {
        self.space(self.me.nspace.as_str())?.rank_value(self.me.rank, key)
    }
}

/// The node of a process. Tools have no node of their own in the jobs that they ask about.
fn node_of<'a>(space: &Space, realms: &'a JobRealms, rank: Rank) -> Option<&'a NodeRealm> {
    let of = |key| space.rank_value(rank, key);
    let by_name = of(keys::HOSTNAME);
    let by_name = by_name.as_ref().and_then(Value::as_str).and_then(|name| realms.node_named(name));
    by_name.or_else(|| realms.node_numbered(of(keys::NODEID)?.as_u32()?))
}

fn as_infos(values: &Values) -> Option<Value> {
    if values.is_empty() {
        return None;
    }
    let infos = values.iter().map(|(key, value)| Info {
        key: key.clone(),
        flags: InfoFlags::empty(),
        value: value.clone(),
    });
    Some(Value::DataArray(Box::new(DataArray::of_infos(infos))))
}

/// The prefix of the standard's keys.
const RESERVED: &str = "pmix";
