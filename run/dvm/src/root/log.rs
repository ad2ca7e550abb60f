//! Log requests of processes. Text for a terminal goes to the readers of the process's output (`iof/logged.rs`); other channels
//! are refused.

use std::collections::BTreeSet;

use phalanx_core::host::LogRequest;
use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::{Info, InfoList, Value};

use crate::root::dvm::Dvm;
use crate::root::iof::{self, Readers};
use crate::root::turn::Cx;

/// The channels that exist, and the directives that are carried out.
pub(crate) const ATTRIBUTES: &[&str] =
    &[keys::LOG_STDERR, keys::LOG_STDOUT, keys::LOG_ONCE, keys::LOG_AGG, keys::LOG_KEY, keys::LOG_VAL];

/// Shows what a process logs, and returns the result.
pub(super) fn log(cx: &mut Cx<'_>, dvm: &mut Dvm, readers: &mut Readers, request: &LogRequest) -> Status {
    let (from, data, directives) = (&request.from, &request.data, &request.directives);
    let job = dvm.jobs.get_mut(&from.nspace);
    if job.is_some_and(|job| is_repetition(&mut job.logged, directives)) {
        return Status::SUCCESS;
    }
    let channel = |info: &Info| match info.key.as_str() {
        keys::LOG_STDERR => Some(IofChannel::STDERR),
        keys::LOG_STDOUT => Some(IofChannel::STDOUT),
        _ => None,
    };
    let (mut is_some_shown, mut failure) = (false, None);
    for item in data {
        let shown = channel(item).map_or(Status::ERR_NOT_SUPPORTED, |channel| {
            let text = as_text(&item.value);
            iof::show_logged(
                cx,
                dvm,
                readers,
                from,
                channel,
                format!("{}\n", text.trim_end_matches(['\0', '\n'])),
            )
        });
        match shown.is_success() {
            true if directives.is_set(keys::LOG_ONCE) => return Status::SUCCESS,
            true => is_some_shown = true,
            false => failure = Some(shown),
        }
    }
    match failure {
        Some(_) if is_some_shown => Status::ERR_PARTIAL_SUCCESS,
        Some(status) => status,
        None => Status::SUCCESS,
    }
}

/// Aggregated messages are shown once per kind: Open MPI 5 logs its help texts from every process.
fn is_repetition(kinds: &mut BTreeSet<String>, directives: &[Info]) -> bool {
    let part = |key| directives.find(key).and_then(Value::as_str).unwrap_or_default();
    let kind = format!("{} {}", part(keys::LOG_KEY), part(keys::LOG_VAL));
    let is_told_by_kind = directives.is_set(keys::LOG_AGG) && kind.len() > 1;
    if !is_told_by_kind || (kinds.len() >= MOST_KINDS && !kinds.contains(&kind)) {
        return false;
    }
    !kinds.insert(kind)
}

/// The most kinds of messages that are remembered per job.
const MOST_KINDS: usize = 1024;

/// A value as a text, for messages.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::ByteObject(blob) => String::from_utf8_lossy(blob.as_bytes()).into_owned(),
        other => format!("{other:?}"),
    }
}
