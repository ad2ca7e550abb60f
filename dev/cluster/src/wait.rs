//! Waiting for conditions, with a deadline that no healthy machine reaches.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

const PATIENCE: Duration = Duration::from_secs(180);

/// Fails when the condition does not hold within three minutes.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !condition() {
        ensure!(began.elapsed() < PATIENCE, "after {} s still not: {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
