//! Requests that only servers of ours understand. Others might ignore them silently, so their support is queried first.

use phalanx_dvm::spawn::{
    CHECKPOINT_COMMAND, HOSTS, KILL_AFTER, KILL_ON_SIGNAL, RANKFILE, RESTART_COMMAND, SEQUENCE, WHOLE_ENV,
};
use pmix::{InfoList, Query, Tool, Value, keys};

use super::map;
use crate::resolve::Run;

/// What the user wants and not every server can do.
pub(super) struct Needs {
    /// Attributes of a spawn, and the options that they stand for.
    attributes: Vec<(&'static str, &'static str)>,
    /// The option that needs the server to report maps.
    map: Option<&'static str>,
}

impl Needs {
    pub(super) fn of(run: &Run) -> Needs {
        let (job, apps) = run.request.to_spawn();
        let is_said =
            |key: &str| job.iter().chain(apps.iter().flat_map(|app| &app.info)).any(|i| i.key == key);
        Needs {
            attributes: OURS.iter().filter(|(key, _)| is_said(key)).copied().collect(),
            map: match run {
                Run { dry_run: true, .. } => Some("'--dry-run'"),
                Run { display, .. } if !display.is_empty() => Some("'--display'"),
                _ => None,
            },
        }
    }

    /// The error for the user if this server lacks something wanted.
    pub(super) fn lacking(&self, tool: &Tool) -> Option<String> {
        let option = self.map.filter(|_| !map::is_told(tool)).or_else(|| self.not_honoured(tool))?;
        Some(format!(
            "{option} is not supported by this server\nhint: leave it out, or run the job in a DVM of px"
        ))
    }

    fn not_honoured(&self, tool: &Tool) -> Option<&'static str> {
        if self.attributes.is_empty() {
            return None;
        }
        let query = Query { keys: vec![keys::QUERY_SPAWN_SUPPORT.into()], qualifiers: Vec::new() };
        let answer = tool.query(&[query]).unwrap_or_default();
        let supported = answer.find(keys::QUERY_SPAWN_SUPPORT).and_then(Value::as_str).unwrap_or_default();
        let is_lacking = |key: &str| !supported.split(',').any(|known| known == key);
        self.attributes.iter().find(|(key, _)| is_lacking(key)).map(|(_, option)| *option)
    }
}

/// Our own attributes that must not be ignored, with the options that set them.
const OURS: &[(&str, &str)] = &[
    (KILL_ON_SIGNAL, "'--kill-on-bad-exit signal'"),
    (keys::MAX_RESTARTS, "'--kill-on-bad-exit restart'"),
    (KILL_AFTER, "'--kill-after'"),
    (WHOLE_ENV, "'--export' without ALL"),
    (CHECKPOINT_COMMAND, "'--checkpoint-command'"),
    (RESTART_COMMAND, "'--restart-command'"),
    (SEQUENCE, "'--map-by seq:file='"),
    (RANKFILE, "'--map-by rankfile:file='"),
    (HOSTS, "'max_slots' in a hostfile"),
];
