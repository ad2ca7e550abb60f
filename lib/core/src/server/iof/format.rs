//! Output in the form that its reader has asked for, where the reader's library does not give it that form itself.
//!
//! What was said when the server was started holds, then what was said of the job, then what the reader says.

use phalanx_spec::{IofChannel, keys};
use phalanx_wire::cmd::iof::{DRESSED, DROPPED};
use phalanx_wire::{Blob, Info, InfoList, ProcId};
use tracing::warn;

use super::super::timers::{Timer, TimerId};
use super::super::{Cx, Server};
use super::lane::Piece;
use crate::machine::CallId;
use crate::output::{
    BUFFER_ATTRIBUTES, Channel, FORM_ATTRIBUTES, Moment, OutputFormatter, Owed, Ready, Stream, Style,
};

/// What is honoured of a pull, and of what was said when the server was started. Files are for those who can write them.
pub const OUTPUT_DEFAULTS: &[&[&str]] = &[FORM_ATTRIBUTES, BUFFER_ATTRIBUTES, DROP_ATTRIBUTES];
const DROP_ATTRIBUTES: &[&str] = &[keys::IOF_CACHE_SIZE, keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST];

#[derive(Debug)]
pub(super) struct Formatting {
    formatter: OutputFormatter,
    pub(super) timer: Option<TimerId>,
    /// For a reader that reads instead of others: calls of which something is held.
    owed: Owed<CallId>,
}

impl Formatting {
    fn new(formatter: OutputFormatter) -> Formatting {
        Formatting { formatter, timer: None, owed: Owed::default() }
    }

    /// The calls that are over, and what is held of them. Only readers that say what they have taken are waited for.
    fn settle(&mut self, tells: bool) -> Vec<(CallId, usize)> {
        let patience = if tells { PATIENCE } else { 0 };
        self.owed.settle(patience, |stream| self.formatter.held(stream))
    }

    pub(super) fn into_owed(self) -> impl Iterator<Item = CallId> {
        self.owed.into_all()
    }
}

impl Server {
    /// Settles how a pull is to have its output.
    pub(super) fn format(&mut self, pull: u64, of_job: &[Info], wishes: &[Info]) {
        if wishes.is_set(DRESSED) {
            return;
        }
        let levels = [&self.config.output, of_job, wishes];
        let own = |level: &[Info]| -> Vec<Info> { honoured(level).cloned().collect() };
        let style = levels.into_iter().try_fold(Style::default(), |style, level| style.overlaid(&own(level)));
        let formatter = match style {
            Ok(style) => OutputFormatter::for_reader(style),
            Err(error) => return warn!(%error, "output cannot be given its form"),
        };
        if let Some(pulled) = self.streams.pulls.get_mut(&pull) {
            pulled.format = formatter.map(|formatter| Box::new(Formatting::new(formatter)));
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
        let (tells, owes) = (pulled.tells && !pulled.stopping, pulled.is_owed());
        let Some(format) = pulled.format.as_mut() else { return };
        let stream = Stream { proc: source.clone(), channel: Channel::of(channel) };
        let ready = format.formatter.data(now, &stream, data.as_bytes(), info);
        let mut pieces: Vec<Piece> = ready.into_iter().map(|ready| piece(pull, ready)).collect();
        if data.is_empty() {
            let info = info.iter().filter(|info| info.key != *DROPPED).cloned().collect();
            let (source, data) = (source.clone(), Blob::default());
            pieces.push(Piece { pull, source, channel, data, info, lost: 0, delivery: None });
        }
        let mut over = vec![(id, 0)];
        if owes {
            format.owed.arrived(stream, data.len(), id);
            over = format.settle(tells);
        }
        self.wake_dress(pull);
        pieces.into_iter().for_each(|piece| self.enter_piece(cx, piece));
        self.enter_over(cx, pull, over);
    }

    /// The pull is about to end: its host does not wait for lines any more.
    pub(super) fn wait_for_no_line(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let Some(format) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.format.as_mut()) else {
            return;
        };
        let over = format.settle(false);
        self.enter_over(cx, pull, over);
    }

    pub(in crate::server) fn on_format_due(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = self.moment(cx);
        let Some(pulled) = self.streams.pulls.get_mut(&pull) else { return };
        let tells = pulled.tells && !pulled.stopping;
        let Some(format) = pulled.format.as_mut() else { return };
        format.timer = None;
        let ready = format.formatter.tick(now);
        let over = format.settle(tells);
        self.wake_dress(pull);
        ready.into_iter().for_each(|ready| self.enter_piece(cx, piece(pull, ready)));
        self.enter_over(cx, pull, over);
    }

    /// The pull ends: it gets what was held.
    pub(super) fn undress(&mut self, cx: &mut Cx<'_>, pull: u64) {
        let now = self.moment(cx);
        let Some(mut format) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.format.take())
        else {
            return;
        };
        self.timers.cancel(format.timer);
        let ready = format.formatter.finish(now);
        ready.into_iter().for_each(|ready| self.enter_piece(cx, piece(pull, ready)));
        self.enter_over(cx, pull, format.into_owed().map(|id| (id, 0)).collect());
    }

    fn wake_dress(&mut self, pull: u64) {
        let Some(format) = self.streams.pulls.get_mut(&pull).and_then(|pulled| pulled.format.as_mut()) else {
            return;
        };
        let deadline = format.formatter.deadline();
        if format.timer.map(TimerId::at) != deadline {
            self.timers.cancel(format.timer);
            format.timer = deadline.map(|at| self.timers.set(at, Timer::Format(pull)));
        }
    }

    fn moment(&self, cx: &Cx<'_>) -> Moment {
        Moment { time: cx.now, wall: self.config.clock.saturating_add(cx.now.since(Default::default())) }
    }
}

pub(super) fn honoured(level: &[Info]) -> impl Iterator<Item = &Info> {
    level.iter().filter(|info| OUTPUT_DEFAULTS.iter().any(|keys| keys.contains(&info.key.as_str())))
}

/// Bytes of one stream whose calls wait for the end of a line.
const PATIENCE: usize = 16 << 10;

fn piece(pull: u64, ready: Ready) -> Piece {
    let Ready { stream, data, lost } = ready;
    let channel = stream.channel.into();
    Piece { pull, source: stream.proc, channel, data: data.into(), info: Vec::new(), lost, delivery: None }
}
