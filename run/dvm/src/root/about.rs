//! Facts about the end of a job as attributes, for events and for answers to queries.

use phalanx_spec::keys;
use phalanx_wire::{DataArray, Info, Value};

use crate::job::{JobVerdict, ToolProcess, Waited};
use crate::root::query::names;

/// A verdict with its details. `longest`: the bound of a text in bytes.
pub(super) fn about_verdict(verdict: &JobVerdict, longest: usize) -> impl Iterator<Item = Info> {
    let limit = match verdict {
        JobVerdict::TimedOut { limit } => Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        _ => None,
    };
    let word = Info::new(names::VERDICT, verdict.word());
    let start = |text: &str| text.get(..text.floor_char_boundary(longest)).unwrap_or_default().to_owned();
    let reason = verdict.reason().map(|reason| Info::new(names::REASON, start(reason)));
    let limit = limit.map(|limit| Info::new(names::LIMIT, limit));
    let node = verdict.node().map(|node| Info::new(keys::HOSTNAME, node));
    let by = verdict.wanted_by().map(|by| Info::new(names::WANTED_BY, by.clone()));
    [Some(word), reason, node, limit, by].into_iter().flatten()
}

/// The process of a tool that wanted an end.
pub(super) fn about_tool(process: &ToolProcess) -> Info {
    let user = Info::new(keys::USERID, process.uid);
    let pid = process.pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid)));
    let command = process.command.as_deref().map(|command| Info::new(keys::CMD_LINE, command));
    Info::new(names::TOOL_PROCESS, DataArray::of_infos([Some(user), pid, command].into_iter().flatten()))
}

pub(super) fn about_waited(waited: &Waited) -> Info {
    let about = [
        Info::new(names::WHICH, waited.ranks.as_str()),
        Info::new(names::OPERATION, waited.operation.as_str()),
        Info::new(names::SUBJECT, waited.subject.as_str()),
        Info::new(names::AGE, u64::try_from(waited.longest.as_millis()).unwrap_or(u64::MAX)),
    ];
    Info::new(names::WAITED, DataArray::of_infos(about))
}
