//! A session: what a launcher keeps in files, in one place that nobody else can enter.
//!
//! The lock file `TMPDIR/px.UID.PID.RANDOM.lock` stands for the session; its directory `TMPDIR/px.UID.PID.RANDOM.SECRET`,
//! mode 0700, is made when something is to be put there. Most launches of programs without PMIx never need it, and a
//! directory can cost more than the whole rest of such a launch. Until it is made nobody else can know its name.
//!
//! The file is locked as long as the launcher or its warden lives, so whoever finds it unlocked may remove both: pids
//! are no proof, they repeat and differ between containers. Removal is the launcher's duty at an orderly end, the
//! [warden](crate::warden)'s after a violent one, and that of any later launcher of the same user when both are gone.
//!
//! A rank's own directory is made when that rank is let in: on some file systems making and removing a directory costs more than starting
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
use crate::strays;
use crate::tmpdir::TmpDir;
use crate::warden::{Groups, Warden};
pub(crate) use dir::PrivateDir;
pub(crate) use lock::{Lock, Place};

/// Where to put the session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Instead of `TMPDIR`; nothing else is tried then.
    pub tmpdir: Option<PathBuf>,
}

/// A session that has begun. If it is dropped without [`Session::end`], or the process ends, the warden does what is
/// to be done.
#[derive(Debug)]
pub struct Session {
    place: Place,
    dir: PathBuf,
    note: Option<String>,
    /// Held to the last: until then nobody else may take the session for an abandoned one.
    lock: Lock,
    warden: Warden,
    /// All children that this process has but for the warden, ranks have left.
    was_childless: bool,
    /// Children that we had before the first rank: agents have left them, and they are not ours to end.
    left: Option<HashSet<Pid>>,
    /// The directory, if anything was ever put into it.
    made: Option<PrivateDir>,
}

impl Session {
    /// Makes the lock file and forks the warden. To be called while the process has one thread and little memory.
    pub fn begin(options: &SessionOptions) -> Result<Session> {
        let ((place, lock), note) = match &options.tmpdir {
            Some(dir) => (lock_in(TmpDir::open(dir)?)?, None),
            None => TmpDir::choose(lock_in)?,
        };
        let dir = place.parent_path().join(place.secret_name().context("cannot get random bytes")?);
        let was_childless = !strays::have_children();
        let warden =
            Warden::fork(&place, &lock).context("cannot start the process that cleans up after us")?;
        strays::adopt();
        Ok(Session { place, dir, note, lock, warden, was_childless, left: None, made: None })
    }

    /// Where the session keeps its files. Absolute; it exists when something was put there.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Something that the user should know, if the directory is not where it was to be.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The pid of the warden: it is a child of ours that no job has started.
    pub(crate) fn warden(&self) -> Pid {
        self.warden.pid()
    }

    /// The first process is about to start of which nothing may be left. `is_known`: which children are not orphans.
    pub(crate) fn before_first_rank(&mut self, is_known: impl Fn(Pid) -> bool) {
        if self.left.is_none() {
            let warden = self.warden.pid();
            let children = strays::children().unwrap_or_default().into_iter();
            self.left = Some(children.filter(|pid| *pid != warden && !is_known(*pid)).collect());
        }
    }

    /// A child has been reaped that nobody here has started.
    pub(crate) fn orphan_ended(&mut self, pid: Pid) {
        if let Some(left) = &mut self.left {
            left.remove(&pid);
        }
    }

    /// Where there was no rank, everybody was left by agents.
    fn was_left(&self, child: Pid) -> bool {
        self.left.as_ref().is_none_or(|left| left.contains(&child))
    }

    /// The process groups that the warden would kill.
    pub(crate) fn groups(&mut self) -> &mut Groups {
        self.warden.groups()
    }

    /// The directory, for something of our own.
    pub(crate) fn use_dir(&mut self) -> io::Result<&PrivateDir> {
        let made = match self.made.take() {
            Some(made) => made,
            None => self.place.make_dir(&self.lock, self.dir.file_name().unwrap_or_default())?,
        };
        Ok(self.made.insert(made))
    }

    /// The directory, for something that can be done without it. None: it cannot be made, and the log says why.
    pub(crate) fn dir_if_possible(&mut self) -> Option<&PrivateDir> {
        let path = self.dir.clone();
        self.use_dir().inspect_err(|e| tracing::warn!("cannot make {}: {e}", path.display())).ok()
    }

    /// Makes a directory of this session, because somebody may look for it from now on.
    pub(crate) fn make(&mut self, dir: &Path) {
        if let Some(made) = self.dir_if_possible()
            && let Err(e) = made.make_below(dir)
        {
            tracing::warn!("cannot make {}: {e}", dir.display());
        }
    }

    /// Removes a directory of this session with all that is in it.
    pub(crate) fn discard(&self, dir: &Path) {
        let Some(made) = self.made.as_ref().filter(|_| dir.starts_with(&self.dir)) else { return };
        if let Err(e) = made.remove_below(dir)
            && e.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove {}: {e}", dir.display());
        }
    }

    /// The orderly end: nothing of the session is left.
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

/// Removes everything of a session whose processes are all dead.
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
