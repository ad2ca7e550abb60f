//! Log requests of processes. What goes to a terminal reaches the user; channels that we do not have are refused.

use std::collections::BTreeSet;

use phalanx_core::host::LogRequest;
use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::{Info, InfoList, Value};

use crate::report::Report;
use crate::root::Cx;
use crate::root::event::as_text;

/// The channels that there are, and the directives that are carried out.
pub(crate) const ATTRIBUTES: &[&str] =
    &[keys::LOG_STDERR, keys::LOG_STDOUT, keys::LOG_ONCE, keys::LOG_AGG, keys::LOG_KEY, keys::LOG_VAL];

/// `kinds`: those of the job's messages that were shown; none if no job of ours says it.
pub(super) fn log(cx: &mut Cx<'_>, kinds: Option<&mut BTreeSet<String>>, request: &LogRequest) -> Status {
    let (from, data, directives) = (&request.from, &request.data, &request.directives);
    if kinds.is_some_and(|kinds| is_repetition(kinds, directives)) {
        return Status::SUCCESS;
    }
    let channel = |info: &Info| match info.key.as_str() {
        keys::LOG_STDERR => Some(IofChannel::STDERR),
        keys::LOG_STDOUT => Some(IofChannel::STDOUT),
        _ => None,
    };
    let (mut done, mut refused) = (0, 0);
    for item in data {
        if let Some(channel) = channel(item) {
            done += 1;
            let mut text = as_text(&item.value).trim_end_matches(['\0', '\n']).to_owned().into_bytes();
            text.push(b'\n');
            cx.report(Report::Logged { proc: from.clone(), channel, text });
            if directives.is_set(keys::LOG_ONCE) {
                return Status::SUCCESS;
            }
        } else {
            refused += 1;
        }
    }
    match (done, refused) {
        (_, 0) => Status::SUCCESS,
        (0, _) => Status::ERR_NOT_SUPPORTED,
        (_, _) => Status::ERR_PARTIAL_SUCCESS,
    }
}

/// Messages that are to be aggregated are shown once per kind: Open MPI 5 logs its help texts from every process.
fn is_repetition(kinds: &mut BTreeSet<String>, directives: &[Info]) -> bool {
    let part = |key| directives.find(key).and_then(Value::as_str).unwrap_or_default();
    let kind = format!("{} {}", part(keys::LOG_KEY), part(keys::LOG_VAL));
    let is_told_by_kind = directives.is_set(keys::LOG_AGG) && kind.len() > 1;
    if !is_told_by_kind || (kinds.len() >= MOST_KINDS && !kinds.contains(&kind)) {
        return false;
    }
    !kinds.insert(kind)
}

/// Kinds of messages that are remembered per job.
const MOST_KINDS: usize = 1024;
