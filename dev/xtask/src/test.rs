//! `cargo xtask test`: our own tests, including those of the C interface, then those that need foreign programs (peers).
//!
//! Everything is built first, once. All binaries run, even after failures; failed tests are repeated alone, and listed at the end.

mod again;
mod binary;
mod peers;
mod repeat;
mod run;
mod selection;

use anyhow::Result;

use crate::report::Report;
use crate::slowest::Slowest;
use crate::world;

use binary::{Binary, Stage};
pub(crate) use selection::{Selection, USAGE};

pub(crate) fn run(args: &[String]) -> Result<()> {
    let selection = Selection::parse(args)?;
    world::enter("test", args)?;
    let mut report = Report::default();
    all(&selection, &mut report);
    report.close()
}

/// Runs the selected tests, and records the results in the report.
pub(crate) fn all(selection: &Selection, report: &mut Report) {
    let Some(binaries) = report.step("building the tests", "cargo xtask test", |_| binary::build()) else {
        return;
    };
    let chosen: Vec<&Binary> = binaries.iter().filter(|binary| is_chosen(selection, binary)).collect();
    let mut peers = chosen.iter().any(|binary| binary.stage.needs_peers());
    if peers {
        peers = report.step("installing peers", "cargo xtask test", |_| peers::install()).is_some();
    }
    let chosen: Vec<&Binary> =
        chosen.into_iter().filter(|binary| peers || !binary.stage.needs_peers()).collect();
    if let Some(times) = selection.repeat {
        let work = |_: &mut Report| repeat::repeat(times, selection.loaded, &chosen, &selection.words());
        report.step("repeating tests", "cargo xtask test", work);
        return;
    }
    let mut failed = Vec::new();
    for stage in Stage::ALL {
        let of_stage: Vec<&Binary> = chosen.iter().copied().filter(|binary| binary.stage == stage).collect();
        if of_stage.is_empty() {
            continue;
        }
        report.step(stage.name(), "cargo xtask test", |report| {
            let mut slowest = Slowest::default();
            for binary in of_stage {
                match run::run(binary, &selection.words(), &mut slowest) {
                    Ok(ran) => {
                        report.passed += ran.passed;
                        report.ignored += ran.ignored;
                        failed.extend(ran.failed.into_iter().map(|failed| (binary, failed)));
                    }
                    Err(error) => report.broken(&format!("{error:#}"), stage.name(), &binary.alone()),
                }
            }
            eprintln!("the slowest of these tests:");
            slowest.lines().iter().for_each(|line| eprintln!("{line}"));
            Ok(())
        });
    }
    if !failed.is_empty() {
        report.step("tests that have failed, alone", "cargo xtask test", |report| {
            again::judge(&failed, selection.strict, report);
            Ok(())
        });
    }
    if report.passed == 0 && failed.is_empty() {
        report.broken("no test has such a name", "choosing tests", "cargo xtask test");
    }
}

fn is_chosen(selection: &Selection, binary: &Binary) -> bool {
    let is_named = selection.binary.as_ref().is_none_or(|name| *name == binary.name);
    is_named && (selection.peers || !binary.stage.needs_peers())
}
