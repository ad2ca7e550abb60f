//! Collectives of ranks that have several connections.
//!
//! Each call is a participation of the rank: a second connection that calls while the first waits takes part in the next
//! meeting of the set. With `pmix.clone.part` it joins the first one, which waits for all of them. The word of a connection that ends
//! while its rank goes on is taken back, and calls of the others that wait behind it take its place: a child that dies in a fence
//! does not fence in its parent's stead.

use phalanx_wire::ProcId;

use super::{Arrival, Collective, State};
use crate::machine::ConnId;
use crate::server::peer::Asker;
use crate::server::timers::TimerId;
use crate::server::{Cx, Server};

impl Collective {
    /// Whether a call of this connection belongs here.
    pub(super) fn has_place_for(&self, from: &Asker) -> bool {
        match self.arrived.get(&from.proc) {
            None => true,
            Some(Arrival::Whole) => false,
            Some(Arrival::ByAllClones) => {
                self.state == State::Gathering && !self.askers.iter().any(|asker| asker.conn == from.conn)
            }
        }
    }
}

impl Server {
    /// Whether every participant has come, with all its connections where it wants that.
    pub(super) fn is_complete(&self, id: u64) -> bool {
        let Some(collective) = self.collectives.open.get(&id) else { return false };
        collective.arrived.len() >= collective.expected.len()
            && self.without_all_clones(collective).next().is_none()
    }

    /// Participants that have come, but not with all their connections although these take part.
    pub(super) fn without_all_clones<'a>(
        &'a self,
        collective: &'a Collective,
    ) -> impl Iterator<Item = &'a ProcId> {
        let by_all = collective.arrived.iter().filter(|(_, arrival)| **arrival == Arrival::ByAllClones);
        by_all.map(|(proc, _)| proc).filter(|proc| {
            let waits = |conn: &ConnId| collective.askers.iter().any(|asker| asker.conn == *conn);
            !self.live_connections(proc).all(|conn| waits(&conn))
        })
    }

    /// A connection ends, and its rank goes on: what it waits for with others goes on without it.
    pub(in crate::server) fn withdraw(&mut self, cx: &mut Cx<'_>, conn: ConnId, proc: &ProcId) {
        let (mut touched, mut free) = (Vec::new(), Vec::new());
        for (id, collective) in &mut self.collectives.open {
            if collective.state != State::Gathering || !collective.arrived.contains_key(proc) {
                continue;
            }
            touched.push(*id);
            let before = collective.askers.len();
            collective.askers.retain(|asker| asker.conn != conn);
            let has_left = collective.askers.len() < before;
            if has_left && !collective.askers.iter().any(|asker| asker.proc == *proc) {
                collective.arrived.remove(proc);
                free.push(*id);
            }
        }
        for id in free {
            self.move_up(id, proc);
        }
        // It may have been the last one that was missing of its rank.
        for id in touched {
            self.advance_or_close(cx, id);
        }
    }

    /// A rank's place in a meeting is free: its calls that wait for later ones of the set each go one ahead.
    fn move_up(&mut self, freed: u64, proc: &ProcId) {
        let Some(signature) = self.collectives.open.get(&freed).map(|c| c.signature.clone()) else { return };
        let queue = self.collectives.queues.get(&signature).cloned().unwrap_or_default();
        let mut free = freed;
        for later in queue.into_iter().filter(|id| *id > freed) {
            let gathering = |c: &&mut Collective| c.state == State::Gathering;
            let Some(from) = self.collectives.open.get_mut(&later).filter(gathering) else { continue };
            let Some(arrival) = from.arrived.remove(proc) else { continue };
            let askers: Vec<Asker> = from.askers.extract_if(.., |asker| asker.proc == *proc).collect();
            let (info, deadline) = (from.info.clone(), from.timer.map(TimerId::at));
            let Some(to) = self.collectives.open.get_mut(&free) else { return };
            to.arrived.insert(proc.clone(), arrival);
            to.askers.extend(askers);
            to.add_info(info);
            if let Some(at) = deadline {
                to.end_by(&mut self.timers, free, at);
            }
            free = later;
        }
    }

    fn advance_or_close(&mut self, cx: &mut Cx<'_>, id: u64) {
        match self.collectives.open.get(&id) {
            Some(collective) if collective.arrived.is_empty() => {
                self.close(id);
            }
            Some(_) => self.advance(cx, id),
            None => {}
        }
    }
}
