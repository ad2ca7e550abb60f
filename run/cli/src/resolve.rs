//! From the typed words to their meaning: a [`RunLine`] becomes a [`Run`].
//!
//! Every error that can be found in a command line without starting anything is found here: words that are no policy, files that are no hostfiles,
//! options that contradict each other. The map itself is made later, by the node or by `--dry-run`, from the same request.

mod agent;
mod allocation;
mod criu;
mod env;
mod far;
mod file;
mod fleet;
mod here;
mod hosts;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use phalanx_core::output::Style;
use phalanx_dvm::map::Policy;
use phalanx_dvm::{AppSpec, FailurePolicy, JobRequest, StdinTarget};
use phalanx_node::StdinSource;
use phalanx_shell::reach::Reach;
use phalanx_spec::Rank;
use phalanx_topo::CpuSet;
use phalanx_wire::Text;

use crate::args::serve::ServeArgs;
use crate::args::split::RunLine;
use crate::args::tools::ServerArgs;
use crate::args::{AppArgs, BadExit, Display, JobArgs};
use crate::failure::Failure;
use crate::output::plan;
pub(crate) use env::{Environment, inherited};
pub(crate) use fleet::{Hosts, of_dvm as hosts_of_dvm};
pub(crate) use here::Here;

/// One run, resolved.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) request: JobRequest,
    pub(crate) stdin: StdinSource,
    pub(crate) output: Style,
    pub(crate) voice: Voice,
    pub(crate) display: Vec<Display>,
    pub(crate) dry_run: bool,
    /// It goes on without the terminal.
    pub(crate) detach: bool,
    /// Where the exit report goes; `-` is standard output.
    pub(crate) report: Option<PathBuf>,
    pub(crate) topology_root: PathBuf,
    /// How tools reach this launcher.
    pub(crate) serve: Serve,
    /// The server of the DVM that runs the job.
    pub(crate) far: Option<ServerArgs>,
    /// The hosts of a DVM of the job's own.
    pub(crate) hosts: Hosts,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// The MPI library that a program is linked with, if one is.
    pub(crate) mpi: Option<String>,
}

/// How a server can be reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serve {
    pub(crate) reach: Reach,
    /// Files for its address.
    pub(crate) files: Vec<PathBuf>,
    /// The command that sends mails.
    pub(crate) mail: Option<String>,
}

/// How much px itself prints, and in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Voice {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// 0 to 2.
    pub(crate) verbose: u8,
}

/// Resolves a command line.
pub(crate) fn run(line: RunLine, here: &Here) -> Result<Run, Failure> {
    let RunLine { job, apps } = line;
    let mut notes = Vec::new();
    let far = far::server(&job, here);
    if far.is_some() {
        far::check(&job)?;
    }
    let mut policy = policy(&job)?;
    let (target, stdin) = match (stdin(job.stdin.as_ref(), &apps)?, job.detach) {
        ((_, StdinSource::Inherited), true) if job.stdin.is_none() => (StdinTarget::None, StdinSource::Empty),
        ((target, StdinSource::Inherited), true) => (target, StdinSource::Silent),
        (read, _) => read,
    };
    let mut specs = apps.iter().map(|app| app_spec(app, here, &mut notes)).collect::<Result<Vec<_>, _>>()?;
    let hosts = match far {
        Some(_) => fleet::name_only((&apps, &mut specs), &mut policy, here).map(|()| Hosts::default())?,
        None => fleet::of_run((&apps, &mut specs), &mut policy, &job.fleet, here)?,
    };
    let plan::Plan { style, diag } = plan::parse(&job.output)?;
    let env::Exported { env, is_all } = env::exported(job.export.as_deref(), &here.env, &mut notes)?;
    let request = JobRequest {
        apps: specs,
        diag,
        env,
        whole_env: !is_all,
        stdin: target,
        on_failure: match job.kill_on_bad_exit {
            BadExit::Any => FailurePolicy::KillJob,
            BadExit::Signal => FailurePolicy::KillOnSignal,
            BadExit::None => FailurePolicy::Continue,
            BadExit::Restart => FailurePolicy::Restart { most: job.max_restarts },
        },
        timeout: job.timeout,
        kill_after: job.kill_after,
        checkpoint_command: job.checkpoint_command.as_deref().map(|command| match command {
            "criu" => criu::CHECKPOINT.into(),
            command => command.into(),
        }),
        restart_command: match (job.restart_command, job.checkpoint_command.as_deref()) {
            (Some(command), _) => Some(command.into()),
            (None, Some("criu")) => Some(criu::RESTART.into()),
            (None, _) => None,
        },
        policy,
        ..JobRequest::default()
    };
    Ok(Run {
        request,
        stdin,
        output: style,
        voice: Voice { json: job.json, quiet: job.quiet, verbose: job.verbose },
        display: job.display,
        dry_run: job.dry_run,
        detach: job.detach,
        report: job.report,
        topology_root: job.topology_root.unwrap_or_else(|| "/".into()),
        serve: serve(&job.serve, here),
        far,
        hosts,
        notes,
        mpi: None,
    })
}

/// A process that started us as its launcher may wait for our address, too.
pub(crate) fn serve(args: &ServeArgs, here: &Here) -> Serve {
    let reach = args.remote_connections.map_or(Reach::Node, Reach::Network);
    let files = rendezvous_file(here).into_iter().chain(args.report_uri.clone()).collect();
    Serve { reach, files, mail: args.mail_with.clone() }
}

/// The file that the process which started us has named, for our address or for that of an existing server.
fn rendezvous_file(here: &Here) -> Option<PathBuf> {
    let value = |name: &&str| here.env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    RENDEZVOUS_FILE.iter().find_map(value).map(PathBuf::from)
}

fn policy(job: &JobArgs) -> Result<Policy, Failure> {
    let wrong = |e: phalanx_dvm::map::PolicyError| {
        let failure = Failure::usage(e.to_string());
        e.hint.into_iter().fold(failure, Failure::hint)
    };
    let mut policy = Policy::default();
    let per_node = job.per_node.map(|count| format!("ppr:{count}:node"));
    if let Some(words) = job.map_by.as_ref().or(per_node.as_ref()) {
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
            Failure::usage(format!("invalid value '{list}' for '--cpu-set'"))
                .because(e)
                .hint("a list of CPUs such as 0-3,8")
        })?;
        if cpus.is_empty() {
            return Err(Failure::usage("'--cpu-set' names no CPU"));
        }
        policy.cpu_set = Some(cpus);
    }
    Ok(policy)
}

/// The ranks that read standard input, and its source.
fn stdin(word: Option<&OsString>, apps: &[AppArgs]) -> Result<(StdinTarget, StdinSource), Failure> {
    let Some(word) = word else { return Ok((StdinTarget::default(), StdinSource::Inherited)) };
    match word.as_bytes() {
        b"all" => return Ok((StdinTarget::All, StdinSource::Inherited)),
        b"none" => return Ok((StdinTarget::None, StdinSource::Empty)),
        _ => {}
    }
    if let Some(rank) = word.to_str().and_then(|word| word.parse::<u32>().ok()) {
        let target = StdinTarget::Rank(Rank(rank));
        if let Some(ranks) = apps.iter().map(|app| app.procs.map(u64::from)).sum::<Option<u64>>() {
            target.check(ranks).map_err(|why| Failure::usage(format!("'--stdin {rank}': {why}")))?;
        }
        return Ok((target, StdinSource::Inherited));
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
    Ok((StdinTarget::default(), StdinSource::File(path)))
}

fn app_spec(app: &AppArgs, here: &Here, notes: &mut Vec<String>) -> Result<AppSpec, Failure> {
    let program = app.argv.first();
    if program.is_none_or(|program| program.is_empty()) {
        return Err(Failure::usage("the name of the program is empty"));
    }
    let mut argv: Vec<Text> = app.argv.iter().map(|arg| Text::from_bytes(arg.as_bytes())).collect();
    // `px hello` must run this px, even if PATH has none or another one.
    if let (Some(program), Some(px)) = (argv.first_mut().filter(|name| **name == *"px"), &here.px) {
        *program = Text::from_bytes(px.as_os_str().as_bytes());
    }
    Ok(AppSpec {
        argv,
        procs: app.procs,
        env: env::additions(&app.env_file, &app.env, &here.env, notes)?,
        cwd: Some(app.wdir.as_deref().map_or_else(|| text(&here.cwd), |dir| absolute(dir, here))),
        prefix: app.prefix.as_deref().map(|dir| absolute(dir, here)),
        ..AppSpec::default()
    })
}

fn absolute(path: &Path, here: &Here) -> Text {
    text(&here.cwd.join(path))
}

fn text(path: &Path) -> Text {
    Text::from_bytes(path.as_os_str().as_bytes())
}

/// The variable by its name in the standard and in OpenPMIx.
const RENDEZVOUS_FILE: [&str; 2] = ["PMIX_LAUNCHER_RNDZ_FILE", "PMIX_LAUNCHER_RENDEZVOUS_FILE"];

#[cfg(test)]
mod tests;
