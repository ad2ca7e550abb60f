//! `px run`: starts a node in this process, asks it for the job, and is the user's side of it until the job has ended.

mod plan;
mod status;
mod user;

use phalanx_node::Inherited;

use crate::args::split::RunLine;
use crate::failure::Failure;
use crate::render::hint;
use crate::resolve::{self, Here, Run};

/// Runs a job, or shows what would be run. The result is px's exit code.
pub(crate) fn run(line: RunLine) -> Result<u8, Failure> {
    let _inherited = Inherited::take()?;
    let here = Here::find()?;
    let run = resolve::run(line, &here)?;
    say_notes(&run);
    if run.dry_run {
        return plan::dry_run(&run, &here);
    }
    Err(Failure::new("this px can only plan jobs").hint("px run --dry-run shows the plan"))
}

fn say_notes(run: &Run) {
    if !run.voice.quiet {
        run.notes.iter().for_each(|note| hint::say(&hint::note(note, run.voice.json)));
    }
}
