//! The stacks of a job's processes.

use phalanx_spec::{DataType, keys};
use phalanx_wire::{DataArray, Info, InfoList, ProcId, Value};

use super::inquiry::{Inquiry, nspace};
use super::names;
use crate::msg::Subject;
use crate::ranges::Ranges;

/// What the daemons have to read. None: the qualifiers name no ranks.
pub(super) fn subject(from: &ProcId, qualifiers: &[Info]) -> Option<Subject> {
    let ranks = match qualifiers.find(names::WHICH) {
        Some(value) => Some(value.as_str()?.parse().ok()?),
        None => None,
    };
    Some(Subject::Stacks { nspace: nspace(qualifiers).unwrap_or_else(|| from.nspace.clone()), ranks })
}

pub(super) fn stacks(asked: &Inquiry<'_>, qualifiers: &[Info]) -> Option<DataArray> {
    let found = &asked.found.get(&subject(asked.from, qualifiers)?)?.stacks;
    let read = found.all.iter().map(|stack| {
        let frames = stack.frames.iter().map(|frame| Value::from(frame.as_str())).collect();
        let about = [
            Info::new(names::WHICH, stack.ranks.to_string()),
            Info::new(names::COUNT, stack.threads),
            Info::new(keys::CMD_LINE, stack.program.as_str()),
            Info::new(names::FRAMES, DataArray { of: DataType::STRING, items: frames }),
        ];
        Info::new(names::STACK, DataArray::of_infos(about))
    });
    let missing = |ranks: &Ranges, why: &str| {
        let about = [Info::new(names::WHICH, ranks.to_string()), Info::new(names::REASON, why)];
        Info::new(names::UNREAD, DataArray::of_infos(about))
    };
    let omitted = Some(&found.omitted).filter(|ranks| !ranks.is_empty());
    let unread = found.unread.iter().map(|one| missing(&one.ranks, &one.why));
    let unread = unread.chain(omitted.map(|ranks| missing(ranks, "there are too many different stacks")));
    Some(DataArray::of_infos(read.chain(unread)))
}
