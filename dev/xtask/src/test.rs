//! `cargo xtask test`: our own tests, including those of the C interface, then those that need foreign programs (peers).
//!
//! Everything is built first, once. All binaries run, even after failures; failed tests are repeated alone, and listed at the end.

mod again;
mod binary;
mod peers;
mod repeat;
mod run;
mod selection;

use std::panic::resume_unwind;

use anyhow::Result;

use crate::report::Report;
use crate::slowest::Slowest;
use crate::world;

use binary::{Binary, Stage};
use run::{Failed, Ran};
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
        let install = |_: &mut Report| peers::install_packages();
        peers = report.step("installing peers", "cargo xtask test", install).is_some();
    }
    let chosen: Vec<&Binary> =
        chosen.into_iter().filter(|binary| peers || !binary.stage.needs_peers()).collect();
    if let Some(times) = selection.repeat {
        let work = |_: &mut Report| repeat::repeat(times, selection.loaded, &chosen, &selection.words());
        report.step("repeating tests", "cargo xtask test", work);
        return;
    }
    let failed = std::thread::scope(|scope| {
        if peers && selection.words().is_empty() {
            // While tests run that need none.
            scope.spawn(peers::install_wheels);
        }
        run_chosen(selection, &chosen, report)
    });
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

/// Runs these binaries, and returns the tests that have failed.
fn run_chosen<'a>(
    selection: &Selection,
    chosen: &[&'a Binary],
    report: &mut Report,
) -> Vec<(&'a Binary, Failed)> {
    let mut failed = Vec::new();
    for stages in Stage::TOGETHER {
        let mut together = Vec::new();
        for stage in stages {
            let of_stage: Vec<&Binary> =
                chosen.iter().copied().filter(|binary| binary.stage == *stage).collect();
            if !of_stage.is_empty() {
                together.push((*stage, of_stage));
            }
        }
        if together.is_empty() {
            continue;
        }
        let names: Vec<&str> = together.iter().map(|(stage, _)| stage.name()).collect();
        report.step(&names.join(", and beside them "), "cargo xtask test", |report| {
            let words = selection.words();
            let beside = together.iter().map(|(_, binaries)| || in_turn(binaries, &words));
            for (all, slowest) in at_once(beside) {
                for (binary, ran) in all {
                    match ran {
                        Ok(ran) => {
                            report.passed += ran.passed;
                            report.ignored += ran.ignored;
                            failed.extend(ran.failed.into_iter().map(|failed| (binary, failed)));
                        }
                        Err(error) => {
                            report.broken(&format!("{error:#}"), binary.stage.name(), &binary.alone())
                        }
                    }
                }
                eprintln!("the slowest of these tests:");
                slowest.lines().iter().for_each(|line| eprintln!("{line}"));
            }
            Ok(())
        });
    }
    failed
}

/// Runs binaries one after another.
fn in_turn<'a>(binaries: &[&'a Binary], words: &[&str]) -> (Vec<(&'a Binary, Result<Ran>)>, Slowest) {
    let mut slowest = Slowest::default();
    let all = binaries.iter().map(|binary| (*binary, run::run(binary, words, &mut slowest))).collect();
    (all, slowest)
}

/// Does several things at the same time; returns what comes of each, in their order.
fn at_once<T: Send>(works: impl Iterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    std::thread::scope(|scope| {
        let running: Vec<_> = works.map(|work| scope.spawn(work)).collect();
        running.into_iter().map(|work| work.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn is_chosen(selection: &Selection, binary: &Binary) -> bool {
    let is_named = selection.binary.as_ref().is_none_or(|name| *name == binary.name);
    is_named && (selection.peers || !binary.stage.needs_peers())
}
