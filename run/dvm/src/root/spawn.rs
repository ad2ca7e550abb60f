//! A process requests a new job: the same path as for the user's jobs, with the process as the parent.

use std::collections::BTreeSet;

use phalanx_core::HostReply;
use phalanx_core::support::{self, Honoured};
use phalanx_spec::{Rank, Status, attribute, functions, keys};
use phalanx_wire::{App, Info, InfoList, Key, Nspace, ProcId, Text, Value};

use crate::job::JobRequest;
use crate::root::answer::Asker;
use crate::root::debug;
use crate::root::dvm::Dvm;
use crate::root::jobs::{Jobs, RootJob};
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Operations;
use crate::root::operations::Taken;
use crate::root::premises::Premises;
use crate::root::query::names;
use crate::root::turn::{Cx, ENOUGH};
use crate::spawn::is_of_app;

/// Facts that servers and libraries add about the spawner and the programs. They request nothing.
const FACTS: &[&str] = &[
    keys::SPAWNED,
    keys::PARENT_ID,
    keys::REQUESTOR_IS_TOOL,
    keys::REQUESTOR_IS_CLIENT,
    keys::USERID,
    keys::GRPID,
    keys::PERSONALITY,
    keys::ENVARS_HARVESTED,
    keys::PROGRAMMING_MODEL,
    keys::MODEL_LIBRARY_NAME,
    keys::MODEL_LIBRARY_VERSION,
];

/// Why a spawn cannot even begin.
pub(super) struct Unfit {
    pub(super) status: Status,
    pub(super) why: String,
}

/// Directives that the user was warned about because nothing honours them.
pub(super) type Unsupported = BTreeSet<(Nspace, String)>;

/// A spawn of processes that do not run yet.
#[derive(Debug)]
pub(super) struct Spawning {
    pub(super) nspace: Nspace,
}

/// A spawn that waits for the daemons to come up.
#[derive(Debug)]
pub(super) struct Postponed(pub(super) Box<JobRequest>);

impl Kind for Spawning {
    fn name(&self) -> &'static str {
        "spawn"
    }

    fn concerns(&self, nspace: &Nspace) -> bool {
        self.nspace == *nspace
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Spawned(Err(status))
    }

    fn explain(&self, _: &[Asker], jobs: &Jobs) -> Explained {
        Explained {
            subject: self.nspace.to_string(),
            missing: not_started(jobs, &self.nspace),
            unblocked_by: "the start of the named processes",
            ..Explained::default()
        }
    }
}

impl Kind for Postponed {
    fn name(&self) -> &'static str {
        "spawn"
    }

    fn most(&self) -> usize {
        MOST_OPEN
    }

    fn failure(&self, status: Status) -> HostReply {
        HostReply::Spawned(Err(status))
    }

    fn explain(&self, _: &[Asker], _: &Jobs) -> Explained {
        let programs = self.0.apps.iter().filter_map(|app| app.argv.first()).map(Text::to_string_lossy);
        Explained {
            subject: programs.collect::<Vec<_>>().join(" "),
            unblocked_by: "the daemons of the DVM being up",
            ..Explained::default()
        }
    }
}

/// Takes out the spawns that wait for the daemons to come up, the oldest first.
#[must_use = "somebody waits for the answers"]
pub(super) fn take_postponed(operations: &mut Operations) -> Vec<Taken<Postponed>> {
    let numbers: Vec<u64> = operations.of::<Postponed>().map(|(number, _)| number).collect();
    numbers.into_iter().filter_map(|number| operations.take(number)).collect()
}

/// The job has ended; a spawn not answered by then has failed.
pub(super) fn end_of_job(cx: &mut Cx<'_>, operations: &mut Operations, job: &mut RootJob) {
    let status = match job.journal.start_status() {
        Status::SUCCESS => Status::ERR_JOB_FAILED_TO_LAUNCH,
        status => status,
    };
    if let Some(spawn) = job.spawn.take() {
        end(cx, operations, spawn, &Err(status));
    }
}

pub(super) fn end(cx: &mut Cx<'_>, operations: &mut Operations, spawn: u64, result: &Result<Nspace, Status>) {
    let spawning = operations.take::<Spawning>(spawn);
    let askers = spawning.map(|spawning| spawning.askers).unwrap_or_default();
    askers.into_iter().for_each(|asker| asker.answer.give(cx, HostReply::Spawned(result.clone())));
}

/// Reports directives that are optional and not honoured.
pub(super) fn tell_ignored(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    unsupported: &mut Unsupported,
    parent: &ProcId,
    job: &[Info],
) {
    let Some(ignored) = job.find(names::IGNORED).and_then(Value::as_str) else { return };
    for key in ignored.split(',') {
        let name = attribute(key).map_or("an attribute", |attribute| attribute.name);
        let note = format!("{name} ({key}) is not supported, and was ignored");
        if dvm.is_tool(parent) || is_first_unsupported(unsupported, parent, &note) {
            tell_parent(cx, dvm, parent, &note);
        }
    }
}

/// Whether this is the first such message for the job.
pub(super) fn is_first_unsupported(unsupported: &mut Unsupported, parent: &ProcId, note: &str) -> bool {
    if unsupported.len() >= MOST_UNSUPPORTED {
        unsupported.clear();
    }
    unsupported.insert((parent.nspace.clone(), note.to_owned()))
}

/// Reports a failed spawn. Only the calling rank gets an answer; others may take part in the same MPI_Comm_spawn, and not every MPI library
/// notifies them.
pub(super) fn tell_failed(cx: &mut Cx<'_>, dvm: &Dvm, parent: &ProcId, error: &str) {
    let has_others = dvm.desc(&parent.nspace).is_some_and(|desc| desc.size > 1);
    let hint = if has_others { FAILED_FOR_ONE } else { "" };
    tell_parent(cx, dvm, parent, &format!("{error}{hint}"));
}

/// Reports details that a status cannot carry.
pub(super) fn tell_parent(cx: &mut Cx<'_>, dvm: &Dvm, parent: &ProcId, text: &str) {
    match dvm.is_tool(parent) {
        true => dvm.tell_user_of(cx, parent, text),
        false => dvm.tell_user_of(cx, parent, &format!("spawning a job for {parent}: {text}")),
    }
}

pub(super) fn to_request(dvm: &Dvm, from: &ProcId, job: &[Info], apps: &[App]) -> Result<JobRequest, Unfit> {
    let env = match dvm.jobs.get(&from.nspace) {
        Some(job) => job.desc.inherited(),
        None if dvm.is_tool(from) => dvm.config.env.clone(),
        None => {
            let why = "the server does not know who asks".to_owned();
            return Err(Unfit { status: Status::ERR_NOT_FOUND, why });
        }
    };
    if let Some(directive) = not_honoured(dvm.functions, job, apps).find_map(required_in) {
        let why = refusal(functions::SPAWN, directive);
        return Err(Unfit { status: Status::ERR_NOT_SUPPORTED, why });
    }
    if let Some(why) = debug::impossible(job, apps) {
        return Err(Unfit { status: Status::ERR_NOT_SUPPORTED, why });
    }
    let unreadable = |why| Unfit { status: Status::ERR_BAD_PARAM, why };
    let mut request = JobRequest::of_spawn(from, env, job, apps).map_err(unreadable)?;
    request.info.retain(|info| info.key != *names::IGNORED);
    if let Some(parent) = dvm.jobs.get(&from.nspace) {
        // What a job starts ends as that job does, and shares slots as that job may.
        request.kill_after = request.kill_after.or(parent.desc.kill_after);
        let of_parent = parent.journal.premises().and_then(Premises::oversubscribe);
        let own = &mut request.policy.map.oversubscribe;
        *own = own.or(of_parent);
    }
    let ignored = ignored(from, dvm.functions, job, apps);
    if !ignored.is_empty() {
        request.info.push(Info::new(names::IGNORED, ignored.join(",")));
    }
    Ok(request)
}

/// The processes of a job that are not known to run, as many as a person reads.
fn not_started(jobs: &Jobs, nspace: &Nspace) -> Vec<ProcId> {
    let Some(job) = jobs.get(nspace) else { return Vec::new() };
    let missing = (0..job.desc.size).filter(|rank| job.journal.pid(Rank(*rank)).is_none());
    missing.take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect()
}

/// The key that a directive requires and nothing honours: its own, or one inside its value.
pub(crate) fn required_in(info: &Info) -> Option<&Key> {
    if info.is_required() {
        return Some(&info.key);
    }
    match &info.value {
        Value::DataArray(array) => array.infos().find_map(required_in),
        Value::Info(inner) => required_in(inner),
        _ => None,
    }
}

/// The message for a function refused because of a required directive.
pub(crate) fn refusal(function: &str, directive: &Key) -> String {
    let name = attribute(directive.as_str()).map_or("an attribute", |attribute| attribute.name);
    format!("{function} was refused: it requires {name} ({directive}), which is not supported")
}

/// Directives that are not carried out.
fn not_honoured<'a>(
    functions: &'a [Honoured],
    job: &'a [Info],
    apps: &'a [App],
) -> impl Iterator<Item = &'a Info> {
    // Tools get the output and write it themselves.
    let is_tool = job.is_set(keys::REQUESTOR_IS_TOOL);
    let is_honoured = move |info: &Info| {
        let honoured = support::honoured(functions, functions::SPAWN);
        honoured.is_some_and(|mut keys| keys.any(|key| info.key == *key))
            || (is_tool && info.key == *keys::IOF_LOCAL_OUTPUT)
    };
    let of_job = job.iter().filter(move |info| !is_honoured(info));
    of_job.chain(apps.iter().flat_map(|app| &app.info).filter(|info| !is_of_app(info.key.as_str())))
}

/// The keys of the ignored directives, each once. A flag that is false requests nothing.
fn ignored<'a>(from: &ProcId, functions: &'a [Honoured], job: &'a [Info], apps: &'a [App]) -> Vec<&'a str> {
    let asks = |info: &&Info| match info.key.as_str() {
        keys::PARENT_ID => info.value.as_proc() != Some(from),
        keys::PERSONALITY => !is_served(&info.value),
        key => info.value != Value::Bool(false) && !FACTS.contains(&key) && key != names::IGNORED,
    };
    let asked = not_honoured(functions, job, apps).filter(asks);
    let mut keys: Vec<&str> = asked.map(|info| info.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Whether every job provides what programs of these models need.
fn is_served(personality: &Value) -> bool {
    let mut models = personality.as_str().unwrap_or_default().split(',');
    models.all(|model| PERSONALITIES.contains(&model))
}

/// Whether output goes to files of its own.
pub(super) fn writes_files(job: &[Info]) -> bool {
    [keys::IOF_OUTPUT_TO_FILE, keys::IOF_OUTPUT_TO_DIRECTORY].into_iter().any(|key| job.find(key).is_some())
}

pub(super) const STILL_STARTING: &str =
    "the DVM is still starting its daemons: try again when they are there";
/// The names by which libraries and launchers call the programming models that run here.
const PERSONALITIES: [&str; 10] =
    ["mpi", "mpich", "intelmpi", "ompi", "ompi4", "ompi5", "oshmem", "pmix", "prte", "prrte"];
/// The most messages that are remembered as already shown.
const MOST_UNSUPPORTED: usize = 64;
const FAILED_FOR_ONE: &str = "; the other ranks of an MPI_Comm_spawn may not hear of this: with Open MPI 4 they wait until the job is ended";
