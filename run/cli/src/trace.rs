//! The log of the runtime and the library, on standard error.

use std::io::{self, IsTerminal};

/// `PHALANX_LOG` selects what is logged; without it, `otherwise` does, or nothing is logged.
pub(crate) fn start(otherwise: Option<&str>) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PHALANX_LOG").ok();
    if let Some(filter) = filter.or_else(|| otherwise.map(Into::into)) {
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
        // A log that exists already has the same destination.
        let _ = log.with_ansi(io::stderr().is_terminal()).try_init();
    }
}
