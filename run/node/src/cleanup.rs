//! Files that processes have registered with us for removal, anywhere in the file system.
//!
//! MPI libraries put shared memory into /dev/shm and rely on their runtime to remove it when a rank does not. Registrations are kept here until the
//! node says that they are due, and also in a journal (`journal.rs`) that the [warden](crate::warden) and later launchers carry out if we cannot.
//! `remove.rs` knows how to remove a path.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use phalanx_dvm::Cleanup;
use phalanx_wire::{Nspace, Text};

mod journal;
mod remove;

use crate::session::PrivateDir;
use journal::{Journal, Record};
pub(crate) use remove::Tree;

/// All paths that are still to be removed or to be spared.
#[derive(Debug, Default)]
pub(crate) struct Cleanups {
    jobs: BTreeMap<Nspace, Job>,
    journal: Option<Journal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Job {
    paths: BTreeMap<Text, Cleanup>,
    ignored: BTreeSet<Text>,
}

impl Cleanups {
    /// Registers a path, here and in the journal in the session's directory, if that directory could be made.
    pub(crate) fn register(
        &mut self,
        session: Option<&PrivateDir>,
        nspace: &Nspace,
        path: Text,
        what: Cleanup,
    ) {
        // Files in the session directory go with it in any case.
        let journaled = session.filter(|session| !as_path(&path).starts_with(session.path()));
        if journaled.is_some() {
            self.note(journaled, &[Record::Registered { nspace, path: &path, what }]);
        }
        self.jobs.entry(nspace.clone()).or_default().enter(path, what);
    }

    /// Removes what is due.
    pub(crate) fn clean(&mut self, nspace: &Nspace, paths: &[Text]) {
        let Some(job) = self.jobs.get_mut(nspace) else { return };
        for path in paths {
            if let Some(what) = job.paths.remove(path) {
                remove(path, what, &job.ignored);
            }
        }
        // Only now: if we are killed in between, the warden or a later launcher does it again.
        self.note(None, &paths.iter().map(|path| Record::Done { nspace, path }).collect::<Vec<_>>());
    }

    /// Removes what is left of a job.
    pub(crate) fn job_ended(&mut self, nspace: &Nspace) {
        if let Some(job) = self.jobs.remove(nspace) {
            job.remove();
            self.note(None, &[Record::Over { nspace }]);
        }
    }

    /// Writes to the journal; begins one in `session` if there is none.
    fn note(&mut self, session: Option<&PrivateDir>, records: &[Record<'_>]) {
        let written = match (&mut self.journal, session) {
            (Some(journal), _) if journal.is_long() => journal.write_anew(&self.jobs, records),
            (Some(journal), _) => journal.write(records),
            (None, None) => Ok(()),
            (None, Some(session)) => Journal::begin(session, records).map(|journal| {
                self.journal = Some(journal);
            }),
        };
        if let Err(e) = written {
            tracing::warn!("cannot note what is to be removed if this process is killed: {e}");
        }
    }
}

/// Removes what the journal of a dead session lists.
pub(crate) fn carry_out_journal(session: &PrivateDir) {
    journal::read(session).into_values().for_each(|job| job.remove());
}

impl Job {
    fn enter(&mut self, path: Text, what: Cleanup) {
        match what {
            Cleanup::Ignored => drop(self.ignored.insert(path)),
            what => drop(self.paths.insert(path, what)),
        }
    }

    fn remove(&self) {
        self.paths.iter().for_each(|(path, what)| remove(path, *what, &self.ignored));
    }
}

fn remove(path: &Text, what: Cleanup, ignored: &BTreeSet<Text>) {
    match remove::remove(path, what, ignored) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove {path}, which a process has left to be removed: {e}");
        }
        _ => {}
    }
}

fn as_path(text: &Text) -> &Path {
    Path::new(OsStr::from_bytes(text.as_bytes()))
}

#[cfg(test)]
mod tests;
