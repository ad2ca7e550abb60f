//! Output that waits for its readers, and the processes that wrote it, which block in their writes or will.

use std::collections::BTreeSet;

use phalanx_core::Waiting;
use phalanx_wire::ProcId;

use super::readers::Readers;
use super::tap::Held;
use crate::msg::TapName;
use crate::root::turn::ENOUGH;

pub(in crate::root) fn explain(readers: &Readers) -> Vec<Waiting> {
    let users = waiting(Vec::new(), readers.not_taken_by_user());
    let taps = readers.taps.iter().filter_map(|((_, name), tap)| {
        let reader = match name {
            TapName::Parent(tool, _) => vec![tool.clone()],
            TapName::Pull(_) => Vec::new(),
        };
        waiting(reader, readers.not_taken_by(tap))
    });
    users.into_iter().chain(taps).collect()
}

/// An end of stream waits as well, but blocks no writer.
fn waiting<'a>(readers: Vec<ProcId>, held: impl Iterator<Item = &'a Held>) -> Option<Waiting> {
    let held: Vec<&Held> = held.filter(|held| held.bytes > 0).collect();
    let writers: BTreeSet<&ProcId> = held.iter().map(|held| &held.proc).collect();
    let bytes: usize = held.iter().map(|held| held.bytes).sum();
    Some(Waiting {
        operation: "output".into(),
        subject: format!("{bytes} bytes"),
        asked_by: writers.into_iter().take(ENOUGH).cloned().collect(),
        missing: readers,
        since: held.iter().map(|held| held.since).min()?,
        deadline: None,
        unblocked_by: "the reader of the output reading on".into(),
    })
}
