//! What a connection has been told of a process, and gets that wait on behalf of others.
//!
//! Clients keep what they are told, and have one get of a process under way while others wait for its answer: those of OpenPMIx
//! as well as ours. So an answer leaves out what the connection was told before, but never the value that is asked for;
//! and a get that ends without its key still brings what is there, for those who wait behind it. A client of ours says that
//! anything new will do ([`PARTIAL`]), and asks again for what is missing.

use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::get::{PARTIAL, Reply};
use phalanx_wire::{Info, InfoList, ProcId};

use super::super::limits::KEY_WAIT;
use super::super::peer::{Asker, Peer};
use super::super::timers::Timer;
use super::super::{Cx, OWN, Server};
use super::{Pending, Who, owned, to_kvals};
use crate::machine::ConnId;

/// Whether anything new will do, and how long the asker has waited since it was last told so, if it was.
pub(super) fn take_partial(info: &mut Vec<Info>) -> Option<Option<Duration>> {
    let at = info.iter().position(|info| info.key == PARTIAL)?;
    let waited = info.remove(at).value.as_u64().filter(|millis| *millis > 0);
    Some(waited.map(Duration::from_millis))
}

impl Server {
    /// How new the values are that need not be told again. None: all are to be told.
    pub(super) fn told_values(&self, asker: &Asker, target: &ProcId, info: &[Info]) -> Option<u64> {
        if !is_plain(asker.conn, info) {
            return None;
        }
        self.conns.peer(asker.conn)?.told_of(target)
    }

    /// Remembers that this answer brings, or completes, everything that a local process has committed for its neighbours.
    pub(super) fn note_told(&mut self, asker: &Asker, target: &ProcId, info: &[Info]) {
        if is_plain(asker.conn, info)
            && let Some(newest) = self.client(target).map(|client| client.committed.local.newest())
            && let Some(peer) = self.conns.peer_mut(asker.conn)
        {
            peer.note_told(target, newest);
        }
    }

    pub(super) fn note_told_of(&mut self, id: u64) {
        let Some(Pending { who: Who::Get(asker), target, info, .. }) = self.gets.pending.get(&id) else {
            return;
        };
        let (asker, target, info) = (asker.clone(), target.clone(), info.clone());
        self.note_told(&asker, &target, &info);
    }

    /// Whether the process has committed what this connection was not told. `unknown`: so it has if nobody remembers.
    pub(super) fn has_news(&self, asker: &Asker, target: &ProcId, unknown: bool) -> bool {
        let Some(newest) = self.client(target).map(|client| client.committed.local.newest()) else {
            return false;
        };
        let told = self.conns.peer(asker.conn).and_then(|peer| peer.told_of(target));
        told.or(unknown.then_some(0)).is_some_and(|told| told < newest)
    }

    pub(super) fn is_served_by_news(&self, id: u64) -> bool {
        match self.gets.pending.get(&id) {
            Some(Pending { partial: true, who: Who::Get(asker), target, .. }) => {
                self.has_news(asker, target, true)
            }
            _ => false,
        }
    }

    /// The asker was told before that its key is not there: the time since then counts.
    pub(super) fn has_waited(&mut self, cx: &mut Cx<'_>, id: u64, before: Duration) {
        let Some(pending) = self.gets.pending.get_mut(&id) else { return };
        if pending.waits == super::Waits::Key && pending.overdue == Status::ERR_NOT_FOUND {
            self.timers.cancel(pending.timer);
            let left = KEY_WAIT.saturating_sub(before);
            pending.timer = Some(self.timers.set(cx.now.after(left), Timer::Get(id)));
        }
    }

    /// Ends a get whose key is not there, with what else is new of the process, since others may wait behind it.
    pub(super) fn end_without_key(&mut self, cx: &mut Cx<'_>, id: u64, status: Status) {
        let is_for_others = self.gets.pending.get(&id).is_some_and(|pending| {
            is_plain_get(pending) && pending.key.as_ref().is_some_and(|key| !key.is_reserved())
        });
        match self.gets.pending.get(&id) {
            Some(Pending { who: Who::Get(asker), target, partial, .. })
                if is_for_others && self.has_news(asker, target, true) =>
            {
                let (asker, target) = (asker.clone(), target.clone());
                let status = match (status, partial) {
                    // Others of theirs look for their values only then.
                    (Status::ERR_NOT_FOUND, false) => Status::SUCCESS,
                    _ => status,
                };
                self.take(id);
                self.deliver_news(cx, &asker, &target, status);
            }
            _ => self.end(cx, id, Err(status)),
        }
    }

    /// Tells of a process what is new.
    pub(super) fn deliver_news(&mut self, cx: &mut Cx<'_>, asker: &Asker, target: &ProcId, status: Status) {
        let told = self.told_values(asker, target, &[]).unwrap_or_default();
        let values = self.client(target).map(|client| match told {
            0 => to_kvals(&client.committed.local),
            told => client.committed.local.newer(told).collect(),
        });
        self.note_told(asker, target, &[]);
        let data = vec![owned(target, values.unwrap_or_default())];
        self.reply(cx, asker, |dialect| Reply { status, data }.encode(dialect));
    }

    /// The peer has read some of what waited for it.
    pub(in super::super) fn go_on_with_gets(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        while self.conns.peer(conn).is_some_and(|peer| !Peer::is_full(peer))
            && let Some(postponed) = self.gets.postponed.get_mut(&conn)
        {
            match postponed.pop_first() {
                Some((id, answered)) => self.retry(cx, id, answered),
                None => drop(self.gets.postponed.remove(&conn)),
            }
        }
    }
}

fn is_plain_get(pending: &Pending) -> bool {
    pending.who.asker().is_some_and(|asker| is_plain(asker.conn, &pending.info))
}

/// Whether an answer brings all values that there are for neighbours, and the asker keeps them.
fn is_plain(conn: ConnId, info: &[Info]) -> bool {
    let says = |key: &str| info.find(key).is_some();
    conn != OWN && !says(keys::DATA_SCOPE) && !says(keys::GET_REFRESH_CACHE)
}
