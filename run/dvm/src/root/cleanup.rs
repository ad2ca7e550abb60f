//! Cleanups that concern processes of other nodes than the requestor's: sent to the daemons of those processes, and answered
//! when all of them have entered them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use phalanx_core::HostReply;
use phalanx_spec::Status;
use phalanx_wire::Nspace;

use crate::id::NodeId;
use crate::msg::{CleanupRequest, Collective, Down, Kind, Members, Outcome};
use crate::ranges::Ranges;
use crate::root::{Cx, Root};

/// Requests for processes of other nodes than the requestor's.
#[derive(Debug, Default)]
pub(super) struct Spreads {
    last: u64,
    open: BTreeMap<Collective, Registration>,
    /// What all daemons have entered: every process of a large job may ask for the same.
    done: BTreeSet<(Arc<[Members]>, Arc<CleanupRequest>)>,
}

#[derive(Debug)]
struct Registration {
    request: Arc<CleanupRequest>,
    /// Daemons and their requests.
    waiting: Vec<(NodeId, u64)>,
}

impl Spreads {
    pub(super) fn know(&self, nspace: &Nspace) -> bool {
        self.done.iter().any(|(members, _)| members.iter().any(|one| one.nspace == *nspace))
    }

    pub(super) fn forget(&mut self, nspace: &Nspace) {
        self.done.retain(|(members, _)| members.iter().all(|m| m.nspace != *nspace));
    }
}

impl Root {
    /// Sends a request to the daemons of its targets; `from` is answered when all of them have.
    pub(super) fn spread_cleanup(
        &mut self,
        cx: &mut Cx<'_>,
        from: (NodeId, u64),
        members: Arc<[Members]>,
        request: CleanupRequest,
    ) {
        let members: Arc<[Members]> = members.iter().cloned().map(|m| self.without_dead(m)).collect();
        let mut to = Ranges::new();
        for Members { nspace, ranks } in members.iter() {
            to.add(&self.jobs.get(nspace).map(|job| job.desc.nodes_of(ranks)).unwrap_or_default());
        }
        let spreads = &mut self.spreads;
        let wish = (members.clone(), Arc::new(request));
        if to.is_empty() || spreads.done.contains(&wish) {
            return cx.answer(from.0, from.1, HostReply::Infos(Status::SUCCESS, Vec::new()));
        }
        let same = |(op, spread): &(&Collective, &mut Registration)| {
            op.members == wish.0 && spread.request == wish.1
        };
        if let Some((_, spread)) = spreads.open.iter_mut().find(same) {
            return spread.waiting.push(from);
        }
        spreads.last += 1;
        let op = Collective { kind: Kind::Cleanup, members, id: None, round: spreads.last };
        let spread = Registration { request: wish.1.clone(), waiting: vec![from] };
        spreads.open.insert(op.clone(), spread);
        cx.cast(to, Down::Cleanup { op, request: wish.1 });
    }

    fn without_dead(&self, mut members: Members) -> Members {
        if let Some(job) = self.jobs.get(&members.nspace) {
            let dead = job.dead.and(&members.ranks);
            dead.iter().for_each(|rank| members.ranks.remove(rank));
        }
        members
    }

    /// Those of which members are gone have failed.
    pub(super) fn end_spreads(&mut self, cx: &mut Cx<'_>, is_gone: impl Fn(&Members) -> bool) {
        let failed = self.spreads.open.keys().filter(|op| op.members.iter().any(&is_gone));
        for op in failed.cloned().collect::<Vec<_>>() {
            self.on_cleanup_spread(cx, &op, &Err(Status::ERR_PROC_ABORTED));
        }
    }

    /// All daemons have answered, or some of them never will.
    pub(super) fn on_cleanup_spread(&mut self, cx: &mut Cx<'_>, op: &Collective, outcome: &Outcome) {
        let spreads = &mut self.spreads;
        let Some(spread) = spreads.open.remove(op) else { return };
        if outcome.is_ok() && spreads.done.len() < MOST_DONE {
            spreads.done.insert((op.members.clone(), spread.request));
        }
        let status = outcome.as_ref().err().copied().unwrap_or(Status::SUCCESS);
        for (node, request) in spread.waiting {
            cx.answer(node, request, HostReply::Infos(status, Vec::new()));
        }
    }
}

/// Requests that the root remembers to be known everywhere.
const MOST_DONE: usize = 1024;
