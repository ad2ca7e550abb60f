//! The attributes of single programs, and the other fields of the standard's struct for them.

use std::collections::BTreeSet;

use phalanx_spec::keys;
use phalanx_wire::{App, Info, Text};

use super::{Attribute, PLACEMENT, listed, placement, read, set, text, write};
use crate::hosts::{merge_hosts, parse_hosts};
use crate::job::AppSpec;
use crate::msg::EnvChange;

pub(super) const TABLE: [Attribute<AppSpec>; 5] = [
    Attribute {
        key: keys::WDIR,
        read: |app, value| set(&mut app.cwd, Some(text(value)?.clone())),
        // The struct has a field for it.
        write: |_| None,
        required: false,
    },
    Attribute {
        key: keys::WDIR_USER_SPECIFIED,
        // A missing directory is an error in any case.
        read: |_, _| Ok(()),
        write: |_| None,
        required: false,
    },
    Attribute {
        key: keys::PREFIX,
        read: |app, value| set(&mut app.prefix, Some(text(value)?.clone())),
        write: |app| app.prefix.clone().map(Into::into),
        required: false,
    },
    Attribute {
        key: keys::HOST,
        read: |app, value| {
            let entries = parse_hosts("PMIX_HOST", &text(value)?.to_string_lossy());
            app.hosts = merge_hosts(entries.map_err(|error| error.to_string())?);
            Ok(())
        },
        write: |app| (!app.hosts.is_empty()).then(|| listed::host_words(&app.hosts).into()),
        required: false,
    },
    Attribute {
        key: HOSTS,
        read: |app, value| set(&mut app.hosts, listed::read_hosts(value)?),
        write: |app| {
            let words = parse_hosts("PMIX_HOST", &listed::host_words(&app.hosts)).map(merge_hosts);
            let is_said = app.hosts.is_empty() || words.is_ok_and(|read| read == app.hosts);
            (!is_said).then(|| listed::write_hosts(&app.hosts))
        },
        required: true,
    },
];

/// The hosts, if `PMIX_HOST` cannot express them in full.
pub const HOSTS: &str = "phalanx.hosts";

pub(super) fn of_app(app: &App, job: &[Info]) -> Result<AppSpec, String> {
    let mut argv = app.argv.clone();
    if let Some(cmd) = &app.cmd {
        match argv.first_mut() {
            Some(first) => *first = cmd.clone(),
            None => argv.push(cmd.clone()),
        }
    }
    if argv.is_empty() {
        return Err("it names no program".to_owned());
    }
    if app.max_procs < 0 {
        return Err(format!("it asks for {} processes of '{}'", app.max_procs, argv[0].to_string_lossy()));
    }
    let mut spec = AppSpec {
        argv,
        // None: one for each free slot, as with PRRTE.
        procs: u32::try_from(app.max_procs).ok().filter(|procs| *procs > 0),
        env: app.env.clone(),
        cwd: app.cwd.clone(),
        ..AppSpec::default()
    };
    read(&TABLE, &mut spec, job)?;
    read(&TABLE, &mut spec, &app.info)?;
    for info in job.iter().chain(&app.info) {
        let change = EnvChange::of(info).transpose();
        spec.changes.extend(change.map_err(|problem| format!("{}: {problem}", info.key))?);
    }
    if app.info.iter().any(|info| PLACEMENT.contains(&info.key.as_str())) {
        spec.policy = Some(placement::policy(&app.info)?);
    }
    Ok(spec)
}

pub(super) fn to_app(app: &AppSpec, env: &[Text]) -> App {
    let mut info = write(&TABLE, app);
    info.extend(app.policy.iter().flat_map(|policy| write(&placement::TABLE, policy)));
    info.extend(app.changes.iter().map(EnvChange::to_info));
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
