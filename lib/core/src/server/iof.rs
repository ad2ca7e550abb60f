//! Forwarding of output and input: pulled streams, and the host's registrations for them.
//!
//! Output of ranks comes from the host, which knows where the ranks are; input goes to it. A pull that lies within an earlier
//! one shares that one's registration; any other registers with the host anew. Bytes on their way to a peer are in `lanes`.

mod format;
mod lane;
mod lanes;
mod pulls;

use std::collections::BTreeMap;

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::iof::{
    DRESSED, DROPPED, Deregister, FORWARDED, Pull, PullReply, Push, TELLS_TAKEN, Taken,
};
use phalanx_wire::{Blob, Info, InfoList, Nspace, ProcId};
use tracing::warn;

use super::call::{OutputTo, ServerReturn};
use super::config::ServerConfig;
use super::host::Then;
use super::limits::{MAX_OVERLAPPING_PULLS, MAX_PULLS};
use super::peer::{Asker, Connections, Peer, PeerKind};
use super::turn::Cx;
use crate::host::{Asked, HostOp, HostReply, PullEnded};
use crate::machine::{CallId, ConnId};
use crate::output::{Channel, Moment, Stream};
pub use format::OUTPUT_DEFAULTS;
use format::{Formatting, honoured, piece};
use lane::{Drops, PullPiece};
use lanes::{Lanes, Left};
use pulls::{Pulled, Pulls};

#[derive(Debug, Default)]
pub(super) struct Streams {
    pulls: Pulls,
    last: u64,
    /// Output that the host sends, by the number of the pull that asked for it.
    feeds: BTreeMap<u64, Feed>,
    lanes: Lanes,
}

/// A registration with the host.
#[derive(Debug)]
struct Feed {
    by: ProcId,
    sources: Vec<ProcId>,
    channels: IofChannel,
    /// Those that the host forwards, if it has named them. It refuses pulls that name others.
    forwarded: Option<IofChannel>,
    copy: bool,
    accepted: bool,
    /// Number of pulls served.
    users: usize,
    /// The style given when the output's job was started.
    style: Vec<Info>,
}

impl Streams {
    pub(super) fn on_pull(&mut self, cx: &mut Cx<'_>, from: Asker, pull: Pull) {
        if let Err(status) = self.may_pull(&from, &pull) {
            let reply = PullReply { status, handle: 0, style: Vec::new() };
            return cx.reply(from, |dialect| reply.encode(dialect));
        }
        let Pull { sources, mut directives, channels, handle } = pull;
        let copy = directives.is_set(keys::IOF_COPY);
        // No other reader needs what the reader of a copy has not taken, and the source does not wait for it.
        let instead = !copy || directives.is_set(keys::IOF_REDIRECT);
        let tells = instead && directives.is_set(TELLS_TAKEN);
        directives.retain(|info| info.key != *TELLS_TAKEN);
        let by = from.proc.clone();
        // Only the host has earlier output.
        let backlog = directives.find(keys::IOF_CACHE_SIZE).is_some();
        let serving = self.feeds.iter().find(|(_, feed)| {
            !backlog && feed.accepted && feed.copy == copy && feed.covers(&sources, channels)
        });
        let feed = serving.map(|(number, _)| *number);
        let drops = Drops::from_levels(&[&cx.config.output, &directives]);
        let number = self.enter(Pulled {
            conn: from.conn,
            by: by.clone(),
            sources: sources.clone(),
            channels,
            handle,
            feed,
            drops,
            stopping: false,
            instead,
            tells,
            format: None,
        });
        if let Some(feed) = feed.and_then(|number| self.feeds.get_mut(&number)) {
            feed.users += 1;
            let of_job = feed.style.clone();
            self.format(&cx.config.output, number, &of_job, &directives);
            let style = style_to_tell(cx, &of_job, &directives);
            let reply = PullReply { status: Status::SUCCESS, handle: number, style };
            return cx.reply(from, |dialect| reply.encode(dialect));
        }
        let feed = Feed {
            by: by.clone(),
            sources: sources.clone(),
            channels,
            forwarded: None,
            copy,
            accepted: false,
            users: 1,
            style: Vec::new(),
        };
        self.feeds.insert(number, feed);
        if let Some(pulled) = self.pulls.get_mut(&number) {
            pulled.feed = Some(number);
        }
        // The host may send output before its answer gives the job's style.
        self.format(&cx.config.output, number, &[], &directives);
        let wishes = directives.clone();
        directives.extend(from.identity());
        let op = HostOp::IofPull(Asked {
            from: by.clone(),
            request: Pull { sources, channels, directives, handle: number },
        });
        cx.ask(Some(&by), op, Then::AnswerPull { to: from, handle: number, wishes });
    }

    fn may_pull(&self, from: &Asker, pull: &Pull) -> Result<(), Status> {
        if pull.sources.is_empty() || pull.channels.is_empty() {
            return Err(Status::ERR_BAD_PARAM);
        }
        let own = || self.pulls.values().filter(|p| p.conn == from.conn);
        let together = self.pulls.values().filter(|p| p.by == from.proc).count();
        let overlaps = |p: &&Pulled| {
            p.channels.intersects(pull.channels)
                && p.sources.iter().any(|a| pull.sources.iter().any(|b| a.covers(b) || b.covers(a)))
        };
        if together >= MAX_PULLS || own().filter(overlaps).count() >= MAX_OVERLAPPING_PULLS {
            warn!(proc = %from.proc, limit = MAX_PULLS, "too many streams pulled: refused");
            return Err(Status::ERR_OUT_OF_RESOURCE);
        }
        Ok(())
    }

    pub(super) fn on_pull_answered(
        &mut self,
        cx: &mut Cx<'_>,
        to: Asker,
        handle: u64,
        wishes: &[Info],
        reply: HostReply,
    ) {
        let status = reply.status();
        // The host may answer only that it has done it already.
        let accepted = status.is_success() || status == Status::OPERATION_SUCCEEDED;
        let status = if accepted { Status::SUCCESS } else { status };
        let mut style = Vec::new();
        if accepted {
            let of_job = match reply {
                HostReply::Infos(_, info) => info,
                _ => Vec::new(),
            };
            if honoured(&of_job).next().is_some() {
                self.undress(cx, handle);
                self.format(&cx.config.output, handle, &of_job, wishes);
            }
            style = style_to_tell(cx, &of_job, wishes);
            if let Some(feed) = self.feeds.get_mut(&handle) {
                feed.accepted = true;
                feed.forwarded = forwarded(&of_job);
                feed.style = of_job;
            }
        } else {
            self.pulls.remove(&handle);
            self.feeds.remove(&handle);
        }
        cx.reply(to, |dialect| PullReply { status, handle, style }.encode(dialect));
    }

    /// Gives a tool what the server itself prints, without asking the host.
    pub(super) fn pull_for_tool(&mut self, cx: &Cx<'_>, conn: ConnId) {
        self.pull_unasked(&cx.peers.conns, conn, cx.config.identity.clone());
    }

    /// Gives a tool the output of the job it spawned; the host has settled already whether there is any.
    pub(super) fn pull_for_parent(&mut self, conns: &Connections, conn: ConnId, child: &Nspace) {
        self.pull_unasked(conns, conn, ProcId::all(child));
    }

    /// Gives a tool the output of a job that was spawned by one of its own jobs.
    fn pull_for_forebear(&mut self, conns: &Connections, to: &OutputTo, source: &ProcId) {
        let OutputTo::Parent(tool) = to else { return };
        let has_it = |pulled: &Pulled| {
            pulled.handle == 0
                && pulled.feed.is_none()
                && pulled.by == *tool
                && pulled.sources.iter().any(|wanted| wanted.covers(source))
        };
        if self.pulls.values().any(has_it) {
            return;
        }
        let of_tool = |(_, peer): &(ConnId, &Peer)| peer.role() == PeerKind::Tool && peer.proc() == tool;
        let conn = conns.peers().find(of_tool).map(|(conn, _)| conn);
        if let Some(conn) = conn {
            self.pull_unasked(conns, conn, ProcId::all(&source.nspace));
        }
    }

    fn pull_unasked(&mut self, conns: &Connections, conn: ConnId, source: ProcId) {
        let Some(peer) = conns.peer(conn) else { return };
        let pulled = Pulled {
            conn,
            by: peer.proc().clone(),
            sources: vec![source],
            channels: OUTPUTS,
            handle: 0,
            feed: None,
            drops: None,
            stopping: false,
            instead: false,
            tells: false,
            format: None,
        };
        self.enter(pulled);
    }

    pub(super) fn on_deregister(&mut self, cx: &mut Cx<'_>, from: Asker, request: &Deregister) {
        let handle = request.handle;
        let own = |pulled: &&mut Pulled| pulled.conn == from.conn && !pulled.stopping;
        let Some(pulled) = self.pulls.get_mut(&handle).filter(own) else {
            return cx.answer(from, Status::ERR_NOT_FOUND);
        };
        let feed = pulled.feed;
        let last = feed.and_then(|number| self.feeds.get(&number)).is_some_and(|feed| feed.users == 1);
        match feed.filter(|_| last) {
            Some(number) => {
                // Output that the host still has for the pull comes before the answer.
                pulled.stopping = true;
                let proc = from.proc.clone();
                let op = HostOp::IofStop(PullEnded {
                    from: proc.clone(),
                    handle: number,
                    directives: request.directives.clone(),
                    died: false,
                });
                if let Some(feed) = self.feeds.get_mut(&number) {
                    feed.accepted = false;
                }
                cx.ask(Some(&proc), op, Then::AnswerStop { to: from, handle });
                self.wait_for_no_line(cx, handle);
            }
            None => {
                self.leave_feed(feed);
                self.end_pull(cx, from, handle, Status::SUCCESS);
            }
        }
    }

    pub(super) fn on_stop_answered(&mut self, cx: &mut Cx<'_>, to: Asker, handle: u64, status: Status) {
        if let Some(pulled) = self.pulls.get(&handle) {
            self.leave_feed(pulled.feed);
        }
        self.end_pull(cx, to, handle, status);
    }

    /// The pull takes no more output; its end is answered after what it has.
    fn end_pull(&mut self, cx: &mut Cx<'_>, to: Asker, handle: u64, status: Status) {
        self.undress(cx, handle);
        if let Some(pulled) = self.pulls.get_mut(&handle) {
            pulled.stopping = true;
            pulled.feed = None;
            pulled.sources.clear();
        }
        self.lanes.say_farewell(cx, &mut self.pulls, to, handle, status);
    }

    /// True if no pull uses this feed any more.
    fn leave_feed(&mut self, number: Option<u64>) -> bool {
        let Some((number, feed)) = number.and_then(|number| Some((number, self.feeds.get_mut(&number)?)))
        else {
            return false;
        };
        feed.users = feed.users.saturating_sub(1);
        let over = feed.users == 0;
        if over {
            self.feeds.remove(&number);
        }
        over
    }

    pub(super) fn forget_of(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let gone: Vec<Pulled> =
            self.pulls.extract_if(.., |_, pulled| pulled.conn == conn).map(|(_, p)| p).collect();
        self.lanes.drop_of(cx, conn);
        for mut pulled in gone {
            if let Some(format) = pulled.format.take() {
                cx.timers.cancel(format.timer);
                format.into_owed().for_each(|id| self.lanes.delivered(cx, id, Left::Nothing));
            }
            let Some(handle) = pulled.feed else { continue };
            let by = self.feeds.get(&handle).map(|feed| feed.by.clone());
            // A pull that is being stopped was ended with the host already.
            if self.leave_feed(Some(handle)) && !pulled.stopping {
                let (from, directives) = (by.unwrap_or(pulled.by), Vec::new());
                let op = HostOp::IofStop(PullEnded { from, handle, directives, died: true });
                cx.ask(None, op, Then::Nothing);
            }
        }
    }

    pub(super) fn on_push(&mut self, cx: &mut Cx<'_>, from: Asker, push: Push) {
        let proc = from.proc.clone();
        let bytes = push.data.len();
        if let Some(peer) = cx.peers.conns.peer_mut(from.conn) {
            peer.note_pushed(bytes);
        }
        let op = HostOp::PushStdin(Asked { from: proc.clone(), request: push });
        cx.ask(Some(&proc), op, Then::AnswerPush { to: from, bytes });
    }

    /// The readers have taken the input, or refuse it.
    pub(super) fn on_push_answered(&mut self, cx: &mut Cx<'_>, to: Asker, bytes: usize, status: Status) {
        if let Some(peer) = cx.peers.conns.peer_mut(to.conn) {
            peer.note_push_taken(bytes);
        }
        cx.answer(to, status);
    }

    /// The host has output of a process. The call is answered when the bytes have left, or at once if no reader wants them.
    #[expect(clippy::too_many_arguments, reason = "the call has as many")]
    pub(super) fn on_output(
        &mut self,
        cx: &mut Cx<'_>,
        id: CallId,
        to: &OutputTo,
        source: &ProcId,
        channel: IofChannel,
        data: &Blob,
        info: &[Info],
    ) {
        self.pull_for_forebear(&cx.peers.conns, to, source);
        let readers = self.readers(to, source, channel);
        if readers.is_empty() {
            let result = ServerReturn::Done(Status::ERR_NOT_FOUND);
            return cx.give(id, result);
        }
        let waits = |pull: &&u64| self.pulls.get(pull).is_some_and(|pulled| pulled.drops.is_none());
        // One more than there are readers, so that the call does not end before all have the output.
        let waiting = readers.iter().filter(waits).count() + 1;
        let reached = waiting <= readers.len();
        self.lanes.begin(id, waiting, reached);
        for pull in readers {
            if self.pulls.get(&pull).is_some_and(|pulled| pulled.format.is_some()) {
                self.hand_to_dress(cx, (id, pull), (source, channel), data, info);
                continue;
            }
            let (source, data, info) = (source.clone(), data.clone(), info.to_vec());
            self.lanes.enter_piece(
                cx,
                &mut self.pulls,
                PullPiece { pull, source, channel, data, info, lost: 0, delivery: Some(id) },
            );
        }
        self.lanes.delivered(cx, id, Left::Nothing);
    }

    /// Settles the format of a pull's output.
    fn format(&mut self, output: &[Info], pull: u64, of_job: &[Info], wishes: &[Info]) {
        if wishes.is_set(DRESSED) {
            return;
        }
        if let Some(pulled) = self.pulls.get_mut(&pull) {
            pulled.format = Formatting::of(output, of_job, wishes);
        }
    }

    /// Output for a reader that wants it formatted.
    fn hand_to_dress(
        &mut self,
        cx: &mut Cx<'_>,
        (id, pull): (CallId, u64),
        (source, channel): (&ProcId, IofChannel),
        data: &Blob,
        info: &[Info],
    ) {
        let now = moment(cx);
        let Some(pulled) = self.pulls.get_mut(&pull) else { return };
        let (tells, owes) = (pulled.tells && !pulled.stopping, pulled.is_owed());
        let Some(format) = pulled.format.as_mut() else { return };
        let stream = Stream { proc: source.clone(), channel: Channel::of(channel) };
        let ready = format.formatter.data(now, &stream, data.as_bytes(), info);
        let mut pieces: Vec<PullPiece> = ready.into_iter().map(|ready| piece(pull, ready)).collect();
        if data.is_empty() {
            let info = info.iter().filter(|info| info.key != *DROPPED).cloned().collect();
            let (source, data) = (source.clone(), Blob::default());
            pieces.push(PullPiece { pull, source, channel, data, info, lost: 0, delivery: None });
        }
        let mut over = vec![(id, 0)];
        if owes {
            format.owed.arrived(stream, data.len(), id);
            over = format.settle(tells);
        }
        self.wake(cx, pull);
        pieces.into_iter().for_each(|piece| self.lanes.enter_piece(cx, &mut self.pulls, piece));
        self.lanes.enter_over(cx, &mut self.pulls, pull, over);
    }

    /// The pull is about to end: the host does not wait for partial lines any more.
    fn wait_for_no_line(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let Some(format) = self.pulls.get_mut(&pull).and_then(|pulled| pulled.format.as_mut()) else {
            return;
        };
        let over = format.settle(false);
        self.lanes.enter_over(cx, &mut self.pulls, pull, over);
    }

    pub(super) fn on_format_due(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = moment(cx);
        let Some(pulled) = self.pulls.get_mut(&pull) else { return };
        let tells = pulled.tells && !pulled.stopping;
        let Some(format) = pulled.format.as_mut() else { return };
        format.timer = None;
        let ready = format.formatter.tick(now);
        let over = format.settle(tells);
        self.wake(cx, pull);
        ready.into_iter().for_each(|ready| self.lanes.enter_piece(cx, &mut self.pulls, piece(pull, ready)));
        self.lanes.enter_over(cx, &mut self.pulls, pull, over);
    }

    /// The pull ends: its reader gets the text that was held back.
    fn undress(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = moment(cx);
        let Some(mut format) = self.pulls.get_mut(&pull).and_then(|pulled| pulled.format.take()) else {
            return;
        };
        cx.timers.cancel(format.timer);
        let ready = format.formatter.finish(now);
        ready.into_iter().for_each(|ready| self.lanes.enter_piece(cx, &mut self.pulls, piece(pull, ready)));
        self.lanes.enter_over(cx, &mut self.pulls, pull, format.into_owed().map(|id| (id, 0)).collect());
    }

    fn wake(&mut self, cx: &mut Cx<'_>, pull: u64) {
        if let Some(format) = self.pulls.get_mut(&pull).and_then(|pulled| pulled.format.as_mut()) {
            format.wake(cx.timers, pull);
        }
    }

    /// The transport has room, or has taken some bytes.
    pub(super) fn on_lane_moved(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        self.lanes.on_moved(cx, &mut self.pulls, conn);
    }

    /// A reader reports how much its program has taken.
    pub(super) fn on_taken(&mut self, cx: &mut Cx<'_>, conn: ConnId, taken: &Taken) {
        self.lanes.on_taken(cx, conn, taken);
    }

    fn enter(&mut self, pulled: Pulled) -> u64 {
        self.last += 1;
        self.pulls.insert(self.last, pulled);
        self.last
    }

    /// The pulls that this piece of output is for.
    fn readers(&self, to: &OutputTo, source: &ProcId, channel: IofChannel) -> Vec<u64> {
        let meant = |pulled: &Pulled| match to {
            OutputTo::All => true,
            OutputTo::Pull(feed) => pulled.feed == Some(*feed),
            OutputTo::Parent(proc) => pulled.handle == 0 && pulled.feed.is_none() && pulled.by == *proc,
        };
        let wanted = |pulled: &Pulled| {
            pulled.channels.intersects(channel) && pulled.sources.iter().any(|wanted| wanted.covers(source))
        };
        let readers = self.pulls.iter().filter(|(_, pulled)| meant(pulled) && wanted(pulled));
        readers.map(|(number, _)| *number).collect()
    }
}

impl Feed {
    fn covers(&self, sources: &[ProcId], channels: IofChannel) -> bool {
        // All means what there is; a channel that is named has to be there.
        let is_there = |forwarded: IofChannel| channels.contains(OUTPUTS) || forwarded.contains(channels);
        self.channels.contains(channels)
            && self.forwarded.is_none_or(is_there)
            && sources.iter().all(|wanted| self.sources.iter().any(|source| source.covers(wanted)))
    }
}

fn forwarded(answer: &[Info]) -> Option<IofChannel> {
    let channels = answer.find(FORWARDED)?.as_u64()?;
    u16::try_from(channels).ok().map(IofChannel)
}

/// The style, for a reader that formats the output itself.
fn style_to_tell(cx: &Cx<'_>, of_job: &[Info], wishes: &[Info]) -> Vec<Info> {
    match wishes.is_set(DRESSED) {
        true => default_style(cx.config).chain(honoured(of_job).cloned()).collect(),
        false => Vec::new(),
    }
}

/// The style set for all output when the server was started.
pub(super) fn default_style(config: &ServerConfig) -> impl Iterator<Item = Info> {
    honoured(&config.output).cloned()
}

fn moment(cx: &Cx<'_>) -> Moment {
    Moment { time: cx.now, wall: cx.config.clock.saturating_add(cx.now.since(Default::default())) }
}

const OUTPUTS: IofChannel = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0 | IofChannel::STDDIAG.0);
