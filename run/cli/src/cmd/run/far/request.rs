//! A job request as the spawn that it is to a server.

use std::collections::BTreeSet;

use phalanx_dvm::hosts::{Host, HostEntry, Slots};
use phalanx_dvm::{AppSpec, StdinTarget};
use pmix::{App, Info, Text, keys};

use crate::resolve::Run;

/// The directives of the job, and its programs.
pub(super) fn of(run: &Run, directives: &[Info]) -> (Vec<Info>, Vec<App>) {
    let mut job = vec![
        Info::new(keys::FWD_STDOUT, true),
        Info::new(keys::FWD_STDERR, true),
        Info::new(keys::NOTIFY_COMPLETION, true),
    ];
    job.extend(run.request.diag.then(|| Info::new(keys::FWD_STDDIAG, true)));
    let target = match run.request.stdin {
        StdinTarget::None => None,
        StdinTarget::All => Some("all".to_owned()),
        StdinTarget::FirstRank => Some("0".to_owned()),
        StdinTarget::Rank(rank) => Some(rank.0.to_string()),
    };
    if let Some(target) = target {
        job.extend([Info::new(keys::FWD_STDIN, true), Info::new(keys::STDIN_TGT, target)]);
    }
    if let Some(limit) = run.request.timeout {
        let seconds = u32::try_from(limit.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        job.push(Info::new(keys::JOB_TIMEOUT, seconds));
    }
    job.extend_from_slice(directives);
    (job, run.request.apps.iter().map(|app| to_app(app, &run.request.env)).collect())
}

fn to_app(app: &AppSpec, env: &[Text]) -> App {
    let mut info = Vec::new();
    if !app.hosts.is_empty() {
        let hosts: Vec<String> = app.hosts.iter().map(host).collect();
        info.push(Info::new(keys::HOST, hosts.join(",")));
    }
    info.extend(app.prefix.as_ref().map(|prefix| Info::new(keys::PREFIX, prefix.to_string_lossy())));
    let set: BTreeSet<&[u8]> = app.env.iter().map(name).collect();
    let inherited = env.iter().filter(|entry| !set.contains(name(entry)));
    App {
        cmd: app.argv.first().cloned(),
        argv: app.argv.clone(),
        env: inherited.chain(&app.env).cloned().collect(),
        cwd: app.cwd.clone(),
        max_procs: app.procs.and_then(|procs| i32::try_from(procs).ok()).unwrap_or(0),
        info,
    }
}

fn name(entry: &Text) -> &[u8] {
    entry.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn host(entry: &HostEntry) -> String {
    let name = match &entry.host {
        Host::Name(name) => name.clone(),
        other => return other.to_string(),
    };
    match entry.slots {
        Slots::Unstated => format!("{name}:*"),
        Slots::Stated(slots) => format!("{name}:{slots}"),
        Slots::Mentioned(times) => vec![name; times as usize].join(","),
    }
}
