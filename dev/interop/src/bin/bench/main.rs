//! Measures `px` and other launchers on this machine, in one session: `cargo xtask bench`.
//!
//! Runs are interleaved (A B C A B C), medians are compared, and ratios are printed; a time alone is meaningless on a
//! machine that has other work. The peers are Debian's Open MPI `mpirun`, MPICH's `mpiexec.hydra`, and a loop of
//! posix_spawn and wait, which is the minimum for any launcher.

// A measurement that cannot continue prints why and stops.
#![allow(clippy::expect_used)]

mod client;
mod gets;
mod hosts;
mod iof;
mod launch;
mod launcher;
mod library;
mod measure;
mod memory;
mod soak;
mod table;
mod tools;

use std::process::ExitCode;

/// What to measure, and how often.
struct Plan {
    subjects: Vec<&'static Subject>,
    sizes: Vec<u32>,
    runs: usize,
    launches: u32,
    /// Divides the loads of streams.
    scale: u32,
}

/// A subject to measure, with a file of its own.
struct Subject {
    name: &'static str,
    summary: &'static str,
    /// Also measured when no subject is named.
    usual: bool,
    run: fn(&Plan),
}

const SUBJECTS: &[Subject] = &[
    Subject { name: "launch", summary: "time of a launch", usual: true, run: launch::run },
    Subject {
        name: "client",
        summary: "calls of libpmix 4.2 under each server",
        usual: true,
        run: client::run,
    },
    Subject { name: "gets", summary: "thousands of gets outstanding at once", usual: true, run: gets::run },
    Subject {
        name: "library",
        summary: "our libpmix beside Debian's, with ranks and server on each in turn",
        usual: true,
        run: library::run,
    },
    Subject { name: "iof", summary: "output, standard input, slow readers", usual: true, run: iof::run },
    Subject { name: "memory", summary: "peak memory of the launcher", usual: true, run: memory::run },
    Subject {
        name: "tools",
        summary: "attach, query and spawn of tools, beside Open MPI 5's launcher",
        usual: true,
        run: tools::run,
    },
    Subject {
        name: "hosts",
        summary: "launches over 2, 4 and 8 hosts by ssh, as root",
        usual: false,
        run: hosts::run,
    },
    Subject { name: "soak", summary: "launches in a row, and what they leave", usual: false, run: soak::run },
];

const OPTIONS: &str = "[--sizes 1,4,16,64,128] [--runs 9] [--launches 1000] [--scale 1]";

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|argument| argument == "--help" || argument == "-h") {
        println!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let plan = match plan() {
        Ok(plan) => plan,
        Err(problem) => {
            eprintln!("bench: {problem}\n{}", usage());
            return ExitCode::from(2);
        }
    };
    println!("{}", measure::machine());
    for subject in &plan.subjects {
        (subject.run)(&plan);
    }
    ExitCode::SUCCESS
}

fn usage() -> String {
    let mut text = format!("usage: bench [SUBJECT..] {OPTIONS}\n");
    for Subject { name, summary, usual, .. } in SUBJECTS {
        let when = if *usual { "" } else { " (only when named)" };
        text += &format!("\n  {name:8}  {summary}{when}");
    }
    text
}

fn plan() -> Result<Plan, String> {
    let mut plan =
        Plan { subjects: Vec::new(), sizes: vec![1, 4, 16, 64, 128], runs: 9, launches: 1000, scale: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |word: &str| word.parse::<u32>().map_err(|_| format!("{word:?} is not a number"));
        match argument.as_str() {
            "--sizes" => plan.sizes = value()?.split(',').map(number).collect::<Result<_, _>>()?,
            "--runs" => plan.runs = number(&value()?)? as usize,
            "--scale" => plan.scale = number(&value()?)?.max(1),
            "--launches" => plan.launches = number(&value()?)?,
            name => match SUBJECTS.iter().find(|subject| subject.name == name) {
                Some(subject) => plan.subjects.push(subject),
                None => return Err(format!("unknown argument {argument:?}")),
            },
        }
    }
    if plan.subjects.is_empty() {
        plan.subjects = SUBJECTS.iter().filter(|subject| subject.usual).collect();
    }
    match plan.runs {
        0 => Err("at least one run".to_owned()),
        _ => Ok(plan),
    }
}
