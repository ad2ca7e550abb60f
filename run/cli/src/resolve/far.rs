//! A job in somebody else's DVM: which one, and what of the command line does not go there.

use phalanx_shell::rendezvous;
use pmix::Trust;

use super::{Here, rendezvous_file};
use crate::args::JobArgs;
use crate::args::tools::ServerArgs;
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

/// Refuses what the launcher of a DVM can be told, and nobody else.
pub(crate) fn check(job: &JobArgs) -> Result<(), Failure> {
    match of_launchers_only(job) {
        Some(option) => {
            Err(Failure::usage(format!("'{option}' cannot be used in a DVM that is already running"))
                .hint("leave it out, or the option that names the server"))
        }
        None => Ok(()),
    }
}

fn of_launchers_only(job: &JobArgs) -> Option<&'static str> {
    let all = [
        ("--dry-run", job.dry_run),
        ("--display", !job.display.is_empty()),
        ("--kill-after", job.kill_after.is_some()),
        ("--launch-agent", job.fleet.launch_agent.is_some()),
        ("--px-path", job.fleet.px_path.is_some()),
        ("--network", !job.fleet.network.is_empty()),
        ("--skip-bad-hosts", job.fleet.skip_bad_hosts),
        ("--remote-connections", job.serve.remote_connections.is_some()),
        ("--report-uri", job.serve.report_uri.is_some()),
    ];
    all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}
