//! From the start of the launcher to its end: of programs that do nothing, and of an MPI hello.

use std::path::PathBuf;

use phalanx_interop::{Library, mpi};

use crate::Plan;
use crate::launcher::Launcher;
use crate::measure::{milliseconds, silent};
use crate::table::{self, Row};

pub(crate) fn run(plan: &Plan) {
    table("launch of true", plan, |_| PathBuf::from("/bin/true"), &Launcher::ALL);
    // Each launcher gets the library that its project belongs to: the programs are the same source.
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
        // One round before those that count: files come into memory.
        for round in 0..=plan.runs {
            for &launcher in launchers {
                let run = silent(launcher.command(ranks, &program(launcher), &[]));
                if run.code != Some(0) {
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
        rows.push((format!("n={ranks}"), row));
    }
    table::print(title, "ms", &rows);
}
