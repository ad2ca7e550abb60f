//! The time from the start of the launcher to its end, for programs that do nothing and for an MPI hello.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use phalanx_interop::{Library, mpi};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{milliseconds, silent};
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    table("launch of true", plan, |_| PathBuf::from("/bin/true"), &Launcher::ALL);
    // Each launcher gets the library of its own project; the programs have the same source.
    let hello = |launcher| match launcher {
        Launcher::Hydra => mpi(Library::Mpich, "hello"),
        _ => mpi(Library::OpenMpi4, "hello"),
    };
    table("MPI hello", plan, hello, &[Launcher::Px, Launcher::OpenMpi, Launcher::Hydra]);
}

fn table(title: &str, plan: &Plan, program: impl Fn(Launcher) -> PathBuf, launchers: &[Launcher]) {
    let mut rows = Vec::new();
    for &ranks in &plan.sizes {
        let mut row: Row = launchers.iter().map(|launcher| (*launcher, Vec::new())).collect();
        let mut lost = Vec::new();
        let mut hung = Vec::new();
        let (began, mut counted) = (Instant::now(), 0);
        // The first round does not count: it brings files into memory.
        for round in 0..=plan.runs {
            if counted >= LEAST_RUNS && began.elapsed() > LONGEST_ROW {
                break;
            }
            counted = round;
            for &launcher in launchers {
                if hung.contains(&launcher) {
                    continue;
                }
                let run = silent(launcher.command(ranks, &program(launcher), &[]));
                if run.code != Some(0) {
                    // It is not tried again.
                    hung.extend(run.code.is_none().then_some(launcher));
                    lost.push(format!(
                        "{} {:?}",
                        launcher.name(),
                        run.code.map_or("hung".to_owned(), |c| c.to_string())
                    ));
                } else if round > 0 {
                    row.entry(launcher).or_default().push(milliseconds(run.took));
                }
            }
        }
        if !lost.is_empty() {
            println!("{title}, n={ranks}: failed or hung: {}", lost.join(", "));
        }
        let fewer = if counted < plan.runs { format!(" ({counted} runs)") } else { String::new() };
        rows.push((format!("n={ranks}{fewer}"), row));
    }
    table::print(title, "ms", &rows);
}

/// Many ranks on few CPUs take seconds to start: then there are fewer runs, but at least these.
const LONGEST_ROW: Duration = Duration::from_secs(40);
const LEAST_RUNS: usize = 3;
