//! From what was typed to what is meant: a [`RunLine`] becomes a [`Run`].
//!
//! Everything that can be said about a command line without starting anything is said here: words that are no policy,
//! files that are no hostfiles, options that contradict each other. The map itself is made later, by the node or by
//! `--dry-run`, from the same request.

mod env;
mod hosts;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx_dvm::map::Policy;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, StdinTarget};
use phalanx_node::StdinSource;
use phalanx_spec::Rank;
use phalanx_topo::CpuSet;
use phalanx_wire::Text;

use crate::args::split::RunLine;
use crate::args::{AppArgs, BadExit, Display, JobArgs};
use crate::failure::Failure;
use crate::output::plan::OutputPlan;
pub(crate) use env::Environment;

/// Where px itself runs: all that a request takes from outside the command line.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    pub(crate) env: Environment,
    pub(crate) cwd: PathBuf,
    pub(crate) hostname: String,
    /// This px.
    pub(crate) px: Option<PathBuf>,
}

/// One run, resolved.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) request: JobRequest,
    pub(crate) stdin: StdinSource,
    pub(crate) output: OutputPlan,
    pub(crate) voice: Voice,
    pub(crate) display: Vec<Display>,
    pub(crate) dry_run: bool,
    /// How long ranks may take to end when asked, if the user said.
    pub(crate) kill_after: Option<Duration>,
    /// Where the exit report goes; `-` is standard output.
    pub(crate) report: Option<PathBuf>,
    pub(crate) topology_root: PathBuf,
    /// Remarks that are no errors.
    pub(crate) notes: Vec<String>,
}

/// How much px itself says, and in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Voice {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// 0 to 2.
    pub(crate) verbose: u8,
}

impl Here {
    pub(crate) fn find() -> Result<Here, Failure> {
        let cwd = std::env::current_dir().map_err(|e| {
            Failure::new("cannot tell the working directory").because(e).hint("cd to one that exists")
        })?;
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Here { env: std::env::vars_os().collect(), cwd, hostname, px: std::env::current_exe().ok() })
    }
}

/// Resolves a command line.
pub(crate) fn run(line: RunLine, here: &Here) -> Result<Run, Failure> {
    let RunLine { job, apps } = line;
    let mut notes = Vec::new();
    let policy = policy(&job, here)?;
    let (target, stdin) = stdin(job.stdin.as_ref(), &apps)?;
    let apps = apps.iter().map(|app| app_spec(app, here, &mut notes)).collect::<Result<Vec<_>, _>>()?;
    let request = JobRequest {
        apps,
        env: env::inherited(&here.env),
        stdin: target,
        on_failure: match job.kill_on_bad_exit {
            BadExit::Any => FailurePolicy::KillJob,
            BadExit::Signal => FailurePolicy::KillOnSignal,
            BadExit::None => FailurePolicy::Continue,
        },
        timeout: job.timeout,
        policy,
        ..JobRequest::default()
    };
    Ok(Run {
        request,
        stdin,
        output: OutputPlan::parse(&job.output)?,
        voice: Voice { json: job.json, quiet: job.quiet, verbose: job.verbose },
        display: job.display,
        dry_run: job.dry_run,
        kill_after: job.kill_after,
        report: job.report,
        topology_root: job.topology_root.unwrap_or_else(|| "/".into()),
        notes,
    })
}

fn policy(job: &JobArgs, here: &Here) -> Result<Policy, Failure> {
    let wrong = |e: phalanx_dvm::map::PolicyError| {
        let failure = Failure::usage(e.to_string());
        e.hint.into_iter().fold(failure, Failure::hint)
    };
    let mut policy = Policy::default();
    if let Some(words) = &job.map_by {
        policy.map = words.parse().map_err(wrong)?;
    }
    if job.oversubscribe {
        if policy.map.oversubscribe == Some(false) {
            return Err(Failure::usage(
                "'--oversubscribe' and '--map-by :nooversubscribe' contradict each other",
            ));
        }
        policy.map.oversubscribe = Some(true);
    }
    if let Some(words) = &job.rank_by {
        policy.rank = Some(words.parse().map_err(wrong)?);
    }
    if let Some(words) = &job.bind_to {
        policy.bind = words.parse().map_err(wrong)?;
    }
    if let Some(list) = &job.cpu_set {
        let cpus = CpuSet::from_list(list).map_err(|e| {
            Failure::usage(format!("'{list}' is no value of '--cpu-set'"))
                .because(e)
                .hint("a list of CPUs such as 0-3,8")
        })?;
        if cpus.is_empty() {
            return Err(Failure::usage("'--cpu-set' names no CPU"));
        }
        policy.cpu_set = Some(cpus);
    }
    hosts::read_map_file(&mut policy, here)?;
    Ok(policy)
}

/// Who reads standard input, and what they read.
fn stdin(word: Option<&OsString>, apps: &[AppArgs]) -> Result<(StdinTarget, StdinSource), Failure> {
    let Some(word) = word else { return Ok((StdinTarget::FirstRank, StdinSource::Inherited)) };
    match word.as_bytes() {
        b"all" => return Ok((StdinTarget::All, StdinSource::Inherited)),
        b"none" => return Ok((StdinTarget::None, StdinSource::Empty)),
        _ => {}
    }
    if let Some(rank) = word.to_str().and_then(|word| word.parse::<u32>().ok()) {
        let ranks: Option<u64> = apps.iter().map(|app| app.procs.map(u64::from)).sum();
        if let Some(ranks) = ranks.filter(|ranks| u64::from(rank) >= *ranks) {
            return Err(Failure::usage(format!(
                "'--stdin {rank}': the ranks of this job are 0 to {}",
                ranks - 1
            )));
        }
        return Ok((StdinTarget::Rank(Rank(rank)), StdinSource::Inherited));
    }
    let path = PathBuf::from(word);
    let found = std::fs::metadata(&path).map_err(|e| {
        Failure::usage(format!("cannot read the file of '--stdin {}'", path.display()))
            .because(e)
            .hint("other values: a rank, all, none")
    })?;
    if found.is_dir() {
        return Err(Failure::usage(format!("'--stdin {}' is a directory", path.display())));
    }
    Ok((StdinTarget::FirstRank, StdinSource::File(path)))
}

fn app_spec(app: &AppArgs, here: &Here, notes: &mut Vec<String>) -> Result<AppSpec, Failure> {
    let program = app.argv.first();
    if program.is_none_or(|program| program.is_empty()) {
        return Err(Failure::usage("the name of the program is empty"));
    }
    let mut argv: Vec<Text> = app.argv.iter().map(|arg| Text::from_bytes(arg.as_bytes())).collect();
    // A px that is not in PATH can still run `px hello`; one that is runs no other px by accident.
    if let (Some(program), Some(px)) = (argv.first_mut().filter(|name| **name == *"px"), &here.px) {
        *program = Text::from_bytes(px.as_os_str().as_bytes());
    }
    Ok(AppSpec {
        argv,
        procs: app.procs,
        env: env::additions(&app.env_file, &app.env, &here.env, notes)?,
        cwd: Some(app.wdir.as_deref().map_or_else(|| text(&here.cwd), |dir| absolute(dir, here))),
        prefix: app.prefix.as_deref().map(|dir| absolute(dir, here)),
        hosts: hosts::of_app(app, here)?,
        ..AppSpec::default()
    })
}

fn absolute(path: &Path, here: &Here) -> Text {
    text(&here.cwd.join(path))
}

fn text(path: &Path) -> Text {
    Text::from_bytes(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests;
