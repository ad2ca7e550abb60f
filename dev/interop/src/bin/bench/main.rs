//! Measures `px` beside other launchers, on this machine, in this hour: `cargo xtask bench`.
//!
//! Runs are interleaved (A B C A B C), medians are compared, and ratios are printed; a time alone says nothing on a
//! machine that does other things, too. The peers are Debian's Open MPI `mpirun`, MPICH's `mpiexec.hydra`, and a loop of
//! posix_spawn and wait, which is the least that anybody can do.

// A measurement that cannot go on says why and stops.
#![allow(clippy::expect_used)]

mod client;
mod launch;
mod launcher;
mod measure;
mod memory;
mod soak;
mod table;

use std::process::ExitCode;

/// What to measure, and how often.
struct Plan {
    subjects: Vec<String>,
    sizes: Vec<u32>,
    runs: usize,
    launches: u32,
}

const USAGE: &str =
    "usage: bench [launch] [client] [memory] [soak] [--sizes 1,4,16,64,128] [--runs 9] [--launches 1000]";

fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(problem) => {
            eprintln!("bench: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    println!("{}", measure::machine());
    for subject in &plan.subjects {
        match subject.as_str() {
            "launch" => launch::run(&plan),
            "client" => client::run(&plan),
            "memory" => memory::run(&plan),
            _ => soak::run(&plan),
        }
    }
    ExitCode::SUCCESS
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan { subjects: Vec::new(), sizes: vec![1, 4, 16, 64, 128], runs: 9, launches: 1000 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |word: &str| word.parse::<u32>().map_err(|_| format!("{word:?} is no number"));
        match argument.as_str() {
            "--sizes" => plan.sizes = value()?.split(',').map(number).collect::<Result<_, _>>()?,
            "--runs" => plan.runs = number(&value()?)? as usize,
            "--launches" => plan.launches = number(&value()?)?,
            "launch" | "client" | "memory" | "soak" => plan.subjects.push(argument),
            _ => return Err(format!("unknown argument {argument:?}")),
        }
    }
    if plan.subjects.is_empty() {
        plan.subjects = ["launch", "client", "memory"].map(str::to_owned).into();
    }
    match plan.runs {
        0 => Err("at least one run".to_owned()),
        _ => Ok(plan),
    }
}
