//! Formats output for readers whose library does not do it itself.
//!
//! The server's defaults apply first, then the job's directives, then the reader's; later ones override.

use phalanx_spec::keys;
use phalanx_wire::Info;
use tracing::warn;

use super::lane::PullPiece;
use crate::machine::CallId;
use crate::output::{BUFFER_ATTRIBUTES, FORM_ATTRIBUTES, OutputFormatter, Owed, Ready, Style};
use crate::server::timers::{Timer, TimerId, Timers};

/// Attributes honoured in a pull and in the server's defaults. Files are left to the processes that can write them.
pub const OUTPUT_DEFAULTS: &[&[&str]] = &[FORM_ATTRIBUTES, BUFFER_ATTRIBUTES, DROP_ATTRIBUTES];
const DROP_ATTRIBUTES: &[&str] = &[keys::IOF_CACHE_SIZE, keys::IOF_DROP_OLDEST, keys::IOF_DROP_NEWEST];

#[derive(Debug)]
pub(super) struct Formatting {
    pub(super) formatter: OutputFormatter,
    pub(super) timer: Option<TimerId>,
    /// For a reader that reads instead of others: calls whose output is partly held.
    pub(super) owed: Owed<CallId>,
}

impl Formatting {
    /// The format of a pull's output; `None`: unformatted.
    pub(super) fn of(output: &[Info], of_job: &[Info], wishes: &[Info]) -> Option<Box<Formatting>> {
        let levels = [output, of_job, wishes];
        let own = |level: &[Info]| -> Vec<Info> { honoured(level).cloned().collect() };
        let style = levels.into_iter().try_fold(Style::default(), |style, level| style.overlaid(&own(level)));
        let formatter = match style {
            Ok(style) => OutputFormatter::for_reader(style)?,
            Err(error) => {
                warn!(%error, "output cannot be given its form");
                return None;
            }
        };
        Some(Box::new(Formatting { formatter, timer: None, owed: Owed::default() }))
    }

    /// Sets the timer for output that is held.
    pub(super) fn wake(&mut self, timers: &mut Timers, pull: u64) {
        let deadline = self.formatter.deadline();
        if self.timer.map(TimerId::at) != deadline {
            timers.cancel(self.timer);
            self.timer = deadline.map(|at| timers.set(at, Timer::Format(pull)));
        }
    }

    /// Calls that are complete, and how much of them is held. Only readers that report what they took are waited for.
    pub(super) fn settle(&mut self, tells: bool) -> Vec<(CallId, usize)> {
        let patience = if tells { PATIENCE } else { 0 };
        self.owed.settle(patience, |stream| self.formatter.held(stream))
    }

    pub(super) fn into_owed(self) -> impl Iterator<Item = CallId> {
        self.owed.into_all()
    }
}

pub(super) fn honoured(level: &[Info]) -> impl Iterator<Item = &Info> {
    level.iter().filter(|info| OUTPUT_DEFAULTS.iter().any(|keys| keys.contains(&info.key.as_str())))
}

/// Bytes of one stream whose calls may wait for the end of a line.
const PATIENCE: usize = 16 << 10;

pub(super) fn piece(pull: u64, ready: Ready) -> PullPiece {
    let Ready { stream, data, lost } = ready;
    let channel = stream.channel.into();
    PullPiece {
        pull,
        source: stream.proc,
        channel,
        data: data.into(),
        info: Vec::new(),
        lost,
        delivery: None,
    }
}
