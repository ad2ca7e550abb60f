//! Output that arrives without a pull: that of jobs which this process has started, and the notes of its server.
//!
//! A tool writes it to its own standard output and standard error, unless `PMIX_IOF_LOCAL_OUTPUT` was false when the process became a tool,
//! or at the spawn of the job; other processes write it if the attribute is true at the spawn. One screen shows all of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use phalanx_core::NewJob;
use phalanx_core::output::{BUFFER_ATTRIBUTES, FORM_ATTRIBUTES, STYLE_ATTRIBUTES};
use phalanx_spec::{Rank, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::error::Error;
use crate::screen::{self, Screen, Shot};

/// The output of this process's jobs that is shown. All clones share it.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    /// Output is shown unless a spawn requests otherwise.
    by_default: bool,
    /// Output arrives here.
    listens: bool,
    server: Option<Nspace>,
    /// Jobs with output that arrives without a pull, and whether it is shown.
    jobs: BTreeMap<Nspace, bool>,
    /// The unanswered spawns: whether their output is shown.
    spawning: Vec<bool>,
    /// Output from before the answer to the spawn, which some servers send later.
    early: VecDeque<Shot>,
    screen: Option<Screen>,
    /// The screen has got output since the last wait for it to be written.
    fresh: bool,
}

/// A job that is about to be started, with its output to be shown or not.
#[derive(Debug)]
pub struct Showing {
    shown: Shown,
    is_shown: bool,
    /// In which form.
    form: Vec<Info>,
}

impl Shown {
    /// For a tool with these directives at init.
    pub(crate) fn of_tool(info: &[Info], server: Option<Nspace>) -> Shown {
        let by_default = info.find(keys::IOF_LOCAL_OUTPUT).is_none_or(Value::is_true);
        Shown(Arc::new(Mutex::new(Table { by_default, listens: true, server, ..Table::default() })))
    }

    /// As the directives of a spawn say. None: nothing will come here.
    pub(crate) fn prepare(&self, job: &mut Vec<Info>) -> Result<Option<Showing>, Error> {
        let said = job.find(keys::IOF_LOCAL_OUTPUT).map(Value::is_true);
        let (is_shown, listens) = {
            let table = self.lock();
            (said.unwrap_or(table.by_default), table.listens)
        };
        if !is_shown && !listens {
            return Ok(None);
        }
        // Files that are not said to be for here are for those who run the job.
        let form = match said {
            Some(true) => screen::take_on(job, screen::ATTRIBUTES)?,
            _ if is_shown => screen::take_on(job, &[FORM_ATTRIBUTES, BUFFER_ATTRIBUTES])?,
            _ => Vec::new(),
        };
        self.lock().spawning.push(is_shown);
        Ok(Some(Showing { shown: self.clone(), is_shown, form }))
    }

    /// Whether this is the first time that output is to come here.
    pub(crate) fn begins_to_listen(&self) -> bool {
        !std::mem::replace(&mut self.lock().listens, true)
    }

    pub(crate) fn take(&self, shot: Shot) {
        let mut table = self.lock();
        let nspace = &shot.stream.proc.nspace;
        match table.jobs.get(nspace) {
            Some(true) => table.show(shot),
            Some(false) => {}
            None if !table.spawning.is_empty() && table.server.as_ref() != Some(nspace) => {
                table.early.push_back(shot);
                if table.early.len() > MOST_EARLY {
                    let first = table.early.pop_front();
                    first.into_iter().for_each(|first| table.show_by_default(first));
                }
            }
            None => table.show_by_default(shot),
        }
    }

    /// Whether all output of these processes is shown without a pull.
    pub(crate) fn show_all_of(&self, sources: &[ProcId]) -> bool {
        let table = self.lock();
        sources.iter().all(|source| table.jobs.get(&source.nspace) == Some(&true))
    }

    /// A pull of output that is shown anyway changes its form from here on.
    pub(crate) fn dress(&self, sources: &[ProcId], directives: &[Info]) -> Result<(), Error> {
        let form = screen::take_on(&mut directives.to_vec(), &[FORM_ATTRIBUTES, BUFFER_ATTRIBUTES])?;
        let mut table = self.lock();
        for source in sources.iter().filter(|source| source.rank == Rank::WILDCARD) {
            table.dress(&source.nspace, form.clone());
        }
        Ok(())
    }

    /// Waits until all output that has arrived is written, but not for a slow reader.
    pub(crate) fn settle(&self) {
        let written = {
            let mut table = self.lock();
            let fresh = std::mem::take(&mut table.fresh);
            table.screen.as_ref().filter(|_| fresh).and_then(Screen::written)
        };
        // If the screen has ended, nothing more is written.
        written.map(|written| written.recv_timeout(PATIENCE));
    }

    /// Waits until the output of a job that is over is written, however long that takes: the program may exit when it learns of the end.
    pub(crate) fn settle_job(&self, nspace: &Nspace) {
        let written = {
            let mut table = self.lock();
            table.show_early_of(nspace);
            table.screen.as_ref().map(Screen::waiter)
        };
        written.into_iter().for_each(|wait| wait());
    }

    /// Writes all that has arrived.
    pub(crate) fn close(&self) {
        let screen = {
            let mut table = self.lock();
            table.show_early();
            table.screen.take()
        };
        drop(screen);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn show_by_default(&mut self, shot: Shot) {
        if self.by_default {
            let nspace = &shot.stream.proc.nspace;
            if self.server.as_ref() != Some(nspace) {
                // Started by a job of ours.
                self.jobs.insert(nspace.clone(), true);
            }
            self.show(shot);
        }
    }

    fn show(&mut self, shot: Shot) {
        if let Some(screen) = self.screen() {
            screen.show(shot);
            self.fresh = true;
        }
    }

    /// What has come for a job that is over while its spawn is unanswered here.
    fn show_early_of(&mut self, nspace: &Nspace) {
        let is_shown = self.spawning.last().copied();
        let (Some(is_shown), false) = (is_shown, self.jobs.contains_key(nspace)) else { return };
        let (own, others): (VecDeque<Shot>, _) =
            std::mem::take(&mut self.early).into_iter().partition(|shot| shot.stream.proc.nspace == *nspace);
        self.early = others;
        if is_shown {
            own.into_iter().for_each(|shot| self.show(shot));
        }
    }

    /// All that has come for jobs that nobody knows.
    fn show_early(&mut self) {
        std::mem::take(&mut self.early).into_iter().for_each(|shot| self.show_by_default(shot));
    }

    fn dress(&mut self, job: &Nspace, form: Vec<Info>) {
        let is_style = |info: &Info| STYLE_ATTRIBUTES.iter().any(|keys| keys.contains(&info.key.as_str()));
        if form.iter().any(is_style)
            && let Some(screen) = self.screen()
        {
            screen.dress(job, form);
        }
    }

    fn screen(&mut self) -> Option<&Screen> {
        if self.screen.is_none() {
            match Screen::open(&mut Vec::new()) {
                Ok(screen) => {
                    screen.begin(Vec::new());
                    self.screen = Some(screen);
                }
                Err(error) => tracing::error!(%error, "output of jobs is not shown"),
            }
        }
        self.screen.as_ref()
    }
}

impl Showing {
    /// The job was started.
    pub fn begin(self, job: &NewJob) {
        let NewJob { nspace, style } = job;
        let mut table = self.shown.lock();
        table.jobs.insert(nspace.clone(), self.is_shown);
        if self.is_shown {
            table.dress(nspace, style.clone());
            table.dress(nspace, self.form.clone());
        }
        let (own, others): (VecDeque<Shot>, _) =
            std::mem::take(&mut table.early).into_iter().partition(|shot| shot.stream.proc.nspace == *nspace);
        table.early = others;
        if self.is_shown {
            own.into_iter().for_each(|shot| table.show(shot));
        }
    }
}

/// The spawn was answered.
impl Drop for Showing {
    fn drop(&mut self) {
        let mut table = self.shown.lock();
        if let Some(own) = table.spawning.iter().position(|is_shown| *is_shown == self.is_shown) {
            table.spawning.remove(own);
        }
        if table.spawning.is_empty() {
            table.show_early();
        }
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

/// Pieces of output of jobs that are about to be known.
const MOST_EARLY: usize = 64;
/// For a slow reader.
const PATIENCE: Duration = Duration::from_secs(1);
