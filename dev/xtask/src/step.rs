//! The parts of a chore, with how long each has taken: what takes the time of CI is read off its log.

use std::time::Instant;

use anyhow::{Context, Result};

pub(crate) fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("== {name}");
    let start = Instant::now();
    work().with_context(|| format!("stopped at: {name}"))?;
    eprintln!("== {name}: passed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
