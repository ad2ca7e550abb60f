//! A process requests a new job: the same path as for the user's jobs, with the process as the parent.

use phalanx_core::output::Style;
use phalanx_core::support::{self, Honoured};
use phalanx_core::{HostReply, Time};
use phalanx_spec::{IofChannel, Rank, Status, attribute, functions, keys};
use phalanx_wire::{App, Info, InfoList, Key, Nspace, ProcId, Text, Value};

use crate::job::{JobRequest, JobVerdict};
use crate::root::answer::{Answer, Asker};
use crate::root::dvm::Dvm;
use crate::root::iof::{self, OUTPUTS};
use crate::root::jobs::{Jobs, RootJob};
use crate::root::kind::{Explained, Kind, MOST_OPEN};
use crate::root::operations::Taken;
use crate::root::premises::Premises;
use crate::root::query::names;
use crate::root::turn::{Cx, ENOUGH};
use crate::root::{Root, debug};
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
    status: Status,
    pub(super) why: String,
}

/// A spawn of processes that do not run yet.
#[derive(Debug)]
pub(super) struct Spawning {
    pub(super) nspace: Nspace,
}

/// A spawn that waits for the daemons to come up.
#[derive(Debug)]
pub(super) struct Postponed(Box<JobRequest>);

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

impl Root {
    pub(super) fn spawn(
        &mut self,
        cx: &mut Cx<'_>,
        answer: Answer,
        from: &ProcId,
        job: &[Info],
        apps: &[App],
    ) {
        let job = match to_request(&self.dvm, from, job, apps) {
            Ok(job) => job,
            Err(Unfit { status, why }) => {
                // A tool gets each message; the user of a job that spawns again and again gets it once.
                if self.dvm.is_tool(from) || self.is_first_unsupported(from, &why) {
                    self.tell_parent(cx, from, &why);
                }
                return answer.done(cx, status);
            }
        };
        if let Err(bad) = Style::default().overlaid(&job.info) {
            self.tell_parent(cx, from, &bad.to_string());
            return answer.done(cx, Status::ERR_BAD_PARAM);
        }
        self.tell_ignored(cx, from, &job.info);
        let until = job.start_timeout.map(|limit| cx.now.after(limit));
        let asker = Asker::new(from, answer);
        if self.dvm.nodes.are_up() {
            return self.launch_spawned(cx, asker, cx.now, until, &job);
        }
        if let Some(error) = self.dvm.nodes.failure() {
            return self.refuse_spawn(cx, asker, &error);
        }
        self.operations.begin(cx, Some(asker), until, Postponed(Box::new(job)));
    }

    /// Takes out the spawns that wait for the daemons to come up, the oldest first.
    #[must_use = "somebody waits for the answers"]
    fn take_postponed(&mut self) -> Vec<Taken<Postponed>> {
        let numbers: Vec<u64> = self.operations.of::<Postponed>().map(|(number, _)| number).collect();
        numbers.into_iter().filter_map(|number| self.operations.take(number)).collect()
    }

    /// The daemons are up: launches the spawns that have waited for them, in the order of the requests.
    pub(super) fn launch_postponed(&mut self, cx: &mut Cx<'_>) {
        for Taken { kind: Postponed(job), askers, since, until } in self.take_postponed() {
            for asker in askers {
                self.launch_spawned(cx, asker, since, until, &job);
            }
        }
    }

    /// The daemons will never be up.
    pub(super) fn refuse_postponed(&mut self, cx: &mut Cx<'_>, error: &str) {
        for postponed in self.take_postponed() {
            postponed.askers.into_iter().for_each(|asker| self.refuse_spawn(cx, asker, error));
        }
    }

    fn refuse_spawn(&mut self, cx: &mut Cx<'_>, asker: Asker, error: &str) {
        self.tell_failed(cx, &asker.by, error);
        asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_NOT_AVAILABLE)));
    }

    /// `submitted`: when the spawn was requested.
    fn launch_spawned(
        &mut self,
        cx: &mut Cx<'_>,
        asker: Asker,
        submitted: Time,
        until: Option<Time>,
        job: &JobRequest,
    ) {
        match self.launch(cx, None, submitted, job) {
            Ok(child) => {
                let spawning = Spawning { nspace: child.clone() };
                let spawn = self.operations.begin(cx, Some(asker), until, spawning);
                if let Some(job) = self.dvm.jobs.get_mut(&child) {
                    job.spawn = spawn;
                }
                let run_by = self.dvm.jobs.get_mut(&child).and_then(|job| job.descent.run_by.clone());
                let (files, only) = (writes_files(&job.info), job.info.is_set(keys::IOF_FILE_ONLY));
                if let Some(by) = run_by.filter(|_| !(files && only)) {
                    // The user's side writes the files, wherever else the output goes.
                    let channels = IofChannel(by.channels.0 & OUTPUTS.0);
                    iof::pull_for_parent(&mut self.readers, by.node, &by.tool, &child, channels, files);
                }
            }
            Err(error) => {
                self.tell_failed(cx, &asker.by, &error);
                asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP)));
            }
        }
    }

    /// Each process of the job runs, or never will: answers the spawner, once.
    pub(super) fn answer_spawn(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.dvm.jobs.get_mut(nspace) else { return };
        let status = job.journal.start_status();
        if let Some(spawn) = job.spawn.take() {
            let why = match job.journal.verdict() {
                Some(JobVerdict::NotStarted { error }) if !status.is_success() => Some(error.clone()),
                // It may have failed already, but it did run.
                _ => None,
            };
            if let Some((parent, error)) = job.desc.parent.clone().zip(why) {
                self.tell_failed(cx, &parent, &error);
            }
            let result = if status.is_success() { Ok(nspace.clone()) } else { Err(status) };
            self.end_spawn(cx, spawn, &result);
        }
        iof::begin_for_parent(cx, &mut self.readers, nspace);
    }

    /// The job has ended; a spawn not answered by then has failed.
    pub(super) fn answer_spawn_of(&mut self, cx: &mut Cx<'_>, job: &mut RootJob) {
        let status = match job.journal.start_status() {
            Status::SUCCESS => Status::ERR_JOB_FAILED_TO_LAUNCH,
            status => status,
        };
        if let Some(spawn) = job.spawn.take() {
            self.end_spawn(cx, spawn, &Err(status));
        }
    }

    fn end_spawn(&mut self, cx: &mut Cx<'_>, spawn: u64, result: &Result<Nspace, Status>) {
        let spawning = self.operations.take::<Spawning>(spawn);
        let askers = spawning.map(|spawning| spawning.askers).unwrap_or_default();
        askers.into_iter().for_each(|asker| asker.answer.give(cx, HostReply::Spawned(result.clone())));
    }

    /// Reports directives that are optional and not honoured.
    fn tell_ignored(&mut self, cx: &mut Cx<'_>, parent: &ProcId, job: &[Info]) {
        let Some(ignored) = job.find(names::IGNORED).and_then(Value::as_str) else { return };
        for key in ignored.split(',') {
            let name = attribute(key).map_or("an attribute", |attribute| attribute.name);
            let note = format!("{name} ({key}) is not supported, and was ignored");
            if self.dvm.is_tool(parent) || self.is_first_unsupported(parent, &note) {
                self.tell_parent(cx, parent, &note);
            }
        }
    }

    /// Whether this is the first such message for the job.
    fn is_first_unsupported(&mut self, parent: &ProcId, note: &str) -> bool {
        if self.unsupported.len() >= MOST_UNSUPPORTED {
            self.unsupported.clear();
        }
        self.unsupported.insert((parent.nspace.clone(), note.to_owned()))
    }

    /// Reports a failed spawn. Only the calling rank gets an answer; others may take part in the same MPI_Comm_spawn, and not every MPI library
    /// notifies them.
    fn tell_failed(&mut self, cx: &mut Cx<'_>, parent: &ProcId, error: &str) {
        let has_others = self.dvm.desc(&parent.nspace).is_some_and(|desc| desc.size > 1);
        let hint = if has_others { FAILED_FOR_ONE } else { "" };
        self.tell_parent(cx, parent, &format!("{error}{hint}"));
    }

    /// Reports details that a status cannot carry.
    fn tell_parent(&mut self, cx: &mut Cx<'_>, parent: &ProcId, text: &str) {
        match self.dvm.is_tool(parent) {
            true => self.dvm.tell_user_of(cx, parent, text),
            false => self.dvm.tell_user_of(cx, parent, &format!("spawning a job for {parent}: {text}")),
        }
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
