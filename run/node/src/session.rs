//! A session: a launcher's files, in one place that no other user can enter.
//!
//! The lock file `TMPDIR/px.UID.PID.RANDOM.lock` stands for the session; its directory `TMPDIR/px.UID.PID.RANDOM.SECRET`, mode 0700, is made when
//! something is to be put there. Most launches of programs without PMIx never need it, and a directory can cost more than the whole rest of such a
//! launch. Until it is made, its name is unknown to others.
//!
//! The file is locked as long as the launcher or its warden lives, so a process that finds it unlocked may remove both: pids are no proof, they
//! repeat and differ between containers. The launcher removes them at an orderly end, the [warden](crate::warden) after a violent one, and any later
//! launcher of the same user when both are gone.
//!
//! A rank's own directory is made when the rank is let in: on some file systems, making and removing a directory costs more than starting
//! the program.

mod dir;
mod lock;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Pid;

use crate::cleanup;
use crate::pulse::Pulse;
use crate::strays;
use crate::tmpdir::TmpDir;
use crate::warden::{Groups, Warden};
pub(crate) use dir::PrivateDir;
pub(crate) use lock::{Lock, Place};

/// Where to put the session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Instead of `TMPDIR`, without a fallback.
    pub tmpdir: Option<PathBuf>,
    /// Whether the warden kills this process if it stands still for longer than it ever should: others rely on it, and no user suspends it.
    pub is_watched: bool,
}

/// A session that has begun. If it is dropped without [`Session::end`], or the process ends, the warden cleans up.
#[derive(Debug)]
pub struct Session {
    place: Place,
    dir: PathBuf,
    note: Option<String>,
    /// Held to the last: without it, another launcher would take the session for an abandoned one.
    lock: Lock,
    warden: Warden,
    /// This process had no children at the start, so all that it has now, except the warden, are its ranks or orphans of ranks.
    was_childless: bool,
    /// Orphans of agents from before the first rank: they are not ours to end.
    left: Option<HashSet<Pid>>,
    /// The directory, if anything was ever put into it.
    made: Option<PrivateDir>,
}

impl Session {
    /// Makes the lock file and forks the warden. Must be called while the process has one thread and little memory.
    pub fn begin(options: &SessionOptions) -> Result<Session> {
        let ((place, lock), note) = match &options.tmpdir {
            Some(dir) => (lock_in(TmpDir::open(dir)?)?, None),
            None => TmpDir::choose(lock_in)?,
        };
        let dir = place.parent_path().join(place.secret_name().context("cannot get random bytes")?);
        let was_childless = !strays::have_children();
        let warden = Warden::fork(&place, &lock, options.is_watched)
            .context("cannot start the process that cleans up after us")?;
        strays::adopt();
        Ok(Session { place, dir, note, lock, warden, was_childless, left: None, made: None })
    }

    /// Where the session keeps its files. Absolute; exists once a file was put there.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A note for the user, if the directory is not at the requested place.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The pid of the warden, a child of ours that belongs to no job.
    pub(crate) fn warden(&self) -> Pid {
        self.warden.pid()
    }

    /// Called before the first process that must not leave any descendant behind. `is_known`: children that are not orphans.
    pub(crate) fn before_first_rank(&mut self, is_known: impl Fn(Pid) -> bool) {
        if self.left.is_none() {
            let warden = self.warden.pid();
            let children = strays::children().unwrap_or_default().into_iter();
            self.left = Some(children.filter(|pid| *pid != warden && !is_known(*pid)).collect());
        }
    }

    /// An orphan that we had adopted has been reaped.
    pub(crate) fn orphan_ended(&mut self, pid: Pid) {
        if let Some(left) = &mut self.left {
            left.remove(&pid);
        }
    }

    /// Whether an agent left this child. Without any rank, agents left them all.
    fn was_left(&self, child: Pid) -> bool {
        self.left.as_ref().is_none_or(|left| left.contains(&child))
    }

    /// How the warden sees that this process takes its turns.
    pub(crate) fn pulse(&self) -> Pulse {
        self.warden.pulse()
    }

    /// The process groups that the warden would kill.
    pub(crate) fn groups(&mut self) -> &mut Groups {
        self.warden.groups()
    }

    /// The directory, for a file that the session needs.
    pub(crate) fn use_dir(&mut self) -> io::Result<&PrivateDir> {
        let made = match self.made.take() {
            Some(made) => made,
            None => self.place.make_dir(&self.lock, self.dir.file_name().unwrap_or_default())?,
        };
        Ok(self.made.insert(made))
    }

    /// The directory, for a file that the session can do without. None: it cannot be made; the log has the reason.
    pub(crate) fn dir_if_possible(&mut self) -> Option<&PrivateDir> {
        let path = self.dir.clone();
        self.use_dir().inspect_err(|e| tracing::warn!("cannot make {}: {e}", path.display())).ok()
    }

    /// Makes a directory of this session, because processes may look for it from now on.
    pub(crate) fn make(&mut self, dir: &Path) {
        if let Some(made) = self.dir_if_possible()
            && let Err(e) = made.make_below(dir)
        {
            tracing::warn!("cannot make {}: {e}", dir.display());
        }
    }

    /// Removes a directory of this session with its contents.
    pub(crate) fn discard(&self, dir: &Path) {
        let Some(made) = self.made.as_ref().filter(|_| dir.starts_with(&self.dir)) else { return };
        if let Err(e) = made.remove_below(dir)
            && e.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {e}", dir.display());
        }
    }

    /// The orderly end: removes everything of the session.
    pub fn end(self) {
        if strays::are_possible(|pid| pid == self.warden.pid()) {
            strays::kill_all(self.marker().as_bytes(), || match self.was_childless {
                true => strays::kill_children(|pid| pid == self.warden.pid() || self.was_left(pid)),
                false => 0,
            });
        }
        if let Some(dir) = self.made {
            remove(&self.place, dir);
        }
        self.place.remove_lock(&self.lock);
        self.warden.dismiss();
    }

    /// What every process of this session carries in its environment, `NAME=VALUE`.
    pub(crate) fn marker(&self) -> OsString {
        marker(&self.place)
    }
}

/// See [`Session::marker`].
pub(crate) fn marker(place: &Place) -> OsString {
    let mut marker = OsString::from("PHALANX_SESSION=");
    marker.push(place.id());
    marker
}

/// Removes everything of a session that has no living process.
pub(crate) fn clear(place: &Place, lock: &Lock) {
    if let Some(dir) = place.dir_of(lock) {
        cleanup::carry_out_journal(&dir);
        remove(place, dir);
    }
    place.remove_lock(lock);
}

fn lock_in(dir: TmpDir) -> Result<(Place, Lock)> {
    let path = dir.path().to_owned();
    Place::lock_new(dir).with_context(|| format!("cannot make a lock file in {}", path.display()))
}

/// Removes a directory that may be losing or gaining files at the same time.
fn remove(place: &Place, dir: PrivateDir) {
    let path = dir.path().to_owned();
    match dir.remove(place.parent()) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {e}", path.display());
        }
        _ => {}
    }
}
