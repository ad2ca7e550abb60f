//! A process asks for a new job: the same path as the user's, with the process as the parent.

use phalanx_core::output::Style;
use phalanx_core::support::{self, Honoured};
use phalanx_core::{HostReply, Time};
use phalanx_spec::{IofChannel, Rank, Status, attribute, functions, keys};
use phalanx_wire::{App, Info, InfoList, Key, Nspace, ProcId, Value, plain};

use crate::job::{JobRequest, JobVerdict};
use crate::msg::Down;
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::answer::Answer;
use crate::root::iof::OUTPUTS;
use crate::root::jobs::RootJob;
use crate::root::operations::{Asked, Asker};
use crate::root::query::names;
use crate::root::{Cx, ENOUGH, Root, debug};
use crate::spawn::is_of_app;

/// What servers and libraries say of whoever spawns, and of the programs. Nothing is asked for by it.
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

/// A spawn that cannot even begin, and why.
pub(super) struct Unfit {
    status: Status,
    pub(super) why: String,
}

/// A spawn whose processes do not run yet.
#[derive(Debug)]
pub(super) struct Spawning {
    pub(super) nspace: Nspace,
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
        let job = match self.to_request(from, job, apps) {
            Ok(job) => job,
            Err(Unfit { status, why }) => {
                // A tool is told each time; the user of a job that spawns again and again, once.
                if self.is_tool(from) || self.is_first_unsupported(from, &why) {
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
        if self.nodes.are_up() {
            return self.launch_spawned(cx, asker, cx.now, until, &job);
        }
        if let Some(error) = self.nodes.failure() {
            return self.refuse_spawn(cx, asker, &error);
        }
        self.begin_operation(cx, Some(asker), until, Asked::Postponed(Box::new(job)));
    }

    /// The daemons are up: what has waited for them begins, in the order in which it was asked for.
    pub(super) fn launch_postponed(&mut self, cx: &mut Cx<'_>) {
        for (operation, job) in self.take_postponed() {
            let (submitted, until) = (operation.since(), operation.until());
            for asker in operation.askers {
                self.launch_spawned(cx, asker, submitted, until, &job);
            }
        }
    }

    /// The daemons will never be up.
    pub(super) fn refuse_postponed(&mut self, cx: &mut Cx<'_>, error: &str) {
        for (operation, _) in self.take_postponed() {
            operation.askers.into_iter().for_each(|asker| self.refuse_spawn(cx, asker, error));
        }
    }

    fn refuse_spawn(&mut self, cx: &mut Cx<'_>, asker: Asker, error: &str) {
        self.tell_parent(cx, &asker.by, error);
        asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_NOT_AVAILABLE)));
    }

    /// `submitted`: since when it has been asked for.
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
                let asked = Asked::Spawn(Spawning { nspace: child.clone() });
                let spawn = self.begin_operation(cx, Some(asker), until, asked);
                if let Some(job) = self.jobs.get_mut(&child) {
                    job.spawn = spawn;
                }
                let run_by = self.jobs.get_mut(&child).and_then(|job| job.descent.run_by.clone());
                let (files, only) = (writes_files(&job.info), job.info.is_set(keys::IOF_FILE_ONLY));
                if let Some(by) = run_by.filter(|_| !(files && only)) {
                    // The user's side writes the files, wherever else the output goes.
                    let channels = IofChannel(by.channels.0 & OUTPUTS.0);
                    self.pull_for_parent(by.node, &by.tool, &child, channels, files);
                }
            }
            Err(error) => {
                self.tell_parent(cx, &asker.by, &error);
                asker.answer.give(cx, HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP)));
            }
        }
    }

    /// All processes of the job run, or never will: whoever asked for it is told, once.
    pub(super) fn answer_spawn(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        let status = job.journal.start_status();
        if let Some(spawn) = job.spawn.take() {
            let why = match job.journal.verdict() {
                Some(JobVerdict::NotStarted { error }) if !status.is_success() => Some(error.clone()),
                // It may have failed already; it ran.
                _ => None,
            };
            if let Some((parent, error)) = job.desc.parent.clone().zip(why) {
                self.tell_parent(cx, &parent, &error);
            }
            let result = if status.is_success() { Ok(nspace.clone()) } else { Err(status) };
            self.end_spawn(cx, spawn, &result);
        }
        self.begin_for_parent(cx, nspace);
    }

    /// The job has ended; if nobody could say before that it ran, it did not.
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
        let askers = self.end_operation(spawn).map(|operation| operation.askers).unwrap_or_default();
        askers.into_iter().for_each(|asker| asker.answer.give(cx, HostReply::Spawned(result.clone())));
    }

    /// The processes of a job that are not known to run; no more than people read.
    pub(super) fn not_started(&self, nspace: &Nspace) -> Vec<ProcId> {
        let Some(job) = self.jobs.get(nspace) else { return Vec::new() };
        let missing = (0..job.desc.size).filter(|rank| job.journal.pid(Rank(*rank)).is_none());
        missing.take(ENOUGH).map(|rank| ProcId::new(nspace, Rank(rank))).collect()
    }

    /// Directives that need not be honoured, and are not.
    fn tell_ignored(&mut self, cx: &mut Cx<'_>, parent: &ProcId, job: &[Info]) {
        let Some(ignored) = job.find(names::IGNORED).and_then(Value::as_str) else { return };
        for key in ignored.split(',') {
            let name = attribute(key).map_or("an attribute", |attribute| attribute.name);
            let note = format!("{name} ({key}) is not supported, and was ignored");
            if self.is_tool(parent) || self.is_first_unsupported(parent, &note) {
                self.tell_parent(cx, parent, &note);
            }
        }
    }

    /// Whether nobody of the job was told of this yet.
    fn is_first_unsupported(&mut self, parent: &ProcId, note: &str) -> bool {
        if self.unsupported.len() >= MOST_UNSUPPORTED {
            self.unsupported.clear();
        }
        self.unsupported.insert((parent.nspace.clone(), note.to_owned()))
    }

    /// What a status has no room for.
    fn tell_parent(&mut self, cx: &mut Cx<'_>, parent: &ProcId, text: &str) {
        match self.is_tool(parent) {
            true => self.tell_user_of(cx, parent, text),
            false => self.tell_user_of(cx, parent, &format!("spawning a job for {parent}: {text}")),
        }
    }

    /// A line for the user of a process. A tool, and the tool that runs the process's job, gets it as what the server prints,
    /// which it reads without asking; otherwise it goes to the user of the DVM.
    pub(super) fn tell_user_of(&mut self, cx: &mut Cx<'_>, proc: &ProcId, text: &str) {
        let run_by = self.jobs.get_mut(&proc.nspace).and_then(|job| job.descent.run_by.clone());
        let tool = run_by.map_or_else(|| proc.clone(), |by| by.tool);
        match self.node_of(&tool).filter(|_| self.is_tool(&tool)) {
            Some(node) => {
                // Libraries of others pass it to the user's terminal as it is.
                let (to, text) = (tool, format!("{}\n", plain::lines(text)));
                cx.cast(Ranges::single(node.0), Down::Say { to, text });
            }
            None => {
                let nspace = Some(proc.nspace.clone());
                cx.report(Report::Note { nspace, text: text.to_owned() });
            }
        }
    }

    pub(super) fn to_request(&self, from: &ProcId, job: &[Info], apps: &[App]) -> Result<JobRequest, Unfit> {
        let env = match self.jobs.get(&from.nspace) {
            Some(job) => job.desc.inherited(),
            None if self.is_tool(from) => self.config.env.clone(),
            None => {
                let why = "the server does not know who asks".to_owned();
                return Err(Unfit { status: Status::ERR_NOT_FOUND, why });
            }
        };
        if let Some(directive) = not_honoured(self.functions, job, apps).find_map(required_in) {
            let why = refusal(functions::SPAWN, directive);
            return Err(Unfit { status: Status::ERR_NOT_SUPPORTED, why });
        }
        if let Some(why) = debug::impossible(job, apps) {
            return Err(Unfit { status: Status::ERR_NOT_SUPPORTED, why });
        }
        let unreadable = |why| Unfit { status: Status::ERR_BAD_PARAM, why };
        let mut request = JobRequest::of_spawn(from, env, job, apps).map_err(unreadable)?;
        request.info.retain(|info| info.key != *names::IGNORED);
        // What a job starts ends as that job does.
        let parent = self.jobs.get(&from.nspace).and_then(|job| job.desc.kill_after);
        request.kill_after = request.kill_after.or(parent);
        let ignored = ignored(from, self.functions, job, apps);
        if !ignored.is_empty() {
            request.info.push(Info::new(names::IGNORED, ignored.join(",")));
        }
        Ok(request)
    }
}

/// What a directive that nobody honours requires: itself, or something inside of its value.
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

/// Why a function does nothing at all.
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

/// Their keys, each once. A flag that is false asks for nothing.
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

/// Whether every job has what programs of these models need.
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
/// As libraries and launchers call the programming models whose programs run here.
const PERSONALITIES: [&str; 10] =
    ["mpi", "mpich", "intelmpi", "ompi", "ompi4", "ompi5", "oshmem", "pmix", "prte", "prrte"];
/// What users were told of, at most.
const MOST_UNSUPPORTED: usize = 64;
