//! A job in somebody else's DVM: what of the command line goes there as directives, and what cannot.

use phalanx_shell::rendezvous;
use pmix::{Info, Trust, keys};

use super::{Here, rendezvous_file};
use crate::args::tools::ServerArgs;
use crate::args::{BadExit, JobArgs};
use crate::failure::Failure;
use crate::tool;

/// The server that is to run the job, if another one than ours: the one that the options name, or whose address is in the
/// file that was named for us.
pub(crate) fn server(job: &JobArgs, here: &Here) -> Option<ServerArgs> {
    if tool::names_any(&job.server) {
        return Some(job.server.clone());
    }
    let file = rendezvous_file(here).filter(|_| !job.dry_run)?;
    let trust = Trust::of_users(job.server.trust_user.iter().copied());
    if !rendezvous::names_living_server(&file, &trust) {
        return None;
    }
    Some(ServerArgs { file: Some(file), ..job.server.clone() })
}

/// The directives of the standard that the options of the job stand for.
pub(crate) fn directives(job: &JobArgs) -> Result<Vec<Info>, Failure> {
    if let Some(option) = of_launchers_only(job) {
        return Err(Failure::usage(format!("'{option}' cannot be used in a DVM that is already running"))
            .hint("leave it out, or the option that names the server"));
    }
    let mut map = job.map_by.clone().unwrap_or_default();
    if job.oversubscribe {
        map.push_str(":oversubscribe");
    }
    let word = |key, word: &str| Some(Info::new(key, word)).filter(|_| !word.is_empty());
    let said = [
        word(keys::MAPBY, &map),
        job.rank_by.as_deref().and_then(|words| word(keys::RANKBY, words)),
        job.bind_to.as_deref().and_then(|words| word(keys::BINDTO, words)),
        job.cpu_set.as_deref().and_then(|words| word(keys::CPU_LIST, words)),
        (job.kill_on_bad_exit == BadExit::None).then(|| Info::new(keys::JOB_CONTINUOUS, true)),
    ];
    Ok(said.into_iter().flatten().collect())
}

fn of_launchers_only(job: &JobArgs) -> Option<&'static str> {
    let reads_file = job.map_by.as_deref().is_some_and(|words| words.contains("file="));
    let all = [
        ("--dry-run", job.dry_run),
        ("--display", !job.display.is_empty()),
        ("--kill-after", job.kill_after.is_some()),
        ("--kill-on-bad-exit signal", job.kill_on_bad_exit == BadExit::Signal),
        ("--map-by ...:file=", reads_file),
        ("--remote-connections", job.serve.remote_connections.is_some()),
        ("--report-uri", job.serve.report_uri.is_some()),
    ];
    all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}
