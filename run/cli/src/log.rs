//! What the runtime and the library say of themselves, on standard error.

use std::io::{self, IsTerminal};

/// `PHALANX_LOG` says what is told; without it, `otherwise` does, or nothing is.
pub(crate) fn start(otherwise: Option<&str>) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PHALANX_LOG").ok();
    if let Some(filter) = filter.or_else(|| otherwise.map(Into::into)) {
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
        // A log that exists already has the same reader.
        let _ = log.with_ansi(io::stderr().is_terminal()).try_init();
    }
}
