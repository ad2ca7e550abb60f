//! The answers to gets, each in the form that its recipient reads.

use phalanx_spec::{Rank, Status};
use phalanx_wire::ProcId;
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::get::{OwnerData, RefreshReply, Reply};

use super::known::{Known, owned, to_kvals};
use super::told::{note_told, told_values};
use crate::machine::CallId;
use crate::server::call::ServerReturn;
use crate::server::peer::Asker;
use crate::server::turn::Cx;

/// The asker, and the form of the answer.
#[derive(Debug)]
pub(super) enum Recipient {
    Get(Asker),
    Refresh(Asker),
    /// The owner, for another server.
    Owner(CallId),
}

impl Recipient {
    pub(super) fn asker(&self) -> Option<&Asker> {
        match self {
            Recipient::Get(asker) | Recipient::Refresh(asker) => Some(asker),
            Recipient::Owner(_) => None,
        }
    }
}

pub(super) fn deliver(
    cx: &mut Cx<'_>,
    known: &Known,
    recipient: Recipient,
    target: &ProcId,
    outcome: Result<Vec<OwnerData>, Status>,
) {
    match recipient {
        Recipient::Get(to) => {
            let (status, data) = match outcome {
                Ok(data) => (Status::SUCCESS, data),
                Err(status) => (status, Vec::new()),
            };
            if let Some(peer) = cx.peers.conns.peer_mut(to.conn) {
                let jobs = data.iter().filter(|d| d.owner.rank == Rank::WILDCARD && d.values.len() > 1);
                peer.note_jobs_told(jobs.map(|d| d.owner.nspace.clone()));
            }
            cx.reply(to, |dialect| Reply { status, data }.encode(dialect));
        }
        Recipient::Refresh(to) => {
            let (status, data) = match outcome {
                Ok(data) => (Status::SUCCESS, data),
                Err(status) => (status, Vec::new()),
            };
            let values = data.into_iter().flat_map(|owner| owner.values).collect();
            cx.reply(to, |dialect| RefreshReply { status, values }.encode(dialect));
        }
        Recipient::Owner(id) => {
            let result =
                ServerReturn::Modex(outcome.map(|_| known.modex.contribution_of(&cx.peers.jobs, target)));
            cx.give(id, result);
        }
    }
}

/// Sends the new values of a process.
pub(super) fn deliver_news(cx: &mut Cx<'_>, asker: Asker, target: &ProcId, status: Status) {
    let told = told_values(cx.peers, &asker, target, &[]).unwrap_or_default();
    let values = cx.peers.jobs.client(target).map(|client| match told {
        0 => to_kvals(client.committed().local()),
        told => client.committed().local().newer(told).collect(),
    });
    note_told(cx.peers, &asker, target, &[]);
    let data = vec![owned(target, values.unwrap_or_default())];
    cx.reply(asker, |dialect| Reply { status, data }.encode(dialect));
}
