//! Output that arrives without a pull: that of jobs which this process has started and whose output it is to write itself
//! (`PMIX_IOF_LOCAL_OUTPUT`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phalanx_core::NewJob;
use phalanx_spec::{IofChannel, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId};

use crate::engine::OutputDone;
use crate::error::Error;
use crate::screen::Screen;

/// The screens of such jobs. All clones share them.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    screens: BTreeMap<Nspace, (Screen, Take)>,
    /// Output from before the answer to the spawn, which some servers send later.
    early: VecDeque<Early>,
}

struct Early {
    source: ProcId,
    channel: IofChannel,
    data: Vec<u8>,
    info: Vec<Info>,
    done: OutputDone,
}

type Take = Box<dyn FnMut(&ProcId, IofChannel, &[u8], &[Info], OutputDone) + Send>;

/// A job that is about to be started, with its output to be shown.
#[derive(Debug)]
pub struct Showing {
    shown: Shown,
    screen: Screen,
}

impl Shown {
    /// Prepares this if the directives of a spawn request it; None: the output is not shown here.
    pub(crate) fn prepare(&self, job: &mut Vec<Info>) -> Result<Option<Showing>, Error> {
        if !job.is_set(keys::IOF_LOCAL_OUTPUT) {
            return Ok(None);
        }
        Ok(Some(Showing { shown: self.clone(), screen: Screen::open(job)? }))
    }

    pub(crate) fn take(
        &self,
        source: &ProcId,
        channel: IofChannel,
        data: &[u8],
        info: &[Info],
        done: OutputDone,
    ) {
        let mut table = self.lock();
        match table.screens.get_mut(&source.nspace) {
            Some((_, take)) => take(source, channel, data, info, done),
            None => {
                let (source, data, info) = (source.clone(), data.to_vec(), info.to_vec());
                table.early.push_back(Early { source, channel, data, info, done });
                if table.early.len() > MOST_EARLY {
                    table.early.pop_front();
                }
            }
        }
    }

    /// Writes all that has arrived.
    pub(crate) fn close(&self) {
        let screens = std::mem::take(&mut self.lock().screens);
        drop(screens);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Showing {
    /// The job was started.
    pub fn begin(self, job: &NewJob) {
        let NewJob { nspace, style } = job;
        self.screen.begin(style.clone());
        let mut take: Take = Box::new(self.screen.handler());
        let mut table = self.shown.lock();
        let (own, others): (VecDeque<Early>, _) =
            std::mem::take(&mut table.early).into_iter().partition(|early| early.source.nspace == *nspace);
        table.early = others;
        for Early { source, channel, data, info, done } in own {
            take(&source, channel, &data, &info, done);
        }
        table.screens.insert(nspace.clone(), (self.screen, take));
    }
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

/// Pieces of output of jobs without a screen.
const MOST_EARLY: usize = 64;
