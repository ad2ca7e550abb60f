//! Output in the form that its reader has asked for, where the reader's library does not give it that form itself.
//!
//! What was said when the server was started holds, then what was said of the job, then what the reader says.

use std::collections::{BTreeMap, VecDeque};

use phalanx_spec::{IofChannel, keys};
use phalanx_wire::cmd::iof::{DRESSED, DROPPED};
use phalanx_wire::{Blob, Info, InfoList, ProcId};
use tracing::warn;

use super::super::timers::{Timer, TimerId};
use super::super::{Cx, Server};
use super::lane::Piece;
use crate::machine::CallId;
use crate::output::{BUFFER_ATTRIBUTES, Channel, Dresser, FORM_ATTRIBUTES, Moment, Ready, Stream, Style};

/// What is honoured of a pull, and of what was said when the server was started. Files are for those who can write them.
pub const OUTPUT_DEFAULTS: &[&[&str]] = &[FORM_ATTRIBUTES, BUFFER_ATTRIBUTES, DROP_ATTRIBUTES];
const DROP_ATTRIBUTES: &[&str] = &[keys::IOF_CACHE_SIZE, keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST];

#[derive(Debug)]
pub(super) struct Dress {
    dresser: Dresser,
    pub(super) timer: Option<TimerId>,
    /// For a reader that says what it has taken: calls of which something is held, with their bytes.
    kept: BTreeMap<Stream, VecDeque<(usize, CallId)>>,
}

impl Dress {
    fn new(dresser: Dresser) -> Dress {
        Dress { dresser, timer: None, kept: BTreeMap::new() }
    }

    /// The calls of which no line is held any more, and those that cannot be waited for: a line may be longer than what its
    /// process may have on the way.
    fn let_go(&mut self) -> Vec<CallId> {
        let mut gone = Vec::new();
        for (stream, kept) in &mut self.kept {
            let most = if self.dresser.holds_line(stream) { MOST_KEPT } else { 0 };
            let mut bytes: usize = kept.iter().map(|(bytes, _)| bytes).sum();
            while bytes > most || most == 0 {
                let Some((first, id)) = kept.pop_front() else { break };
                bytes -= first;
                gone.push(id);
            }
        }
        self.kept.retain(|_, kept| !kept.is_empty());
        gone
    }

    pub(super) fn into_kept(self) -> impl Iterator<Item = CallId> {
        self.kept.into_values().flatten().map(|(_, id)| id)
    }
}

impl Server {
    /// Settles how a pull is to have its output.
    pub(super) fn dress(&mut self, pull: u64, of_job: &[Info], wishes: &[Info]) {
        if wishes.is_set(DRESSED) {
            return;
        }
        let levels = [&self.config.output, of_job, wishes];
        let own = |level: &[Info]| -> Vec<Info> { honoured(level).cloned().collect() };
        let style = levels.into_iter().try_fold(Style::default(), |style, level| style.overlaid(&own(level)));
        let dresser = match style {
            Ok(style) => Dresser::for_reader(style),
            Err(error) => return warn!(%error, "output cannot be given its form"),
        };
        if let Some(pulled) = self.streams.pulls.get_mut(&pull) {
            pulled.dress = dresser.map(|dresser| Box::new(Dress::new(dresser)));
        }
    }

    /// Output for a reader that has it dressed.
    pub(super) fn hand_to_dress(
        &mut self,
        cx: &mut Cx<'_>,
        (id, pull): (CallId, u64),
        (source, channel): (&ProcId, IofChannel),
        data: &Blob,
        info: &[Info],
    ) {
        let now = self.moment(cx);
        let Some(pulled) = self.streams.pulls.get_mut(&pull) else { return };
        let keeps = pulled.tells && pulled.drops.is_none() && !pulled.stopping;
        let Some(dress) = pulled.dress.as_mut() else { return };
        let stream = Stream { proc: source.clone(), channel: Channel::of(channel) };
        let ready = dress.dresser.data(now, &stream, data.as_bytes(), info);
        let mut pieces: Vec<Piece> = ready.into_iter().map(|ready| piece(pull, ready, Some(id))).collect();
        if data.is_empty() {
            let info = info.iter().filter(|info| info.key != *DROPPED).cloned().collect();
            let (source, data) = (source.clone(), Blob::default());
            pieces.push(Piece { pull, source, channel, data, info, lost: 0, delivery: Some(id) });
        }
        let mut done = vec![id];
        if keeps {
            dress.kept.entry(stream).or_default().push_back((data.len().max(LEAST_KEPT), id));
            done = dress.let_go();
        }
        self.wake_dress(pull);
        self.enter_ready(cx, id, pull, pieces);
        self.enter_held(cx, pull, done);
    }

    /// The pull is about to end: its host does not wait for lines any more.
    pub(super) fn keep_nothing(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let Some(dress) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.dress.as_mut()) else {
            return;
        };
        let done = std::mem::take(&mut dress.kept).into_values().flatten().map(|(_, id)| id).collect();
        self.enter_held(cx, pull, done);
    }

    pub(in crate::server) fn on_dress_due(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = self.moment(cx);
        let Some(dress) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.dress.as_mut()) else {
            return;
        };
        dress.timer = None;
        let ready = dress.dresser.tick(now);
        let done = dress.let_go();
        self.wake_dress(pull);
        ready.into_iter().for_each(|ready| self.enter_piece(cx, piece(pull, ready, None)));
        self.enter_held(cx, pull, done);
    }

    /// The pull ends: it gets what was held.
    pub(super) fn undress(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = self.moment(cx);
        let Some(mut dress) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.dress.take()) else {
            return;
        };
        self.timers.cancel(dress.timer);
        let ready = dress.dresser.finish(now);
        ready.into_iter().for_each(|ready| self.enter_piece(cx, piece(pull, ready, None)));
        self.enter_held(cx, pull, dress.into_kept().collect());
    }

    fn wake_dress(&mut self, pull: u64) {
        let Some(dress) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.dress.as_mut()) else {
            return;
        };
        let deadline = dress.dresser.deadline();
        if dress.timer.map(TimerId::at) != deadline {
            self.timers.cancel(dress.timer);
            dress.timer = deadline.map(|at| self.timers.set(at, Timer::Dress(pull)));
        }
    }

    fn moment(&self, cx: &Cx<'_>) -> Moment {
        Moment { time: cx.now, wall: self.config.clock.saturating_add(cx.now.since(Default::default())) }
    }
}

pub(super) fn honoured(level: &[Info]) -> impl Iterator<Item = &Info> {
    level.iter().filter(|info| OUTPUT_DEFAULTS.iter().any(|keys| keys.contains(&info.key.as_str())))
}

/// Bytes of one stream whose calls wait for what is held of them.
const MOST_KEPT: usize = 16 << 10;
/// What a tiny piece counts, as it does where it is read.
const LEAST_KEPT: usize = 256;

fn piece(pull: u64, ready: Ready, delivery: Option<CallId>) -> Piece {
    let Ready { stream, data, lost } = ready;
    let channel = stream.channel.into();
    Piece { pull, source: stream.proc, channel, data: data.into(), info: Vec::new(), lost, delivery }
}
