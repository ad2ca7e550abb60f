//! A process asks for a new job: the same path as the user's, with the process as the parent.

use std::time::Duration;

use phalanx_core::HostReply;
use phalanx_spec::{IofChannel, Rank, Status, keys};
use phalanx_wire::{App, Info, InfoList, Nspace, ProcId, Text, Value};

use crate::daemon::{Cx, Daemon};
use crate::effect::Report;
use crate::iof::OUTPUTS;
use crate::job::{AppSpec, FailurePolicy, JobRequest, JobVerdict, StdinTarget};
use crate::map::Policy;
use crate::msg::NodeId;
use crate::root::{AskedBy, RootJob};

/// The directives that are carried out.
pub(crate) const ATTRIBUTES: &[&str] = &[
    keys::WDIR,
    keys::PREFIX,
    keys::SET_ENVAR,
    keys::UNSET_ENVAR,
    keys::TIMEOUT,
    keys::JOB_TIMEOUT,
    keys::FWD_STDIN,
    keys::STDIN_TGT,
    keys::FWD_STDOUT,
    keys::FWD_STDERR,
    keys::IOF_CACHE_SIZE,
    keys::IOF_DROP_OLDEST,
    keys::IOF_DROP_NEWEST,
];

impl Daemon {
    /// Root only.
    pub(crate) fn spawn(
        &mut self,
        cx: &mut Cx<'_>,
        origin: NodeId,
        request: u64,
        from: &ProcId,
        job: &[Info],
        apps: &[App],
    ) {
        let job = match self.to_request(from, job, apps) {
            Ok(job) => job,
            Err(status) => return self.refuse(cx, origin, request, status),
        };
        let asked_by = AskedBy::Process { node: origin, request };
        match self.launch(cx, asked_by, &job) {
            Ok(child) if job.info.is_set(keys::REQUESTOR_IS_TOOL) => {
                self.pull_for_parent(origin, from, &child, job.forward.unwrap_or(OUTPUTS));
            }
            Ok(_) => {}
            Err(error) => {
                let text = format!("spawning a job for {from}: {error}");
                cx.report(Report::Note { nspace: Some(from.nspace.clone()), text });
                self.answer(cx, origin, request, HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_MAP)));
            }
        }
    }

    /// The job runs, or never will: whoever asked for it is told, once.
    pub(crate) fn answer_spawn(&mut self, cx: &mut Cx<'_>, nspace: &Nspace) {
        let Some(job) = self.root_job(nspace) else { return };
        let asked_by = std::mem::replace(&mut job.asked_by, AskedBy::Answered);
        let result = match job.verdict {
            Some(JobVerdict::NotStarted { .. }) => Err(Status::ERR_JOB_FAILED_TO_LAUNCH),
            // It may have failed already; it ran.
            _ => Ok(nspace.clone()),
        };
        if let AskedBy::Process { node, request } = asked_by {
            self.answer(cx, node, request, HostReply::Spawned(result));
        }
        self.begin_for_parent(cx, nspace);
    }

    /// The job has ended; if nobody could say before that it ran, it did not.
    pub(crate) fn answer_spawn_of(&mut self, cx: &mut Cx<'_>, job: &RootJob) {
        if let AskedBy::Process { node, request } = job.asked_by {
            self.answer(cx, node, request, HostReply::Spawned(Err(Status::ERR_JOB_FAILED_TO_LAUNCH)));
        }
    }

    fn to_request(&self, from: &ProcId, job: &[Info], apps: &[App]) -> Result<JobRequest, Status> {
        let env = match self.jobs.get(&from.nspace) {
            Some(job) => job.desc.env.clone(),
            None if self.is_tool(from) => self.config.env.clone(),
            None => return Err(Status::ERR_NOT_FOUND),
        };
        let seconds = job.find(keys::JOB_TIMEOUT).or_else(|| job.find(keys::TIMEOUT)).and_then(Value::as_u64);
        Ok(JobRequest {
            apps: apps.iter().map(|app| to_app(app, job)).collect::<Result<_, _>>()?,
            env,
            stdin: stdin_target(job),
            forward: Some(forwarded(job)),
            on_failure: FailurePolicy::default(),
            timeout: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            policy: Policy::default(),
            info: job.to_vec(),
            parent: Some(from.clone()),
        })
    }
}

/// What of the job can be pulled and pushed later. A tool gets output unless it says that it does not want it.
fn forwarded(job: &[Info]) -> IofChannel {
    let is_tool = job.is_set(keys::REQUESTOR_IS_TOOL);
    let mut channels = IofChannel::NONE;
    for (key, channel) in [
        (keys::FWD_STDOUT, IofChannel::STDOUT),
        (keys::FWD_STDERR, IofChannel::STDERR),
        (keys::FWD_STDDIAG, IofChannel::STDDIAG),
    ] {
        if job.find(key).map_or(is_tool, Value::is_true) {
            channels.0 |= channel.0;
        }
    }
    if stdin_target(job) != StdinTarget::None {
        channels.0 |= IofChannel::STDIN.0;
    }
    channels
}

/// Who reads what is pushed: `PMIX_FWD_STDIN` is a rank, or a flag beside `PMIX_STDIN_TGT`.
fn stdin_target(job: &[Info]) -> StdinTarget {
    let of_rank = |rank| if rank == Rank::WILDCARD { StdinTarget::All } else { StdinTarget::Rank(rank) };
    match job.find(keys::FWD_STDIN) {
        Some(Value::Rank(rank)) => of_rank(*rank),
        Some(Value::Proc(proc)) => of_rank(proc.rank),
        Some(value) if value.is_true() => match job.find(keys::STDIN_TGT).and_then(Value::as_str) {
            None => StdinTarget::FirstRank,
            Some("all") => StdinTarget::All,
            Some(rank) => rank.parse().map_or(StdinTarget::None, |rank| of_rank(Rank(rank))),
        },
        _ => StdinTarget::None,
    }
}

fn to_app(app: &App, job: &[Info]) -> Result<AppSpec, Status> {
    let mut argv = app.argv.clone();
    if let Some(cmd) = &app.cmd {
        match argv.first_mut() {
            Some(first) => *first = cmd.clone(),
            None => argv.push(cmd.clone()),
        }
    }
    if argv.is_empty() {
        return Err(Status::ERR_BAD_PARAM);
    }
    let text =
        |key| app.info.as_slice().find(key).or_else(|| job.find(key)).and_then(Value::as_text).cloned();
    let mut env = app.env.clone();
    for info in job.iter().chain(&app.info) {
        if let (keys::SET_ENVAR, Value::Envar(envar)) = (info.key.as_str(), &info.value)
            && let (Some(name), Some(value)) = (&envar.name, &envar.value)
        {
            let entry = [name.as_bytes(), value.as_bytes()].join(&b'=');
            env.push(Text::from_bytes(&entry));
        }
    }
    let unset = |entry: &Text| {
        let removed = job.iter().chain(&app.info).filter(|info| info.key == keys::UNSET_ENVAR);
        removed.filter_map(|info| info.value.as_text()).any(|name| {
            entry.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        })
    };
    env.retain(|entry| !unset(entry));
    Ok(AppSpec {
        argv,
        procs: u32::try_from(app.max_procs).ok().filter(|procs| *procs > 0),
        env,
        cwd: text(keys::WDIR).or_else(|| app.cwd.clone()),
        prefix: text(keys::PREFIX),
        hosts: Vec::new(),
        policy: None,
    })
}
