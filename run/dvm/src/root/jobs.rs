//! The jobs that have not ended everywhere, and what is known of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use phalanx_wire::Nspace;

use crate::id::NodeId;
use crate::msg::{Down, JobDesc, Reached};
use crate::ranges::Ranges;
use crate::report::Report;
use crate::root::abilities::Abilities;
use crate::root::descent::{Descent, Separation};
use crate::root::journal::Journal;
use crate::root::pauses::Pauses;
use crate::root::turn::Cx;

#[derive(Debug)]
pub(super) struct RootJob {
    pub(super) desc: Arc<JobDesc>,
    /// The operation of its spawner, until that has been answered.
    pub(super) spawn: Option<u64>,
    pub(super) descent: Descent,
    /// Ranks that have failed while the job goes on.
    pub(super) dead: Ranges,
    /// Ranks without a process, whose slots are free.
    pub(super) ended: Ranges,
    /// Ranks that have finalized.
    pub(super) leaving: Ranges,
    /// It has been connected with the job that has spawned it, and has disconnected or met it in a fence.
    pub(super) let_go: bool,
    /// Ranks that job control has ended.
    pub(super) killed: Ranges,
    /// What its ranks have registered for checkpoints.
    pub(super) abilities: Abilities,
    /// How often each rank was started again.
    pub(super) restarts: BTreeMap<u32, u32>,
    /// Ranks that are being started again.
    pub(super) restarting: Ranges,
    pub(super) pauses: Pauses,
    /// Its history.
    pub(super) journal: Journal,
    pub(super) limit: Option<Duration>,
    pub(super) separation: Separation,
    /// Processes that have called init, by daemon.
    connected: BTreeMap<NodeId, Reached>,
    /// The daemons that have reported the end of all their processes.
    pub(super) exited: BTreeSet<NodeId>,
    /// The user was notified that the job is ending.
    pub(super) reported_ending: bool,
    /// The kinds of lifecycle lines that the request asks for.
    pub(super) logs: Vec<&'static str>,
    /// Kinds of aggregated log messages that were already shown.
    pub(super) logged: BTreeSet<String>,
}

impl RootJob {
    pub(super) fn new(
        desc: Arc<JobDesc>,
        (descent, separation): (Descent, Separation),
        journal: Journal,
        limit: Option<Duration>,
        logs: Vec<&'static str>,
    ) -> RootJob {
        RootJob {
            desc,
            spawn: None,
            descent,
            dead: Ranges::new(),
            ended: Ranges::new(),
            leaving: Ranges::new(),
            let_go: false,
            killed: Ranges::new(),
            abilities: Abilities::default(),
            restarts: BTreeMap::new(),
            restarting: Ranges::new(),
            pauses: Pauses::default(),
            journal,
            limit,
            separation,
            connected: BTreeMap::new(),
            exited: BTreeSet::new(),
            reported_ending: false,
            logs,
            logged: BTreeSet::new(),
        }
    }

    /// Processes at this daemon have called init. Returns how far the job has come.
    pub(super) fn connect(&mut self, from: NodeId, reached: Reached) -> Reached {
        self.connected.insert(from, reached);
        let mut all = Reached::default();
        self.connected.values().for_each(|reached| all.merge(*reached));
        all
    }

    /// Whether a slot is taken by this rank, or kept for it.
    pub(super) fn has_slot(&self, rank: u32) -> bool {
        !self.ended.contains(rank) || self.restarting.contains(rank)
    }

    /// Whether this rank will probably end soon.
    pub(super) fn is_ending(&self, rank: u32) -> bool {
        self.let_go || self.leaving.contains(rank) || self.journal.verdict().is_some()
    }

    /// Notifies the daemons of the job, and our own, of ranks that have died, so that nothing waits for them.
    pub(super) fn tell_dead(&mut self, cx: &mut Cx<'_>, ranks: &Ranges) {
        self.dead.add(ranks);
        self.pauses.forget(ranks);
        let mut to = self.desc.nodes.clone();
        to.insert(NodeId::ROOT.0);
        cx.cast(to, Down::Dead { nspace: self.desc.nspace.clone(), ranks: ranks.clone() });
    }

    /// Notifies the user, once, that the job is ending.
    pub(super) fn report_ending(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.reported_ending, true) {
            cx.report(Report::Ending { nspace: self.desc.nspace.clone() });
        }
    }

    /// Ranks that have failed while the job goes on, and are not being started again.
    pub(super) fn gone(&self) -> Ranges {
        self.dead.iter().filter(|rank| !self.restarting.contains(*rank)).collect()
    }

    /// What the job is called if all ranks that have not failed stand.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let gone = self.gone();
        self.pauses.word(&self.desc.ranks().iter().filter(|rank| !gone.contains(*rank)).collect())
    }
}

/// The jobs that have not ended everywhere.
pub(super) type Jobs = BTreeMap<Nspace, RootJob>;
