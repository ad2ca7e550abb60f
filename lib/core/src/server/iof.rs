//! Forwarded output and input: who pulled which streams, and what the host was asked for on their behalf.
//!
//! Output of ranks comes from the host, which knows where the ranks are; input goes to it. A pull that lies within an earlier
//! one is served by what the host sends already; any other becomes a registration of its own with the host. Bytes on their
//! way to a peer are in `lane.rs`.

mod format;
mod lane;

use std::collections::BTreeMap;

use phalanx_spec::{IofChannel, Status, keys};
use phalanx_wire::cmd::Body;
use phalanx_wire::cmd::iof::{DRESSED, Deregister, Pull, PullReply, Push, TELLS_TAKEN};
use phalanx_wire::{Info, InfoList, Nspace, ProcId, Value};
use tracing::warn;

use super::host::Then;
use super::limits::{MAX_OVERLAPPING_PULLS, MAX_PULLS};
use super::peer::{Asker, Peer, Role};
use super::{Cx, Server};
use crate::host::{HostOp, HostReply};
use crate::machine::ConnId;
pub use format::OUTPUT_DEFAULTS;
use format::{Formatting, honoured};
use lane::{Drops, Lanes, Left};

#[derive(Debug, Default)]
pub(super) struct Streams {
    pulls: BTreeMap<u64, Pulled>,
    last: u64,
    /// What the host sends, by the number of the pull that it was asked for.
    feeds: BTreeMap<u64, Feed>,
    lanes: Lanes,
}

/// Whose output of a call of the host is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTo {
    /// Everybody who pulled the stream.
    All,
    /// What was asked for under this number.
    Pull(u64),
    /// This tool, which gets the output of what it spawned without asking.
    Parent(ProcId),
}

#[derive(Debug)]
struct Pulled {
    conn: ConnId,
    by: ProcId,
    sources: Vec<ProcId>,
    channels: IofChannel,
    /// The peer's own number for it; 0 for what it gets without asking.
    handle: u64,
    /// The feed that it drinks from. None: the host was not asked.
    feed: Option<u64>,
    /// None: nothing may be lost, and the source waits.
    drops: Option<Drops>,
    /// It was told to stop; what was sent before still arrives.
    stopping: bool,
    /// Others get what it has not taken when it dies.
    instead: bool,
    /// It reads instead of others and says what it has taken: until then a piece has not been delivered.
    tells: bool,
    /// How it wants to have what it gets, if it does not take it as it comes.
    format: Option<Box<Formatting>>,
}

/// A registration with the host.
#[derive(Debug)]
struct Feed {
    by: ProcId,
    sources: Vec<ProcId>,
    channels: IofChannel,
    copy: bool,
    accepted: bool,
    /// How many pulls it serves.
    users: usize,
    /// What was said of the output when its job was started.
    style: Vec<Info>,
}

impl Server {
    pub(super) fn on_iof_pull(&mut self, cx: &mut Cx<'_>, from: Asker, pull: Pull) {
        if let Err(status) = self.may_pull(&from, &pull) {
            let reply = PullReply { status, handle: 0, style: Vec::new() };
            return self.reply(cx, &from, |dialect| reply.encode(dialect));
        }
        let Pull { sources, mut directives, channels, handle } = pull;
        let copy = directives.is_set(keys::IOF_COPY);
        // Nobody else needs what the reader of a copy has not taken, nor waits for it.
        let instead = !copy || directives.is_set(keys::IOF_REDIRECT);
        let tells = instead && directives.is_set(TELLS_TAKEN);
        directives.retain(|info| info.key != *TELLS_TAKEN);
        let by = from.proc.clone();
        // Who wants what was written before has to ask the host for it.
        let backlog = directives.find(keys::IOF_CACHE_SIZE).is_some();
        let serving = self.streams.feeds.iter().find(|(_, feed)| {
            !backlog && feed.accepted && feed.copy == copy && feed.covers(&sources, channels)
        });
        let feed = serving.map(|(number, _)| *number);
        let drops = Drops::from_levels(&[&self.config.output, &directives]);
        let number = self.streams.enter(Pulled {
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
        if let Some(feed) = feed.and_then(|number| self.streams.feeds.get_mut(&number)) {
            feed.users += 1;
            let of_job = feed.style.clone();
            self.format(number, &of_job, &directives);
            let style = self.style_to_tell(&of_job, &directives);
            let reply = PullReply { status: Status::SUCCESS, handle: number, style };
            return self.reply(cx, &from, |dialect| reply.encode(dialect));
        }
        let feed = Feed {
            by: by.clone(),
            sources: sources.clone(),
            channels,
            copy,
            accepted: false,
            users: 1,
            style: Vec::new(),
        };
        self.streams.feeds.insert(number, feed);
        if let Some(pulled) = self.streams.pulls.get_mut(&number) {
            pulled.feed = Some(number);
        }
        // The host may have output on its way before it says what was said of the job.
        self.format(number, &[], &directives);
        let wishes = directives.clone();
        directives.extend(from.identity());
        let op = HostOp::IofPull { from: by.clone(), sources, channels, directives, handle: number };
        self.call_host(cx, Some(&by), op, Then::AnswerPull { to: from, handle: number, wishes });
    }

    fn may_pull(&self, from: &Asker, pull: &Pull) -> Result<(), Status> {
        if pull.sources.is_empty() || pull.channels.is_empty() {
            return Err(Status::ERR_BAD_PARAM);
        }
        let own = || self.streams.pulls.values().filter(|p| p.conn == from.conn);
        let together = self.streams.pulls.values().filter(|p| p.by == from.proc).count();
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
        to: &Asker,
        handle: u64,
        wishes: &[Info],
        reply: HostReply,
    ) {
        let status = reply.status();
        // The host need not say more than that it has done it already.
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
                self.format(handle, &of_job, wishes);
            }
            style = self.style_to_tell(&of_job, wishes);
            if let Some(feed) = self.streams.feeds.get_mut(&handle) {
                feed.accepted = true;
                feed.style = of_job;
            }
        } else {
            self.streams.pulls.remove(&handle);
            self.streams.feeds.remove(&handle);
        }
        self.reply(cx, to, |dialect| PullReply { status, handle, style }.encode(dialect));
    }

    /// What a reader that gives the output its form itself has to know.
    fn style_to_tell(&self, of_job: &[Info], wishes: &[Info]) -> Vec<Info> {
        match wishes.is_set(DRESSED) {
            true => self.default_style().chain(honoured(of_job).cloned()).collect(),
            false => Vec::new(),
        }
    }

    /// What was said of all output when the server was started.
    pub(super) fn default_style(&self) -> impl Iterator<Item = Info> {
        honoured(&self.config.output).cloned()
    }

    /// A tool gets what the server itself prints without asking.
    pub(super) fn pull_for_tool(&mut self, conn: ConnId) {
        self.pull_unasked(conn, self.config.identity.clone());
    }

    /// A tool gets the output of what it spawned without asking; whether there is any was settled with the host.
    pub(super) fn pull_for_parent(&mut self, conn: ConnId, child: &Nspace) {
        self.pull_unasked(conn, ProcId::all(child));
    }

    /// The host gives a tool the output of a job that it has not spawned itself, but a job of its.
    fn pull_for_forebear(&mut self, to: &OutputTo, source: &ProcId) {
        let OutputTo::Parent(tool) = to else { return };
        let has_it = |pulled: &Pulled| {
            pulled.handle == 0
                && pulled.feed.is_none()
                && pulled.by == *tool
                && pulled.sources.iter().any(|wanted| wanted.covers(source))
        };
        if self.streams.pulls.values().any(has_it) {
            return;
        }
        let of_tool = |(_, peer): &(ConnId, &Peer)| peer.role == Role::Tool && peer.proc == *tool;
        let conn = self.conns.peers().find(of_tool).map(|(conn, _)| conn);
        if let Some(conn) = conn {
            self.pull_unasked(conn, ProcId::all(&source.nspace));
        }
    }

    fn pull_unasked(&mut self, conn: ConnId, source: ProcId) {
        let Some(peer) = self.conns.peer(conn) else { return };
        let pulled = Pulled {
            conn,
            by: peer.proc.clone(),
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
        self.streams.enter(pulled);
    }

    pub(super) fn on_iof_deregister(&mut self, cx: &mut Cx<'_>, from: Asker, request: &Deregister) {
        let handle = request.handle;
        let own = |pulled: &&mut Pulled| pulled.conn == from.conn && !pulled.stopping;
        let Some(pulled) = self.streams.pulls.get_mut(&handle).filter(own) else {
            return self.answer(cx, &from, Status::ERR_NOT_FOUND);
        };
        let feed = pulled.feed;
        let last =
            feed.and_then(|number| self.streams.feeds.get(&number)).is_some_and(|feed| feed.users == 1);
        match feed.filter(|_| last) {
            Some(number) => {
                // What the host has for it comes before the answer.
                pulled.stopping = true;
                let proc = from.proc.clone();
                let op = HostOp::IofStop {
                    from: proc.clone(),
                    handle: number,
                    directives: request.directives.clone(),
                    died: false,
                };
                if let Some(feed) = self.streams.feeds.get_mut(&number) {
                    feed.accepted = false;
                }
                self.call_host(cx, Some(&proc), op, Then::AnswerStop { to: from, handle });
                self.wait_for_no_line(cx, handle);
            }
            None => {
                self.leave_feed(feed);
                self.end_pull(cx, &from, handle, Status::SUCCESS);
            }
        }
    }

    pub(super) fn on_stop_answered(&mut self, cx: &mut Cx<'_>, to: &Asker, handle: u64, status: Status) {
        if let Some(pulled) = self.streams.pulls.get(&handle) {
            self.leave_feed(pulled.feed);
        }
        self.end_pull(cx, to, handle, status);
    }

    /// Nothing is entered for the pull any more; its end is answered behind what was.
    fn end_pull(&mut self, cx: &mut Cx<'_>, to: &Asker, handle: u64, status: Status) {
        self.undress(cx, handle);
        if let Some(pulled) = self.streams.pulls.get_mut(&handle) {
            pulled.stopping = true;
            pulled.feed = None;
            pulled.sources.clear();
        }
        self.say_farewell(cx, to, handle, status);
    }

    /// `true`: nobody is left who wants this feed.
    fn leave_feed(&mut self, number: Option<u64>) -> bool {
        let Some((number, feed)) =
            number.and_then(|number| Some((number, self.streams.feeds.get_mut(&number)?)))
        else {
            return false;
        };
        feed.users = feed.users.saturating_sub(1);
        let over = feed.users == 0;
        if over {
            self.streams.feeds.remove(&number);
        }
        over
    }

    pub(super) fn forget_pulls_of(&mut self, cx: &mut Cx<'_>, conn: ConnId) {
        let gone: Vec<Pulled> =
            self.streams.pulls.extract_if(.., |_, pulled| pulled.conn == conn).map(|(_, p)| p).collect();
        self.drop_lane(cx, conn);
        for mut pulled in gone {
            if let Some(format) = pulled.format.take() {
                self.timers.cancel(format.timer);
                format.into_owed().for_each(|id| self.delivered(cx, id, Left::Nothing));
            }
            let Some(handle) = pulled.feed else { continue };
            let by = self.streams.feeds.get(&handle).map(|feed| feed.by.clone());
            // One that is being stopped was ended with the host before.
            if self.leave_feed(Some(handle)) && !pulled.stopping {
                let (from, directives) = (by.unwrap_or(pulled.by), Vec::new());
                let op = HostOp::IofStop { from, handle, directives, died: true };
                self.call_host(cx, None, op, Then::Nothing);
            }
        }
    }

    pub(super) fn on_iof_push(&mut self, cx: &mut Cx<'_>, from: Asker, push: Push) {
        let proc = from.proc.clone();
        let Push { targets, directives, data } = push;
        let bytes = data.len();
        if let Some(peer) = self.conns.peer_mut(from.conn) {
            peer.pushed += bytes;
        }
        let op = HostOp::PushStdin { from: proc.clone(), targets, directives, data };
        self.call_host(cx, Some(&proc), op, Then::AnswerPush { to: from, bytes });
    }

    /// The readers have taken it, or take nothing.
    pub(super) fn on_push_answered(&mut self, cx: &mut Cx<'_>, to: &Asker, bytes: usize, status: Status) {
        if let Some(peer) = self.conns.peer_mut(to.conn) {
            peer.pushed = peer.pushed.saturating_sub(bytes);
        }
        self.answer(cx, to, status);
        self.read_frames(cx, to.conn);
    }
}

impl Streams {
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
        self.channels.contains(channels)
            && sources.iter().all(|wanted| self.sources.iter().any(|source| source.covers(wanted)))
    }
}

impl Drops {
    /// A reader that may lose bytes says so; the size alone drops nothing. The last level wins.
    fn from_levels(levels: &[&[Info]]) -> Option<Drops> {
        let find = |key| levels.iter().rev().find_map(|level| level.find(key));
        let is_set = |key| find(key).is_some_and(Value::is_true);
        let (oldest, newest) = (is_set(keys::IOF_DROP_OLDEST), is_set(keys::IOF_DROP_NEWEST));
        let size = find(keys::IOF_CACHE_SIZE).and_then(Value::as_u64);
        (oldest || newest).then(|| Drops::new(oldest, size))
    }
}

const OUTPUTS: IofChannel = IofChannel(IofChannel::STDOUT.0 | IofChannel::STDERR.0 | IofChannel::STDDIAG.0);
