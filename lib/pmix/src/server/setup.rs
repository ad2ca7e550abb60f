//! Setup: what all nodes of a job get before it starts, how a node applies it, and the resulting environment of a process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use std::sync::{Arc, MutexGuard, PoisonError};

use phalanx_core::server::environment;
use phalanx_core::{ServerCall, ServerConfig, ServerReturn};
use phalanx_spec::{Status, keys};
use phalanx_wire::regex::regex_to_nodes;
use phalanx_wire::{Blob, DataArray, Envar, Info, InfoList, Nspace, ProcId, Text, Value};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{Server, unexpected};
use crate::error::Error;

/// Changes to the environments of processes, by job.
pub(super) type Changes = Arc<BTreeMap<Nspace, Vec<EnvChange>>>;

/// The environment by which processes find a server, apart from the server: usable in a forked child, where the server is
/// not, and after the server has ended.
#[derive(Clone, Debug)]
pub struct ForkSetup {
    config: Arc<ServerConfig>,
    changes: Changes,
}

impl ForkSetup {
    /// The changes to the environment of this process: the variables for the server's address and the process's identity, and
    /// those that the setup of its job changes. Each name occurs once; without a value it is to be unset. `inherited` returns
    /// the previous values.
    pub fn environment(
        &self,
        proc: &ProcId,
        inherited: impl Fn(&OsStr) -> Option<OsString>,
    ) -> Vec<(OsString, Option<OsString>)> {
        let mut all: BTreeMap<OsString, Option<OsString>> = BTreeMap::new();
        for change in self.changes.get(&proc.nspace).into_iter().flatten() {
            let name = OsStr::from_bytes(change.name.as_bytes());
            let old = all.get(name).cloned().unwrap_or_else(|| inherited(name));
            let new = change.over(old.as_ref().map(|old| old.as_bytes()));
            all.insert(name.to_owned(), new.map(OsString::from_vec));
        }
        let own = environment(&self.config, proc).into_iter();
        all.extend(own.map(|(name, value)| (name.into(), Some(value.into()))));
        all.into_iter().collect()
    }
}

/// One change of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvChange {
    name: Text,
    value: Text,
    separator: u8,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Set,
    Add,
    Unset,
    Prepend,
    Append,
}

impl EnvChange {
    /// The new value of a variable with this old one; `None`: it is unset.
    fn over(&self, old: Option<&[u8]>) -> Option<Vec<u8>> {
        let new = self.value.as_bytes();
        let joined = |parts: [&[u8]; 2]| Some(parts.join(&self.separator));
        match (self.how, old) {
            (How::Unset, _) => None,
            (How::Add, Some(old)) => Some(old.to_vec()),
            (How::Prepend, Some(old)) => joined([new, old]),
            (How::Append, Some(old)) => joined([old, new]),
            (How::Set, _) | (How::Add | How::Prepend | How::Append, None) => Some(new.to_vec()),
        }
    }

    fn of(info: &Info) -> Option<EnvChange> {
        let how = match info.key.as_str() {
            keys::SET_ENVAR => How::Set,
            keys::ADD_ENVAR => How::Add,
            keys::UNSET_ENVAR => How::Unset,
            keys::PREPEND_ENVAR => How::Prepend,
            keys::APPEND_ENVAR => How::Append,
            _ => return None,
        };
        match &info.value {
            Value::Envar(envar) => {
                let value = envar.value.clone().unwrap_or_else(|| Text::from_bytes(b""));
                Some(EnvChange { name: envar.name.clone()?, value, separator: envar.separator, how })
            }
            value if how == How::Unset => {
                let name = value.as_text()?.clone();
                Some(EnvChange { name, value: Text::from_bytes(b""), separator: b':', how })
            }
            _ => None,
        }
    }
}

impl Server {
    /// What all nodes of a job should get before it starts (`PMIx_server_setup_application`), each by
    /// [`setup_local_support`](Server::setup_local_support). `info` selects it: with `pmix.setup.env` the variables of this
    /// process's environment that configure libraries for parallel programs, limited to those of `pmix.pgm.model`,
    /// `pmix.mdl.name` or `pmix.pers` if one is given; with `pmix.setup.nenv` the inventories of the nodes of `pmix.nmap`; with
    /// `pmix.setup.all` both; with `pmix.alloc.net` and `pmix.alloc.nsec` in it a secret key that only the job's processes
    /// share.
    pub fn setup_application(&self, nspace: &Nspace, info: &[Info]) -> Result<Vec<Info>, Error> {
        let (answer, hosts) = application(nspace, info)?;
        completed(answer, self.call(ServerCall::Inventory { hosts })?)
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn setup_application_then(
        &self,
        nspace: &Nspace,
        info: &[Info],
        then: impl FnOnce(Result<Vec<Info>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let (answer, hosts) = application(nspace, info)?;
        let call = ServerCall::Inventory { hosts };
        self.call_then(call, move |result| then(result.and_then(|result| completed(answer, result))))
    }

    /// Prepares this node for processes of a job (`PMIx_server_setup_local_support`) with the result of
    /// [`setup_application`](Server::setup_application) on some server: variables are for their environments, all else becomes
    /// values of their job.
    pub fn setup_local_support(&self, nspace: &Nspace, info: &[Info]) -> Result<(), Error> {
        match self.take_setup(nspace, info)? {
            Some(job) => self.register_job(job),
            None => Ok(()),
        }
    }

    /// The same without waiting. `then` does not run if this call fails.
    pub fn setup_local_support_then(
        &self,
        nspace: &Nspace,
        info: &[Info],
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        match self.take_setup(nspace, info)? {
            Some(job) => self.register_job_then(job, then),
            // Where progress is made, as always.
            None => self.call_then(ServerCall::Explain, move |result| then(result.map(drop))),
        }
    }

    /// Prepares a command to be this process (`PMIx_server_setup_fork`): with the variables for the server's address and the
    /// process's identity, and with the changes from the setup of its job, applied to what the command has or inherits from
    /// this process. A command does not reveal that its environment was cleared: use [`ForkSetup::environment`] for those.
    /// Done on the calling thread, whichever that is.
    pub fn setup_fork(&self, proc: &ProcId, command: &mut Command) -> Result<(), Error> {
        self.check_pid()?;
        let before: BTreeMap<OsString, Option<OsString>> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))).collect();
        let inherited = |name: &OsStr| match before.get(name) {
            Some(stated) => stated.clone(),
            None => std::env::var_os(name),
        };
        for (name, value) in self.fork_setup().environment(proc, inherited) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ok(())
    }

    /// The same for hosts that set a process up after it was forked, as Slurm does, and for those that make environments
    /// from nothing.
    pub fn fork_setup(&self) -> ForkSetup {
        ForkSetup { config: self.config.clone(), changes: self.changes().clone() }
    }

    /// The job to be registered with the new values, if there are any.
    fn take_setup(&self, nspace: &Nspace, info: &[Info]) -> Result<Option<phalanx_core::JobInfo>, Error> {
        self.check_pid()?;
        let is_change = |info: &&Info| SUPPORT_ATTRIBUTES.contains(&info.key.as_str());
        let changes: Vec<EnvChange> = info.iter().filter_map(EnvChange::of).collect();
        if !changes.is_empty() {
            Arc::make_mut(&mut *self.changes()).entry(nspace.clone()).or_default().extend(changes);
        }
        self.tell_job(nspace, info.iter().filter(|info| !is_change(info)).cloned().collect())
    }

    pub(super) fn forget_changes(&self, nspace: &Nspace) {
        let mut changes = self.changes();
        if changes.contains_key(nspace) {
            Arc::make_mut(&mut *changes).remove(nspace);
        }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What can be answered at once, and the nodes whose inventories are wanted besides.
fn application(nspace: &Nspace, info: &[Info]) -> Result<(Vec<Info>, Vec<String>), Error> {
    let refused =
        |why: String, status| Error::Failed { operation: format!("setup of {nspace}{why}"), status };
    let known = |key: &str| SETUP_ATTRIBUTES.contains(&key);
    if let Some(unknown) = info.iter().find(|one| one.is_required() && !known(one.key.as_str())) {
        let why = format!(" with the required attribute {}", unknown.key);
        return Err(refused(why, Status::ERR_NOT_SUPPORTED));
    }
    let all = info.is_set(keys::SETUP_APP_ALL);
    let mut answer = Vec::new();
    if all || info.is_set(keys::SETUP_APP_ENVARS) {
        answer.extend(harvest(info));
    }
    answer.extend(fabric(info)?);
    let mut hosts = Vec::new();
    if all || info.is_set(keys::SETUP_APP_NONENVARS) {
        let map = match info.find(keys::NODE_MAP) {
            Some(Value::Regex(blob) | Value::ByteObject(blob)) => blob.as_bytes(),
            Some(value) => value.as_text().map(Text::as_bytes).unwrap_or_default(),
            None => &[],
        };
        if !map.is_empty() {
            let unreadable = |error| refused(format!(": {error}"), Status::ERR_BAD_PARAM);
            hosts = regex_to_nodes(map, MOST_NODES).map_err(unreadable)?;
        }
    }
    Ok((answer, hosts))
}

fn completed(mut answer: Vec<Info>, inventories: ServerReturn) -> Result<Vec<Info>, Error> {
    match inventories {
        ServerReturn::Infos(arrays) => answer.extend(arrays.into_iter().filter_map(without_topology)),
        other => return Err(unexpected("setup of a job", &other)),
    }
    Ok(answer)
}

/// Every node has its own topology, and it is large.
fn without_topology(array: Info) -> Option<Info> {
    let members: Vec<Info> = array.value.as_array()?.infos().cloned().collect();
    let rest = members.into_iter().filter(|one| one.key != keys::TOPOLOGY_XML);
    Some(Info { value: DataArray::of_infos(rest).into(), ..array })
}

/// Variables of this process's environment, for processes that do not have them.
fn harvest(info: &[Info]) -> Vec<Info> {
    let named = [keys::PROGRAMMING_MODEL, keys::MODEL_LIBRARY_NAME, keys::PERSONALITY];
    let named: Vec<String> = named
        .into_iter()
        .filter_map(|key| info.find(key).and_then(Value::as_str))
        .flat_map(|names| names.split(',').map(|name| name.trim().to_lowercase()))
        .collect();
    let wanted = |models: &[&str]| {
        named.is_empty() || models.is_empty() || models.iter().any(|model| named.iter().any(|n| n == model))
    };
    let begins = |name: &[u8]| {
        let mut all =
            PREFIXES.iter().filter(|(models, _)| wanted(models)).flat_map(|(_, prefixes)| *prefixes);
        all.any(|prefix| name.starts_with(prefix.as_bytes()))
    };
    let mut found: Vec<_> = std::env::vars_os().filter(|(name, _)| begins(name.as_bytes())).collect();
    found.sort();
    let envar = |(name, value): (OsString, OsString)| Envar {
        name: Some(Text::from_bytes(name.as_bytes())),
        value: Some(Text::from_bytes(value.as_bytes())),
        separator: b':',
    };
    let added = |one| Info::new(keys::ADD_ENVAR, Value::Envar(Box::new(envar(one))));
    found.into_iter().map(added).collect()
}

/// The requested part of a fabric allocation: only a secret that the processes share is supported.
fn fabric(info: &[Info]) -> Result<Option<Info>, Error> {
    let Some(asked) = info.find(keys::ALLOC_FABRIC).and_then(Value::as_array) else { return Ok(None) };
    let asked: Vec<Info> = asked.infos().cloned().collect();
    if let Some(unknown) = asked.iter().find(|one| one.is_required() && !GIVEN.contains(&one.key.as_str())) {
        return Err(Error::Failed {
            operation: format!("allocation of a fabric with the required attribute {}", unknown.key),
            status: Status::ERR_NOT_SUPPORTED,
        });
    }
    if !asked.as_slice().is_set(keys::ALLOC_FABRIC_SEC_KEY) {
        return Ok(None);
    }
    let mut secret = [0; 16];
    getrandom(&mut secret, GetRandomFlags::empty())
        .map_err(|errno| Error::System { doing: "getting random bytes", source: errno.into() })?;
    let mut given: Vec<Info> = asked.into_iter().filter(|one| one.key == keys::ALLOC_FABRIC_ID).collect();
    given.push(Info::new(keys::ALLOC_FABRIC_SEC_KEY, Blob::from(secret.to_vec())));
    Ok(Some(Info::new(keys::ALLOC_FABRIC, DataArray::of_infos(given))))
}

/// The attributes of `PMIx_server_setup_application` that are honoured.
pub const SETUP_ATTRIBUTES: &[&str] = &[
    keys::SETUP_APP_ENVARS,
    keys::SETUP_APP_NONENVARS,
    keys::SETUP_APP_ALL,
    keys::NODE_MAP,
    keys::PROC_MAP,
    keys::ALLOC_FABRIC,
    keys::ALLOC_FABRIC_ID,
    keys::ALLOC_FABRIC_SEC_KEY,
    keys::PROGRAMMING_MODEL,
    keys::MODEL_LIBRARY_NAME,
    keys::PERSONALITY,
];

const GIVEN: &[&str] = &[keys::ALLOC_FABRIC_ID, keys::ALLOC_FABRIC_SEC_KEY];

/// The attributes by which `PMIx_server_setup_local_support` changes environments; all else becomes values of the job.
pub const SUPPORT_ATTRIBUTES: &[&str] =
    &[keys::SET_ENVAR, keys::ADD_ENVAR, keys::UNSET_ENVAR, keys::PREPEND_ENVAR, keys::APPEND_ENVAR];

/// Programming models, and the prefixes of the variables that configure their libraries. None of these variables identifies
/// a process.
const PREFIXES: &[(&[&str], &[&str])] = &[
    (&["mpi", "ompi", "openmpi", "open mpi"], &["OMPI_MCA_", "PMIX_MCA_", "OPAL_", "PRTE_MCA_"]),
    (&["mpi", "mpich"], &["MPICH_", "MPIR_CVAR_"]),
    (&["openmp"], &["OMP_"]),
    (&["shmem", "oshmem", "openshmem"], &["SHMEM_", "OSHMEM_MCA_"]),
    (&[], &["UCX_", "FI_", "PSM2_", "PSM3_", "NCCL_"]),
];

const MOST_NODES: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use phalanx_spec::attributes;
    use phalanx_wire::InfoFlags;

    use super::*;

    /// Endpoints and the like: required, they fail as not supported; optional, they are left out.
    #[test]
    fn of_fabrics_what_is_not_honoured_is_not_supported() {
        let nspace = Nspace::new("job").unwrap();
        let asked = |key: &'static str, flags| {
            let one = Info { flags, ..Info::new(key, true) };
            let of_fabric = Info::new(keys::ALLOC_FABRIC, DataArray::of_infos([one.clone()]));
            [[of_fabric], [one]].map(|info| application(&nspace, &info))
        };
        let family = attributes().filter(|one| one.name.starts_with("PMIX_ALLOC_FABRIC_"));
        let keys: Vec<&'static str> = family.map(|one| one.key).collect();
        assert!(keys.len() > 5 && keys.contains(&keys::ALLOC_FABRIC_ENDPTS), "{keys:?}");
        for key in keys {
            for required in asked(key, InfoFlags::REQUIRED) {
                let refused = required.is_err_and(|error| error.status() == Status::ERR_NOT_SUPPORTED);
                assert_eq!(refused, !SETUP_ATTRIBUTES.contains(&key), "{key}");
            }
            let [given, _] = asked(key, InfoFlags::empty());
            assert_eq!(given.unwrap().0.len(), usize::from(key == keys::ALLOC_FABRIC_SEC_KEY), "{key}");
        }
    }
}
