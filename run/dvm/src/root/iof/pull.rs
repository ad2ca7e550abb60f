//! Pulls: which streams a daemon's server wants for its clients and tools.
//!
//! The root creates a tap for each pull and sends it the matching output (`readers.rs`); the tap's daemon hands that to its
//! server and reports when it has left. A stop first delivers everything that was written before it.

use phalanx_core::HostReply;
use phalanx_core::host::PullRequest;
use phalanx_spec::{IofChannel, Rank, Status, keys};
use phalanx_wire::cmd::iof::{FORWARDED, Pull};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};

use crate::id::NodeId;
use crate::msg::TapName;
use crate::root::answer::Answer;
use crate::root::dvm::Dvm;
use crate::root::iof::cache::Backlog;
use crate::root::iof::readers::Readers;
use crate::root::iof::tap::{OUTPUTS, Tap};
use crate::root::turn::Cx;

/// Attributes of a pull that are honoured, here or by our server.
pub(crate) const PULL_ATTRIBUTES: &[&str] =
    &[keys::IOF_COPY, keys::IOF_REDIRECT, keys::IOF_CACHE_SIZE, keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST];

/// A server requests streams.
pub(in crate::root) fn pull(
    cx: &mut Cx<'_>,
    dvm: &Dvm,
    readers: &mut Readers,
    answer: Answer,
    request: &PullRequest,
) {
    let PullRequest { from: by, request: Pull { sources, directives, channels, handle } } = request;
    let wanted = IofChannel(channels.0 & OUTPUTS.0);
    // All means what there is; a channel that is named has to be there.
    let is_whole = channels.contains(OUTPUTS);
    if let Err(status) = may_pull(dvm, readers, by, sources, wanted, is_whole) {
        return answer.done(cx, status);
    }
    // Redirection is the standard's default.
    let copy = directives.is_set(keys::IOF_COPY) && !directives.is_set(keys::IOF_REDIRECT);
    let mut tap = Tap::new(sources.to_vec(), wanted, copy);
    let backlog = backlog(dvm, readers, by, sources, wanted, directives);
    backlog.pieces.into_iter().for_each(|piece| tap.push(piece));
    tap.lost = backlog.lost;
    let name = (answer.origin(), TapName::Pull(*handle));
    // Of several jobs, the first one's style.
    let style = sources.first().map(|source| style_of(readers, by, &source.nspace)).unwrap_or_default();
    readers.forget_read(by, sources, wanted);
    tap.names_places = names_places(&style) || names_places(directives);
    readers.taps.insert(name.clone(), tap);
    let there =
        sources.iter().fold(wanted, |there, source| forwarded(dvm, readers, by, &source.nspace, there));
    let there = Info::new(FORWARDED, Value::Uint16(there.0));
    answer.give(cx, HostReply::Infos(Status::SUCCESS, style.into_iter().chain([there]).collect()));
    readers.pump_tap(cx, &name);
}

fn style_of(readers: &Readers, by: &ProcId, nspace: &Nspace) -> Vec<Info> {
    let running = readers.outputs.get(nspace);
    let over = || readers.unread.style(nspace, by).unwrap_or_default().to_vec();
    running.map_or_else(over, |outputs| outputs.style.clone())
}

/// Those of the channels that a job forwards.
fn forwarded(dvm: &Dvm, readers: &Readers, by: &ProcId, nspace: &Nspace, channels: IofChannel) -> IofChannel {
    let over = || readers.unread.desc(nspace, by);
    let desc = dvm.desc(nspace).or_else(over);
    desc.map_or(channels, |desc| IofChannel(desc.forward.0 & channels.0))
}

fn may_pull(
    dvm: &Dvm,
    readers: &Readers,
    by: &ProcId,
    sources: &[ProcId],
    channels: IofChannel,
    is_whole: bool,
) -> Result<(), Status> {
    if channels.is_empty() {
        return Err(Status::ERR_NOT_SUPPORTED);
    }
    for source in sources {
        let job = dvm.jobs.get(&source.nspace);
        let over = || readers.unread.desc(&source.nspace, by);
        let desc = job.map(|job| &*job.desc).or_else(over).ok_or(Status::ERR_NOT_FOUND)?;
        if source.rank != Rank::WILDCARD && source.rank.0 >= desc.size {
            return Err(Status::ERR_NOT_FOUND);
        }
        // What was not asked for when the job was spawned cannot be had later.
        let is_forwarded = match is_whole {
            true => desc.forward.intersects(channels),
            false => desc.forward.contains(channels),
        };
        if !is_forwarded {
            return Err(Status::ERR_NOT_AVAILABLE);
        }
    }
    Ok(())
}

/// Earlier output that this reader gets: its own children's output, and what it asks for.
fn backlog(
    dvm: &Dvm,
    readers: &Readers,
    by: &ProcId,
    sources: &[ProcId],
    channels: IofChannel,
    directives: &[Info],
) -> Backlog {
    let size = directives.find(keys::IOF_CACHE_SIZE).and_then(|value| value.as_u64());
    let mut backlog = Backlog::default();
    if size != Some(0) {
        readers.unread.replay(by, sources, channels, &mut backlog);
    }
    for (nspace, outputs) in &readers.outputs {
        let Some(job) = dvm.jobs.get(nspace) else { continue };
        let wanted = |proc: &ProcId| sources.iter().any(|source| source.covers(proc));
        if size.unwrap_or_else(|| u64::from(job.desc.parent.as_ref() == Some(by))) > 0 {
            let pid = |proc: &ProcId| job.journal.pid(proc.rank);
            outputs.cache.replay(nspace, channels, wanted, pid, &mut backlog);
        }
    }
    backlog
}

/// Creates the tap that sends `child`'s output to its spawner from the first byte, after the answer to the spawn.
pub(in crate::root) fn pull_for_parent(
    readers: &mut Readers,
    origin: NodeId,
    parent: &ProcId,
    child: &Nspace,
    channels: IofChannel,
    copy: bool,
) {
    let mut tap = Tap::new(vec![ProcId::all(child)], channels, copy);
    tap.ready = false;
    readers.taps.insert((origin, TapName::Parent(parent.clone(), child.clone())), tap);
}

/// The spawn was answered.
pub(in crate::root) fn begin_for_parent(cx: &mut Cx<'_>, readers: &mut Readers, child: &Nspace) {
    let of_child = |name: &(NodeId, TapName)| matches!(&name.1, TapName::Parent(_, job) if job == child);
    let Some(name) = readers.taps.keys().find(|name| of_child(name)).cloned() else { return };
    if let Some(tap) = readers.taps.get_mut(&name) {
        tap.ready = true;
    }
    readers.pump_tap(cx, &name);
}

/// The job is over: removes its parent's tap.
pub(in crate::root) fn end_for_parent(cx: &mut Cx<'_>, readers: &mut Readers, child: &Nspace) {
    let of_child = |name: &&(NodeId, TapName)| matches!(&name.1, TapName::Parent(_, job) if job == child);
    let name = readers.taps.keys().find(of_child).cloned();
    name.iter().for_each(|name| readers.remove_tap(cx, name));
}

/// A server stops a pull: only output written by now is still sent. Unless its reader has died, the reader also gets what
/// is held for it.
pub(in crate::root) fn stop(
    cx: &mut Cx<'_>,
    readers: &mut Readers,
    answer: Answer,
    (handle, died): (u64, bool),
) {
    let name = (answer.origin(), TapName::Pull(handle));
    match readers.taps.get_mut(&name) {
        Some(tap) => {
            tap.stopping = Some(answer);
            tap.ends_well = !died;
            readers.try_stopped(cx, &name);
        }
        None => answer.done(cx, Status::SUCCESS),
    }
}

/// Whether output is to be labelled with the location of its process.
fn names_places(style: &[Info]) -> bool {
    style.is_set(keys::IOF_TAG_DETAILED_OUTPUT) || style.is_set(keys::IOF_XML_OUTPUT)
}
