//! Finalize: takes leave of the server, and ends even if it does not answer.

use std::time::Duration;

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::Request;
use phalanx_wire::cmd::fence::Fence;
use phalanx_wire::{Info, InfoList, ProcId};

use super::call::ClientReturn;
use super::link::{Cx, SERVER};
use super::pending::{Awaited, deadline_of};
use super::phase::Phase;
use crate::machine::{CallId, Output};

pub(super) const ATTRIBUTES: &[&str] = &[keys::EMBED_BARRIER, keys::TIMEOUT];

pub(super) fn on_finalize(cx: &mut Cx<'_>, id: CallId, info: &[Info]) {
    match cx.link.phase {
        Phase::Ready => {}
        Phase::Alone | Phase::Lost => {
            cx.link.phase = Phase::Ended;
            return cx.out.push(Output::Return { id, result: ClientReturn::Done(Status::SUCCESS) });
        }
        _ => return cx.out.push(Output::Return { id, result: ClientReturn::Done(Status::ERR_INIT) }),
    }
    cx.link.phase = Phase::Finalizing;
    if !info.is_set(keys::EMBED_BARRIER) {
        return say_goodbye(cx, Some(id));
    }
    let everybody = vec![ProcId::all(&cx.link.config.proc.nspace)];
    let fence = Request::Fence(Fence { procs: everybody, info: Vec::new() });
    cx.ask_until(Some(id), &fence, Awaited::LastFence, deadline_of(cx.now, info));
}

/// Without a call the barrier's reply came after its time limit, and finalize was sent already.
pub(super) fn say_goodbye(cx: &mut Cx<'_>, call: Option<CallId>) {
    if call.is_some() {
        let deadline = Some(cx.now.after(PATIENCE));
        cx.ask_until(call, &Request::Finalize, Awaited::Finalize, deadline);
    }
}

pub(super) fn on_goodbye(cx: &mut Cx<'_>, call: Option<CallId>) {
    cx.link.phase = Phase::Ended;
    for entry in cx.link.pending.take_all() {
        let result = entry.what.failed(Status::ERR_LOST_CONNECTION);
        cx.give_back(entry.call, result);
    }
    cx.give_back(call, ClientReturn::Done(Status::SUCCESS));
    cx.out.push(Output::Close { conn: SERVER });
}

/// How long a server may take to answer finalize.
const PATIENCE: Duration = Duration::from_secs(2);
