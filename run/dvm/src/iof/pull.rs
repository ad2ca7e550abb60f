//! Pulls: which streams the server of some daemon wants for its clients and tools.
//!
//! The root enters a tap for each and sends it what it covers (`readers.rs`); the daemon of the tap hands that to its server
//! and says when it has left. A stop lets everything arrive that was written before it.

use std::collections::BTreeMap;

use phalanx_core::HostReply;
use phalanx_core::server::{OutputTo, ServerCall, ServerReturn};
use phalanx_spec::{IofChannel, Rank, Status, keys};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value, cmd::iof::DROPPED};

use crate::daemon::{Call, Cx, Daemon};
use crate::id::NodeId;
use crate::iof::cache::Backlog;
use crate::iof::readers::Tap;
use crate::msg::{Forward, TapName, Up};

/// What is honoured of a pull, here or by our server.
pub(crate) const PULL_ATTRIBUTES: &[&str] =
    &[keys::IOF_COPY, keys::IOF_REDIRECT, keys::IOF_CACHE_SIZE, keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST];

/// What our server has been given and not let go, by reader.
#[derive(Debug, Default)]
pub(crate) struct Delivering(BTreeMap<TapName, Open>);

#[derive(Debug, Default)]
struct Open {
    pieces: usize,
    /// What has left and was not told.
    left: Vec<(u64, usize)>,
    left_bytes: usize,
}

impl Daemon {
    /// Root only: a server wants streams.
    pub(crate) fn pull_output(
        &mut self,
        cx: &mut Cx<'_>,
        (origin, request): (NodeId, u64),
        by: &ProcId,
        (sources, channels): (&[ProcId], IofChannel),
        (directives, handle): (&[Info], u64),
    ) {
        let wanted = IofChannel(channels.0 & OUTPUTS.0);
        if let Err(status) = self.may_pull(by, sources, wanted) {
            return self.refuse(cx, origin, request, status);
        }
        // Redirection is the standard's default.
        let copy = directives.is_set(keys::IOF_COPY) && !directives.is_set(keys::IOF_REDIRECT);
        let mut tap = Tap::new(sources.to_vec(), wanted, copy);
        let backlog = self.backlog(by, sources, wanted, directives);
        backlog.pieces.into_iter().for_each(|piece| tap.push(piece));
        tap.lost = backlog.lost;
        let name = (origin, TapName::Pull(handle));
        // Of several jobs the first one's.
        let style = sources.first().map(|source| self.style_of(by, &source.nspace)).unwrap_or_default();
        self.forget_read(by, sources, wanted);
        tap.names_places = names_places(&style) || names_places(directives);
        self.iof.readers.taps.insert(name.clone(), tap);
        self.answer(cx, origin, request, HostReply::Infos(Status::SUCCESS, style));
        self.pump_tap(cx, &name);
    }

    fn style_of(&self, by: &ProcId, nspace: &Nspace) -> Vec<Info> {
        let running = self.root.as_ref().and_then(|root| root.jobs.get(nspace));
        let over = || self.iof.readers.unread.style(nspace, by).unwrap_or_default().to_vec();
        running.map_or_else(over, |job| job.style.clone())
    }

    fn may_pull(&self, by: &ProcId, sources: &[ProcId], channels: IofChannel) -> Result<(), Status> {
        if channels.is_empty() {
            return Err(Status::ERR_NOT_SUPPORTED);
        }
        for source in sources {
            let job = self.root.as_ref().and_then(|root| root.jobs.get(&source.nspace));
            let over = || self.iof.readers.unread.desc(&source.nspace, by);
            let desc = job.map(|job| &*job.desc).or_else(over).ok_or(Status::ERR_NOT_FOUND)?;
            if source.rank != Rank::WILDCARD && source.rank.0 >= desc.size {
                return Err(Status::ERR_NOT_FOUND);
            }
            // What was not asked for when the job was spawned cannot be had later.
            if !desc.forward.intersects(channels) {
                return Err(Status::ERR_NOT_AVAILABLE);
            }
        }
        Ok(())
    }

    /// What was written before and this reader is to get: its own children's output, and what it asks for.
    fn backlog(&self, by: &ProcId, sources: &[ProcId], channels: IofChannel, directives: &[Info]) -> Backlog {
        let size = directives.find(keys::IOF_CACHE_SIZE).and_then(|value| value.as_u64());
        let mut backlog = Backlog::default();
        let Some(root) = &self.root else { return backlog };
        if size != Some(0) {
            self.iof.readers.unread.replay(by, sources, channels, &mut backlog);
        }
        for (nspace, job) in &root.jobs {
            let wanted = |proc: &ProcId| sources.iter().any(|source| source.covers(proc));
            if size.unwrap_or_else(|| u64::from(job.desc.parent.as_ref() == Some(by))) > 0 {
                let pid = |proc: &ProcId| job.pid(proc.rank);
                job.cache.replay(nspace, channels, wanted, pid, &mut backlog);
            }
        }
        backlog
    }

    /// Root only: whoever spawned `child` gets its output from the first byte, behind the answer to the spawn.
    pub(crate) fn pull_for_parent(
        &mut self,
        origin: NodeId,
        parent: &ProcId,
        child: &Nspace,
        channels: IofChannel,
        copy: bool,
    ) {
        let mut tap = Tap::new(vec![ProcId::all(child)], channels, copy);
        tap.ready = false;
        self.iof.readers.taps.insert((origin, TapName::Parent(parent.clone(), child.clone())), tap);
    }

    /// Root only: the spawn was answered.
    pub(crate) fn begin_for_parent(&mut self, cx: &mut Cx<'_>, child: &Nspace) {
        let of_child = |name: &(NodeId, TapName)| matches!(&name.1, TapName::Parent(_, job) if job == child);
        let Some(name) = self.iof.readers.taps.keys().find(|name| of_child(name)).cloned() else { return };
        if let Some(tap) = self.iof.readers.taps.get_mut(&name) {
            tap.ready = true;
        }
        self.pump_tap(cx, &name);
    }

    /// Root only: the job is over, and with it its parent's interest.
    pub(crate) fn end_for_parent(&mut self, cx: &mut Cx<'_>, child: &Nspace) {
        let of_child = |name: &&(NodeId, TapName)| matches!(&name.1, TapName::Parent(_, job) if job == child);
        let name = self.iof.readers.taps.keys().find(of_child).cloned();
        name.iter().for_each(|name| self.remove_tap(cx, name));
    }

    /// Root only: a server wants no more of a pull than was written by now. Unless its reader has died, that gets what is held
    /// for it.
    pub(crate) fn stop_output(
        &mut self,
        cx: &mut Cx<'_>,
        origin: NodeId,
        request: u64,
        (handle, died): (u64, bool),
    ) {
        let name = (origin, TapName::Pull(handle));
        match self.iof.readers.taps.get_mut(&name) {
            Some(tap) => {
                tap.stopping = Some(request);
                tap.ends_well = !died;
                self.try_stopped(cx, &name);
            }
            None => self.refuse(cx, origin, request, Status::SUCCESS),
        }
    }

    pub(super) fn try_stopped(&mut self, cx: &mut Cx<'_>, name: &(NodeId, TapName)) {
        let over = |tap: &&mut Tap| tap.stopping.is_some() && tap.is_drained();
        if let Some(tap) = self.iof.readers.taps.get_mut(name).filter(over) {
            if tap.ends_well {
                tap.held.clear();
            }
            self.remove_tap(cx, name);
        }
    }

    /// Output for somebody here.
    pub(crate) fn give_output(&mut self, cx: &mut Cx<'_>, output: &Forward) {
        let Forward { to, piece, proc, pid, names_place, channel, data, lost } = output;
        self.iof.delivering.0.entry(to.clone()).or_default().pieces += 1;
        let mut info = Vec::new();
        if *lost > 0 {
            info.push(Info::new(DROPPED, *lost));
        }
        if data.is_empty() {
            info.push(Info::new(keys::IOF_COMPLETE, true));
        }
        if *names_place {
            let desc = self.jobs.get(&proc.nspace).map(|job| job.desc.clone());
            let node = desc.and_then(|desc| desc.node_of(proc.rank));
            info.extend(node.map(|node| Info::new(keys::HOSTNAME, &*self.node_name(node))));
            info.extend(pid.map(|pid| Info::new(keys::PROC_PID, Value::Pid(pid))));
        }
        let purpose = Call::Output { to: to.clone(), piece: *piece, bytes: data.len() };
        let to = match to {
            TapName::Pull(handle) => OutputTo::Pull(*handle),
            TapName::Parent(parent, _) => OutputTo::Parent(parent.clone()),
        };
        let (source, channel, data) = (proc.clone(), *channel, data.clone().into());
        self.call(cx, ServerCall::Output { to, source, channel, data, info }, purpose);
    }

    /// Our server has let a piece go. The root is told in steps, or when there is nothing left to go.
    pub(crate) fn output_left(
        &mut self,
        cx: &mut Cx<'_>,
        to: TapName,
        piece: u64,
        bytes: usize,
        result: &ServerReturn,
    ) {
        let Some(open) = self.iof.delivering.0.get_mut(&to) else { return };
        open.pieces -= 1;
        let gone = *result == ServerReturn::Done(Status::ERR_NOT_FOUND);
        if !gone {
            let held = if let ServerReturn::Held(held) = result { *held } else { 0 };
            open.left.push((piece, held));
            open.left_bytes += bytes;
        }
        let last = open.pieces == 0;
        if !gone && !last && open.left_bytes < TELL_AFTER {
            return;
        }
        let pieces = std::mem::take(&mut open.left);
        open.left_bytes = 0;
        if last {
            self.iof.delivering.0.remove(&to);
        }
        self.post(cx, Up::OutputLeft { to, pieces, gone });
    }
}

/// Whether output is to say where its process is.
fn names_places(style: &[Info]) -> bool {
    style.is_set(keys::IOF_TAG_DETAILED_OUTPUT) || style.is_set(keys::IOF_XML_OUTPUT)
}

/// What can be pulled.
pub(crate) const OUTPUTS: IofChannel =
    IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0 | IofChannel::STDDIAG.0);

const TELL_AFTER: usize = 32 << 10;
