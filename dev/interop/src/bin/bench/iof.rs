//! How launchers forward the ranks' output and input: bytes per second, delay of a line, memory when the output is not read.
//!
//! Everything that arrives is checked: faults are printed below the table that they belong to. A plain pipe is compared with the
//! launchers: the ranks' output through `cat`, the minimum for any forwarder.

mod delay;
mod input;
mod output;
mod slow;
mod stream;

use std::path::PathBuf;

use phalanx_interop::{Library, bench};

use crate::Plan;
use crate::launcher::Launcher;

pub(crate) fn run(plan: &Plan) {
    println!("\nstreams: loads divided by {}; spawn loop: through a cat", plan.scale);
    output::run(plan);
    delay::run(plan);
    input::run(plan);
    slow::run(plan);
}

/// The program of the ranks.
fn program() -> PathBuf {
    bench(Library::Nothing, "stream")
}

fn rounds(plan: &Plan) -> usize {
    plan.runs.div_ceil(3)
}

/// The faults of one table, each listed once.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn note(&mut self, launcher: Launcher, what: &str, fault: &str) {
        self.0.push(format!("{}, {what}: {fault}", launcher.name()));
    }

    fn print(&self) {
        self.0.iter().for_each(|fault| println!("  {fault}"));
    }
}
