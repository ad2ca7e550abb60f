//! Files that processes leave to us to remove: which paths are registered for which processes, and when they are due.
//!
//! Job control registers them (RFC0015). Paths for processes of this node are entered here, in a table per job; others go
//! through the root to the daemons of those processes. A file is due when every process that it was registered for has ended, a
//! directory when all of the job's processes here have: they often share one. The shell gets each path at once, so that it is
//! removed even if this daemon is killed, and again when it is due.
//!
//! Exceptions must be known before anything is removed: a path registered both for removal and as an exception is refused,
//! whichever request came first, and then nothing of the request is entered.

use std::collections::{BTreeMap, BTreeSet};

use phalanx_spec::{Rank, Status};
use phalanx_wire::Text;

use crate::msg::{Cleanup, CleanupRequest};
use crate::ranges::Ranges;

/// The registered paths of one job on this node.
#[derive(Debug, Default)]
pub(super) struct Cleanups {
    removals: BTreeMap<Text, Removal>,
    ignored: BTreeSet<Text>,
    /// The files of each process that has not ended.
    files: BTreeMap<Rank, Vec<Text>>,
    bytes: usize,
}

#[derive(Debug)]
struct Removal {
    what: Cleanup,
    /// The processes here that still need the file.
    kept_by: Ranges,
}

impl Cleanups {
    /// Whether the whole request can be entered.
    pub(super) fn check(&self, request: &CleanupRequest, most_bytes: usize) -> Result<(), Status> {
        let contradicts = |(path, what): (&Text, Cleanup)| {
            let agrees = self.removals.get(path).is_none_or(|removal| removal.what.agrees_with(what));
            !agrees || stays(&self.ignored, path) || stays(&request.ignored, path)
        };
        if request.removals().any(contradicts)
            || request.files.intersection(&request.directories).next().is_some()
            || request.ignored.iter().any(|path| self.removes(path))
        {
            return Err(Status::ERR_CONFLICTING_CLEANUP_DIRECTIVES);
        }
        let new = request.removals().map(|(path, _)| path).filter(|path| !self.removals.contains_key(*path));
        let new = new.chain(request.ignored.difference(&self.ignored));
        match self.bytes + new.map(cost).sum::<usize>() > most_bytes {
            true => Err(Status::ERR_OUT_OF_RESOURCE),
            false => Ok(()),
        }
    }

    /// Whether a path to be removed matches this path or name.
    fn removes(&self, ignored: &Text) -> bool {
        match is_name(ignored) {
            true => self.removals.keys().any(|path| last_name(path) == ignored.as_bytes()),
            false => self.removals.contains_key(ignored),
        }
    }

    /// Enters a checked request for these processes, and calls `tell` for what is new.
    pub(super) fn enter(
        &mut self,
        request: &CleanupRequest,
        ranks: &Ranges,
        mut tell: impl FnMut(&Text, Cleanup),
    ) {
        for path in &request.ignored {
            if self.ignored.insert(path.clone()) {
                self.bytes += cost(path);
                tell(path, Cleanup::Ignored);
            }
        }
        for (path, what) in request.removals() {
            let removal = self.removals.entry(path.clone()).or_insert_with(|| {
                self.bytes += cost(path);
                tell(path, what);
                Removal { what, kept_by: Ranges::new() }
            });
            if removal.what.widen(what) {
                tell(path, removal.what);
            }
            if what == Cleanup::File {
                for rank in ranks.iter().filter(|rank| !removal.kept_by.contains(*rank)) {
                    self.files.entry(Rank(rank)).or_default().push(path.clone());
                }
                removal.kept_by.add(ranks);
            }
        }
    }

    /// The files that no process needs any more.
    pub(super) fn ended(&mut self, rank: Rank) -> Vec<Text> {
        let files = self.files.remove(&rank).unwrap_or_default();
        files.into_iter().filter(|path| self.release(path, rank)).collect()
    }

    fn release(&mut self, path: &Text, rank: Rank) -> bool {
        let Some(removal) = self.removals.get_mut(path) else { return false };
        removal.kept_by.remove(rank.0);
        let due = removal.kept_by.is_empty();
        if due {
            self.removals.remove(path);
            self.bytes -= cost(path);
        }
        due
    }

    /// Everything that is to be removed. Exceptions stay registered.
    pub(super) fn all_ended(&mut self) -> Vec<Text> {
        self.files.clear();
        let due: Vec<Text> = std::mem::take(&mut self.removals).into_keys().collect();
        self.bytes -= due.iter().map(cost).sum::<usize>();
        due
    }
}

impl Cleanup {
    fn agrees_with(self, other: Cleanup) -> bool {
        match (self, other) {
            (Cleanup::Directory(old), Cleanup::Directory(new)) => old.only_empty == new.only_empty,
            (old, new) => old == new,
        }
    }

    /// Adds another request's wishes for the same path. Returns whether that changed anything.
    fn widen(&mut self, other: Cleanup) -> bool {
        let before = *self;
        if let (Cleanup::Directory(rules), Cleanup::Directory(more)) = (&mut *self, other) {
            rules.recursive |= more.recursive;
            rules.leave_top |= more.leave_top;
        }
        *self != before
    }
}

/// Whether an exception matches this path.
fn stays(ignored: &BTreeSet<Text>, path: &Text) -> bool {
    ignored.contains(path) || ignored.contains(&Text::from_bytes(last_name(path)))
}

fn is_name(text: &Text) -> bool {
    text.as_bytes().first() != Some(&b'/')
}

fn last_name(path: &Text) -> &[u8] {
    path.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// What an entry counts against the bound.
fn cost(path: &Text) -> usize {
    path.as_bytes().len() + 64
}

#[cfg(test)]
mod tests;
