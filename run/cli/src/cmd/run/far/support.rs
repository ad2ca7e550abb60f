//! What only servers of ours can be asked for. Others might pass it over in silence, so they are asked first.

use phalanx_dvm::spawn::{HOSTS, KILL_AFTER, KILL_ON_SIGNAL, RANKFILE, SEQUENCE};
use pmix::{App, Info, InfoList, Query, Tool, Value, keys};

/// What the user has asked for and this server cannot do.
pub(super) fn lacking(tool: &Tool, job: &[Info], apps: &[App]) -> Option<String> {
    let said = || job.iter().chain(apps.iter().flat_map(|app| &app.info));
    let wanted = OURS.iter().filter(|(key, _)| said().any(|info| info.key == *key));
    let wanted: Vec<_> = wanted.collect();
    if wanted.is_empty() {
        return None;
    }
    let query = Query { keys: vec![keys::QUERY_SPAWN_SUPPORT.into()], qualifiers: Vec::new() };
    let answer = tool.query(&[query]).unwrap_or_default();
    let supported = answer.find(keys::QUERY_SPAWN_SUPPORT).and_then(Value::as_str).unwrap_or_default();
    let (_, option) = wanted.into_iter().find(|(key, _)| !supported.split(',').any(|known| known == *key))?;
    Some(format!(
        "{option} is not supported by this server\nhint: leave it out, or run the job in a DVM of px"
    ))
}

/// Our own attributes that must not be passed over, and what the user has said to want them.
const OURS: &[(&str, &str)] = &[
    (KILL_ON_SIGNAL, "'--kill-on-bad-exit signal'"),
    (KILL_AFTER, "'--kill-after'"),
    (SEQUENCE, "'--map-by seq:file='"),
    (RANKFILE, "'--map-by rankfile:file='"),
    (HOSTS, "'max_slots' in a hostfile"),
];
