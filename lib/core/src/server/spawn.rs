//! Spawn: a process or tool starts another job. The host starts it; the answer holds its job data, if the host has
//! registered it here.

use phalanx_spec::{Status, keys};
use phalanx_wire::cmd::iof::{DRESSED, STYLE};
use phalanx_wire::cmd::job_data::JobData;
use phalanx_wire::cmd::spawn::{Spawn, encode_success};
use phalanx_wire::{DataArray, Info, InfoList, Kval, Value};

use super::host::{Then, as_failure};
use super::iof::{Streams, default_style};
use super::job_data::Describer;
use super::peer::{Asker, PeerKind};
use super::turn::Cx;
use crate::host::{Asked, HostOp, HostReply};

pub(super) fn on_spawn(cx: &mut Cx<'_>, from: Asker, spawn: Spawn) {
    let parent = spawn.job.find(keys::PARENT_ID);
    if spawn.apps.is_empty() || parent.is_some_and(|parent| !matches!(parent, Value::Proc(_))) {
        return cx.answer(from, Status::ERR_BAD_PARAM);
    }
    let is_tool = cx.peers.conns.peer(from.conn).is_some_and(|peer| peer.role() == PeerKind::Tool);
    let mut job = spawn.job;
    let dressed = job.is_set(DRESSED);
    job.retain(|info| info.key != *DRESSED);
    job.extend(from.identity());
    job.push(Info::new(keys::SPAWNED, true));
    job.push(Info::new(keys::PARENT_ID, from.proc.clone()));
    job.push(Info::new(if is_tool { keys::REQUESTOR_IS_TOOL } else { keys::REQUESTOR_IS_CLIENT }, true));
    let proc = from.proc.clone();
    let op = HostOp::Spawn(Asked { from: proc.clone(), request: Spawn { job, apps: spawn.apps } });
    cx.ask(Some(&proc), op, Then::AnswerSpawn { to: from, dressed });
}

/// `dressed`: the spawner formats the output itself, so its answer includes the server's output style.
pub(super) fn on_spawned(
    cx: &mut Cx<'_>,
    streams: &mut Streams,
    describer: &Describer,
    (to, dressed): (Asker, bool),
    reply: HostReply,
) {
    let nspace = match reply {
        HostReply::Spawned(Ok(nspace)) => nspace,
        other => return cx.answer(to, as_failure(other.status())),
    };
    let Some(peer) = cx.peers.conns.peer_mut(to.conn) else { return };
    let format = peer.dialect().format;
    if cx.peers.jobs.contains(&nspace) {
        peer.note_jobs_told([nspace.clone()]);
    }
    if peer.role() == PeerKind::Tool {
        streams.pull_for_parent(&cx.peers.conns, to.conn, &nspace);
    }
    let job = cx.peers.jobs.encoded(&nspace, format, |job| describer.job_data(job)).unwrap_or_else(|| {
        JobData { nspace: nspace.clone(), values: Vec::new(), procs: Vec::new() }.encoded(format)
    });
    let style = dressed.then(|| Kval::new(STYLE, DataArray::of_infos(default_style(cx.config))));
    cx.reply(to, |_| encode_success(&job, style.as_ref()));
}
