//! A job in an existing DVM: which one, and which options cannot be used there.

use phalanx_shell::rendezvous;
use pmix::Trust;

use super::{Here, rendezvous_file};
use crate::args::JobArgs;
use crate::args::tools::ServerArgs;
use crate::failure::Failure;
use crate::tool;

/// The server that runs the job, if it is not ours: the one that the options name, or the one in the rendezvous file that was named for us.
pub(crate) fn server(job: &JobArgs, here: &Here) -> Option<ServerArgs> {
    if tool::names_any(&job.server) {
        return Some(job.server.clone());
    }
    let file = rendezvous_file(here)?;
    let trust = Trust::of_users(job.server.trust_user.iter().copied());
    if !rendezvous::names_living_server(&file, &trust) {
        return None;
    }
    Some(ServerArgs { file: Some(file), ..job.server.clone() })
}

/// Refuses options that only the launcher of a DVM can act on.
pub(crate) fn check(job: &JobArgs) -> Result<(), Failure> {
    match of_launchers_only(job) {
        Some((option, why)) => {
            Err(Failure::usage(format!("'{option}' cannot be used in a DVM that is already running"))
                .hint(why))
        }
        None => Ok(()),
    }
}

/// Such an option, and why it needs the launcher.
fn of_launchers_only(job: &JobArgs) -> Option<(&'static str, &'static str)> {
    let all = [
        ("--launch-agent", job.fleet.launch_agent.is_some(), STARTED),
        ("--px-path", job.fleet.px_path.is_some(), STARTED),
        ("--network", !job.fleet.network.is_empty(), STARTED),
        ("--skip-bad-hosts", job.fleet.skip_bad_hosts, STARTED),
        ("--start-timeout", job.fleet.start_timeout.is_some(), STARTED),
        ("--host-timeout", job.fleet.host_timeout.is_some(), STARTED),
        ("--remote-connections", job.serve.remote_connections.is_some(), REACHED_THERE),
        ("--report-uri", job.serve.report_uri.is_some(), REACHED_THERE),
        ("--mail-with", job.serve.mail_with.is_some(), "start that DVM with it"),
    ];
    all.into_iter().find(|(_, given, _)| *given).map(|(option, _, why)| (option, why))
}

const STARTED: &str = "the daemons of the DVM run already";
const REACHED_THERE: &str = "tools reach the server of the DVM, and 'px dvm start' takes this option";
