//! The same launch a thousand times in a row: nothing hangs, no exit code is lost.

use std::path::Path;

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{median, milliseconds, silent};

const RANKS: u32 = 64;

pub(crate) fn run(plan: &Plan) {
    let (mut hung, mut wrong, mut times) = (0, 0, Vec::new());
    for launch in 0..plan.launches {
        // One launch in ten must report a failure.
        let (program, expected) = if launch % 10 == 9 { ("/bin/false", 1) } else { ("/bin/true", 0) };
        let run = silent(Launcher::Px.command(RANKS, Path::new(program), &[]));
        match run.code {
            None => hung += 1,
            Some(code) if code != expected => wrong += 1,
            Some(_) => times.push(milliseconds(run.took)),
        }
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    println!(
        "\n{} launches of {RANKS} ranks: {hung} hung, {wrong} with a wrong exit code, median {:.1} ms, slowest {slowest:.1} ms",
        plan.launches,
        median(times).unwrap_or_default()
    );
}
