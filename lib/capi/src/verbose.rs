//! The library's log, on standard error, if `PMIX_DEBUG` requests it: 1 errors, 2 other events as well, 3 and 4 details.
//!
//! Without the variable nothing is ever written or formatted. A forked child is silent until it calls an init of its own. Each
//! line is one write to the descriptor: a lock could be held by a thread that a child does not have.

use std::fmt::{self, Write};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Metadata, Subscriber};

/// The id of the process that logs; 0 if none does.
static SPEAKER: AtomicU32 = AtomicU32::new(0);

/// Called by every init. The first that finds the variable sets the level.
pub(crate) fn start() {
    let Some(level) = std::env::var(VARIABLE).ok().and_then(|wanted| level(&wanted)) else { return };
    if SPEAKER.swap(pmix::process_id(), Ordering::Relaxed) == 0 {
        // No other code sets one: the library's log is its own.
        let _ = set_global_default(Lines { level });
    }
}

fn level(wanted: &str) -> Option<LevelFilter> {
    match wanted.trim().parse::<u32>().ok()? {
        0 => None,
        1 => Some(LevelFilter::WARN),
        2 => Some(LevelFilter::INFO),
        3 => Some(LevelFilter::DEBUG),
        _ => Some(LevelFilter::TRACE),
    }
}

struct Lines {
    level: LevelFilter,
}

impl Subscriber for Lines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let pid = pmix::process_id();
        if SPEAKER.load(Ordering::Relaxed) == pid {
            write(line(pid, event).as_bytes());
        }
    }

    // There are no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// `libpmix[PID] LEVEL: what has happened, name=value ...`
fn line(pid: u32, event: &Event<'_>) -> String {
    let mut text = Text { said: String::new(), fields: String::new() };
    event.record(&mut text);
    let level = event.metadata().level().as_str().to_lowercase();
    let Text { said, fields } = text;
    // A record is one line, whatever the names of peers contain.
    let body = format!("{said}{fields}").replace('\n', "; ");
    let shown = body.chars().filter(|letter| !letter.is_control());
    format!("libpmix[{pid}] {level}: {}\n", shown.collect::<String>())
}

struct Text {
    said: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.said, "{value:?}"),
            name => write!(self.fields, ", {name}={value:?}"),
        };
    }
}

fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(io::stderr(), bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            // There is nowhere to report the error.
            Err(_) => return,
        }
    }
}

/// OpenPMIx has the same variable.
const VARIABLE: &str = "PMIX_DEBUG";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_ask() {
        for silent in ["", "0", "no", "-1", "yes"] {
            assert_eq!(level(silent), None, "{silent}");
        }
        assert_eq!(level("1"), Some(LevelFilter::WARN));
        assert_eq!(level(" 2 "), Some(LevelFilter::INFO));
        assert_eq!(level("100"), Some(LevelFilter::TRACE));
    }
}
